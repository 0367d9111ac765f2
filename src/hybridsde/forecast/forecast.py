"""A forecast: labelled draws of future states and observations."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hybridsde.data import Trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Forecast:
    """Draws with dimensions draw, trajectory, time, state (or obs).

    `states` are the paths of h, `observations` what would be measured of them, noise included.
    `time` counts from the start of each trajectory; `clock` is its own time. Draws come in groups
    of `paths_per_weight` under the same weights. Mean, quantiles and variance are of the states;
    those of what would be measured are one call away, `observations.quantile(0.9, "draw")`.
    """

    states: xr.DataArray
    observations: xr.DataArray
    paths_per_weight: int

    def __repr__(self) -> str:
        """One line: what, how often, how far."""
        sizes, names = self.observations.sizes, map(str, self.observations["obs"].values)
        return (
            f"<Forecast of {', '.join(names)}: {sizes['draw']} draws of {sizes['trajectory']} "
            f"trajectories at {sizes['time']} times>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the same, and the first quantiles of what would be measured."""
        table = self.observations.quantile([0.05, 0.5, 0.95], "draw").to_dataframe("value")
        shown = table["value"].unstack("quantile").head(8).round(4)
        return f"{escape(repr(self))}{shown.to_html(border=0)}"

    def mean(self) -> xr.DataArray:
        """Predictive mean of the states."""
        return self.states.mean("draw")

    def quantile(self, q: float | list[float]) -> xr.DataArray:
        """Predictive quantiles of the states."""
        return self.states.quantile(q, "draw")

    def variance(self) -> xr.Dataset:
        """Variance of the states, split by the law of total variance over the weights.

        Var h = E_θ[Var(h|θ)] + Var_θ(E[h|θ]): the aleatoric part is noise that more data would
        not remove, the epistemic part is doubt about the weights. Both are estimated from W
        weights × M paths: the variance of the W group means is reduced by the within-group
        variance over M, which removes its bias, and then cut off at zero.
        """
        if self.paths_per_weight < 2 or self.states.sizes["draw"] < 2 * self.paths_per_weight:
            raise ValueError(
                "The variance can only be split with at least two draws of the weights and two "
                "paths each. Forecast with `paths_per_weight` of at least 2 and twice as many "
                "`draws`."
            )
        draws = self.states.transpose("draw", ...)
        groups = draws.values.reshape(-1, self.paths_per_weight, *draws.shape[1:])
        aleatoric = groups.var(1, ddof=1).mean(0)
        between = groups.mean(1).var(0, ddof=1)
        epistemic = np.maximum(between - aleatoric / self.paths_per_weight, 0.0)
        like = self.states.isel(draw=0, drop=True)
        return xr.Dataset(
            {
                "aleatoric": like.copy(data=aleatoric),
                "epistemic": like.copy(data=epistemic),
                "total": like.copy(data=aleatoric + epistemic),
            }
        )

    def plot(self, truth: Trajectories | None = None, trajectories: int = 3) -> "Figure":
        """A fan chart: median and central intervals of every observation, with the truth."""
        from hybridsde.forecast.chart import fan_chart

        return fan_chart(self, truth, trajectories)


def label(
    draws: np.ndarray,
    clock: np.ndarray,
    starts: np.ndarray,
    ids: tuple[str, ...],
    names: tuple[str, ...],
    axis: str,
) -> xr.DataArray:
    """Attach names to draws of shape `sample series time column`.

    `time` is the time since each trajectory's start, or the position in the grid where the
    trajectories do not share it.
    """
    elapsed = clock - starts[:, None]
    shared = bool(np.allclose(elapsed, elapsed[:1]))
    return xr.DataArray(
        draws,
        dims=("draw", "trajectory", "time", axis),
        coords={
            "draw": np.arange(len(draws)),
            "trajectory": list(ids),
            "time": elapsed[0] if shared else np.arange(clock.shape[1]),
            axis: list(names),
            "clock": (("trajectory", "time"), clock),
            "elapsed": (("trajectory", "time"), elapsed),
        },
    )
