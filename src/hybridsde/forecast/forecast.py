"""A forecast: labelled draws of future states and observations."""

from dataclasses import dataclass
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
    Draws come in groups of `paths_per_weight` under the same weights.
    """

    states: xr.DataArray
    observations: xr.DataArray
    paths_per_weight: int

    def mean(self) -> xr.DataArray:
        """Predictive mean of the states."""
        return self.states.mean("draw")

    def quantile(self, q: float | list[float]) -> xr.DataArray:
        """Predictive quantiles of the observations."""
        return self.observations.quantile(q, "draw")

    def variance(self) -> xr.Dataset:
        """Variance of the states, split by the law of total variance over the weights.

        Var h = E_θ[Var(h|θ)] + Var_θ(E[h|θ]): the aleatoric part is noise that more data would
        not remove, the epistemic part is doubt about the weights. Both are estimated without
        bias from W weights × M paths: the variance of the W group means is reduced by the
        within-group variance over M, and cut off at zero.
        """
        if self.paths_per_weight < 2:
            raise ValueError(
                "The variance can only be split when several paths share their weights. Forecast "
                "with `paths_per_weight` of at least 2."
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
    draws: np.ndarray, times: np.ndarray, ids: tuple[str, ...], names: tuple[str, ...], axis: str
) -> xr.DataArray:
    """Attach names to draws of shape `sample series time column`.

    `time` is the clock where all trajectories share it, otherwise the time since their start;
    `clock` always holds each trajectory's own time.
    """
    shared = bool((times == times[:1]).all())
    elapsed = times - times[:, :1]
    common = bool(np.allclose(elapsed, elapsed[:1]))
    axis_times = times[0] if shared else elapsed[0] if common else np.arange(times.shape[1])
    return xr.DataArray(
        draws,
        dims=("draw", "trajectory", "time", axis),
        coords={
            "draw": np.arange(len(draws)),
            "trajectory": list(ids),
            "time": axis_times,
            axis: list(names),
            "clock": (("trajectory", "time"), times),
        },
    )
