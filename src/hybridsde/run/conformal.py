"""Conformal bands about the forecasts of a run."""

from typing import TYPE_CHECKING

import numpy as np

from hybridsde._errors import InputError
from hybridsde.certify.conformal import ConformalBand
from hybridsde.certify.question import Question
from hybridsde.certify.sampling import Forecaster
from hybridsde.certify.seen import Seen, check_dependence
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.run.certify import check_observed
from hybridsde.run.folder import solver_facts
from hybridsde.run.sampled import band_scores_of, certificate_key

if TYPE_CHECKING:
    from hybridsde.run.run import Run


def conformal(
    run: "Run",
    data: Trajectories,
    *,
    alpha: float = 0.1,
    delta: float | None = None,
    draws: int = 200,
    seed: int | None = None,
) -> ConformalBand:
    """A band about forecasts, simultaneous over the horizon, from unseen trajectories."""
    for name, value in (("alpha", alpha), ("delta", delta)):
        if value is not None and not 0 < value < 1:
            raise InputError(f"`{name}` must lie strictly between 0 and 1, but is {value}.")
    check_whole(draws, "draws", least=3)
    run.declared.check_later(data)
    check_observed(run, data)
    check_dependence(data, "iid")
    seen = Seen.from_facts(run.facts)
    seen.refuse(data)
    seen.refuse_windows(data, "iid")
    logs = np.array([name in run.declared.positive for name in data.states])
    if np.any(data.observed & logs & (data.values <= 0)):
        raise InputError(
            "Some values of positive states are not above zero; no band of logarithms can hold "
            "them. Remove these trajectories."
        )
    key = certificate_key(run, seed)
    scores = band_scores_of(run, data, Forecaster(draws, 1), key=key)
    return ConformalBand.of(
        scores,
        alpha,
        delta,
        draws=draws,
        times=int(data.lengths.min()) - run.declared.context,
        horizon=float((data.ends - data.times[:, 0]).min()),
        assumptions=Question().assumptions(**solver_facts(run.solver)),
        positive=tuple(run.declared.positive),
    )
