"""Bands that a new trajectory leaves with a stated probability, whatever the model."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from hybridsde._errors import InputError
from hybridsde._files import read_text, write_json
from hybridsde.certify.inequalities import conformal_rank
from hybridsde.forecast import Forecast


@dataclass(frozen=True)
class ConformalBand:
    """ŷ ± r σ̂ at all times together, r from trajectories that the model has not seen."""

    radius: float
    rank: int
    n: int
    alpha: float
    delta: float | None
    draws: int
    """Sampled futures of the forecasts that it was measured with."""
    times: int
    """Rows after the start that it holds for."""
    horizon: float
    """Time after the start that it holds for."""
    statement: str
    assumptions: tuple[str, ...]
    positive: tuple[str, ...] = ()
    """States whose band is one of logarithms."""

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        alpha: float,
        delta: float | None,
        *,
        draws: int,
        times: int,
        horizon: float,
        assumptions: tuple[str, ...],
        positive: tuple[str, ...],
    ) -> "ConformalBand":
        """From the score max |y − ŷ|/σ̂ of every trajectory."""
        n = len(scores)
        rank = conformal_rank(n, alpha, delta)
        if rank is None:
            # All n scores must suffice: n/(n + 1) ≥ 1 − α, or (1 − α)ⁿ ≤ δ.
            needed = math.ceil(
                1 / alpha - 1 - 1e-9
                if delta is None
                else math.log(delta) / math.log1p(-alpha) - 1e-9
            )
            raise InputError(
                f"{n} trajectories are too few for a band that holds {100 * (1 - alpha):.4g} %"
                + ("" if delta is None else f" with confidence {100 * (1 - delta):.4g} %")
                + f"; at least {needed} are needed. Give more, or ask for less."
            )
        radius = float(np.sort(scores)[rank - 1])
        inside = (
            f"stays inside the band at all of {times} observed times with probability "
            f"{1 - alpha:.4g}"
        )
        statement = (
            f"A new trajectory from the same source {inside} or more, on average over the draw of "
            f"these {n} trajectories."
            if delta is None
            else f"With probability {1 - delta:.4g} over the draw of these {n} trajectories, a new "
            f"one from the same source {inside} or more."
        )
        return cls(
            radius, rank, n, alpha, delta, draws, times, horizon, statement, assumptions, positive
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_json(Path(path), self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "ConformalBand":
        """Read what `save` wrote."""
        try:
            found = json.loads(read_text(Path(path), links=True))
            lists = {name: tuple(found[name]) for name in ("assumptions", "positive")}
            return cls(**{**found, **lists})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path} is not a conformal band: {error}.") from None

    def __str__(self) -> str:
        lines = [f"Conformal band of {self.radius:.4g} standard deviations", self.statement]
        return "\n".join([*lines, "Not checked:", *(f"  - {line}" for line in self.assumptions)])

    def around(self, forecast: Forecast) -> xr.Dataset:
        """Lower and upper end for every trajectory, time and observation of a forecast."""
        seen = forecast.observations
        if seen.sizes["draw"] != self.draws or forecast.paths_per_weight != 1:
            raise ValueError(
                f"The band was measured on forecasts with draws={self.draws} and "
                "paths_per_weight=1. Forecast in the same way."
            )
        if seen.sizes["time"] > self.times:
            raise ValueError(
                f"The band holds for {self.times} times, but the forecast has "
                f"{seen.sizes['time']}. Calibrate on longer trajectories."
            )
        shared = np.issubdtype(seen["time"].dtype, np.floating)
        if shared and float(seen["time"].max()) > self.horizon * (1 + 1e-6):
            raise ValueError(
                f"The band holds up to {self.horizon:g} after the start, but the forecast goes to "
                f"{float(seen['time'].max()):g}. Calibrate on longer trajectories."
            )
        logs = xr.DataArray([str(name) in self.positive for name in seen["obs"].values], dims="obs")
        inner = xr.where(logs, np.log(seen.where(logs, 1.0)), seen).transpose(*seen.dims)
        centre, reach = inner.mean("draw"), self.radius * inner.std("draw", ddof=1)
        ends = {"lower": centre - reach, "upper": centre + reach}
        raw = {n: xr.where(logs, np.exp(end.where(logs, 0.0)), end) for n, end in ends.items()}
        return xr.Dataset({n: end.transpose(*centre.dims) for n, end in raw.items()})
