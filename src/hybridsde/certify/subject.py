"""What is certified: a forecaster, how it was declared, and which data had which part in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridsde._errors import InputError
from hybridsde._streams import Stream, stream
from hybridsde._types import PRNGKeyArray
from hybridsde.certify.request import HOLD_OUT
from hybridsde.certify.used_data import POSTERIOR, UsedData
from hybridsde.data import Trajectories
from hybridsde.forecast import AbstractBayesianForecaster, AbstractForecaster, ModelSpec
from hybridsde.forecast.spec import common_step

CONFORMAL = "conformal"


@dataclass(frozen=True)
class Reference:
    """Constants of losses and bounds, settled where the certified trajectories had no part."""

    radius: Mapping[str, float] = field(default_factory=dict)
    """Of a band, by the number of sampled futures in a forecast."""
    moments: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and mean square of every loss, by its name."""

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Reference":
        """From JSON."""
        pairs = {name: (float(a), float(b)) for name, (a, b) in content["moments"].items()}
        return cls(dict(content["radius"]), pairs)


@dataclass(frozen=True, eq=False)
class Subject:
    """A forecaster with all that a certificate has to know of it."""

    spec: ModelSpec
    forecaster: AbstractForecaster
    used: UsedData
    spread: Sequence[float]
    """Standard deviations of the training data, which are the units of losses."""
    reference: Reference | None
    interval: float | None
    """The step of time that all rows share, where the system needs one."""
    seed: int

    def check(self, data: Trajectories) -> None:
        """A `ValueError` unless the forecaster can be asked about these trajectories."""
        self.spec.check_later(data)
        if self.interval is not None:
            common_step(data, self.spec.name, self.interval)

    @property
    def can_be_prior(self) -> bool:
        """Whether `fit_certified` could train it further, from a distribution of its weights."""
        forecaster = self.forecaster
        bayesian = isinstance(forecaster, AbstractBayesianForecaster)
        return bayesian and bool(np.isfinite(float(forecaster.kl_to_prior())))

    def require_unused(self, data: Trajectories, *, except_for: tuple[str, ...] = ()) -> None:
        """An `InputError` where the fit has used these trajectories."""
        if self.used.any_of(data, except_for=except_for).any():
            self.used.require_unused(data, except_for=except_for, set_apart=self.can_be_prior)

    def key(self, seed: int | None) -> PRNGKeyArray:
        """Fresh randomness: not that of training, nor of forecasts."""
        return stream(self.seed if seed is None else seed, Stream.CERTIFICATE)

    @property
    def at_prior(self) -> AbstractForecaster:
        """The forecaster that the certified trajectories had no part in.

        The one with weights from the prior, where they moved the weights.
        """
        moved = POSTERIOR in self.used.steps
        if moved and isinstance(self.forecaster, AbstractBayesianForecaster):
            return self.forecaster.at_prior()
        return self.forecaster

    def certifiable(self, data: Trajectories, bound: str = "auto") -> Trajectories:
        """The trajectories that a certificate may use.

        For PAC-Bayes bounds the prior has not used them; for "holdout" and "conformal" the weights
        have not either.
        """
        except_for = () if bound in (*HOLD_OUT, CONFORMAL) else (POSTERIOR,)
        free = ~self.used.any_of(data, except_for=except_for)
        if not free.any():
            apart = ", or fit with `fit_certified`, which sets some apart"
            raise InputError(
                "The fit has used all of these trajectories. Certify on others"
                f"{apart if self.can_be_prior else ''}."
            )
        return data.take(np.flatnonzero(free))
