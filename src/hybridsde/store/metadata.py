"""What a run remembers beside its numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from hybridsde._errors import InputError
from hybridsde.certify import Reference, UsedData

SCALED = "_scaled"
"""Behind the name of a score: in spreads of the data, averaged over what is measured."""
SCALED_SCORES = (f"rmse{SCALED}", f"crps{SCALED}")


@dataclass(frozen=True)
class Scores:
    """Scores of held-out trajectories: overall and per observation; None where not finite.

    Where several are measured, overall errors are there in spreads of the training data too, since
    metres and degrees have no sum.
    """

    overall: Mapping[str, float | None]
    states: Mapping[str, Mapping[str, float | None]]

    @property
    def in_spreads(self) -> bool:
        """Whether overall errors are shown in spreads of the data."""
        return f"crps{SCALED}" in self.overall

    def shown(self, name: str) -> float | None:
        """An overall score, in spreads where units would mix."""
        return self.overall.get(f"{name}{SCALED}", self.overall.get(name))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        states = {name: dict(row) for name, row in self.states.items()}
        return {"overall": dict(self.overall), "states": states}


@dataclass(frozen=True)
class RunMetadata:
    """Which data had which part in a run, and how it came about."""

    used: UsedData
    objective: str
    """The name of the loss."""
    spread: tuple[float, ...]
    """Standard deviations of the training data, as the model sees them."""
    interval: float | None = None
    """The step of time that all rows share, where the system needs one."""
    usual_step: float | None = None
    """The usual time between rows of the training recordings."""
    calibration: Mapping[str, float] | None = None
    """What spreads were multiplied with after training, by name."""
    reference: Reference | None = None
    """Constants of losses and bounds, where the run can be certified on its training data."""
    settings: Mapping[str, Any] | None = None
    """The settings file, where there was one."""
    test_scores: Scores | None = None
    floor: Scores | None = None
    """Of the true equations on the same test, where the settings of simulated data name them."""
    kept_epoch: int | None = None
    """After how many epochs the model was as it is kept; None where nothing was trained."""
    parameters: Mapping[str, Mapping[str, float | None]] | None = None
    """Learned physical parameters: value, standard error and 90 % interval, by name."""
    diffusion: Mapping[str, Mapping[str, float | None]] | None = None
    """The same of G, by state, before any calibration."""
    noise: Mapping[str, Mapping[str, float | None]] | None = None
    """The same of σ, by observation."""
    plausible: tuple[tuple[float, float], ...] | None = None
    """What a forecast of each observation may be, less its offset; draws beyond are counted, and
    cut off there."""
    leaves: Mapping[str, Mapping[str, float | str]] | None = None
    """Share of the draws that leave the recorded range when the fitted model is left to itself, the
    time `after` which they do, and why, by observation; see `hybridsde.hybrid.free_run`."""
    epoch: str | None = None
    """The moment at which times are zero, where they were timestamps."""
    choice: str | None = None
    """What the learned part is made of and why, in a sentence, where the fit has chosen it."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON; what is absent is left out."""
        reference = self.reference
        content = {
            "used": self.used.to_dict(),
            "objective": self.objective,
            "spread": list(self.spread),
            "interval": self.interval,
            "usual_step": self.usual_step,
            "calibration": None if self.calibration is None else dict(self.calibration),
            "reference": None
            if reference is None
            else {"radius": dict(reference.radius), "moments": dict(reference.moments)},
            "settings": self.settings,
            "test_scores": None if self.test_scores is None else self.test_scores.to_dict(),
            "floor": None if self.floor is None else self.floor.to_dict(),
            "kept_epoch": self.kept_epoch,
            "parameters": _plain(self.parameters),
            "diffusion": _plain(self.diffusion),
            "noise": _plain(self.noise),
            "plausible": None
            if self.plausible is None
            else [list(ends) for ends in self.plausible],
            "leaves": None
            if self.leaves is None
            else {name: dict(one) for name, one in self.leaves.items()},
            "epoch": self.epoch,
            "choice": self.choice,
        }
        return {name: value for name, value in content.items() if value is not None}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], source: str) -> "RunMetadata":
        """What `to_dict` wrote; an `InputError` that names what is wrong."""
        try:
            reference, scores = content.get("reference"), content.get("test_scores")
            floor = content.get("floor")
            return cls(
                used=UsedData.from_dict(content["used"]),
                objective=str(content["objective"]),
                spread=tuple(float(one) for one in content["spread"]),
                interval=content.get("interval"),
                usual_step=content.get("usual_step"),
                calibration=content.get("calibration"),
                reference=None if reference is None else Reference.from_dict(reference),
                settings=content.get("settings"),
                test_scores=None if scores is None else Scores(**scores),
                floor=None if floor is None else Scores(**floor),
                kept_epoch=content.get("kept_epoch"),
                parameters=content.get("parameters"),
                diffusion=content.get("diffusion"),
                noise=content.get("noise"),
                plausible=None
                if content.get("plausible") is None
                else tuple((float(low), float(high)) for low, high in content["plausible"]),
                leaves=content.get("leaves"),
                epoch=_moment(content.get("epoch")),
                choice=content.get("choice"),
            )
        except KeyError as error:
            raise InputError(f"{source} is damaged: it lacks {error}. Fit again.") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{source} is damaged ({error}). Fit again.") from None


def _plain(numbers: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]] | None:
    return None if numbers is None else {name: dict(one) for name, one in numbers.items()}


def _moment(given: Any) -> str | None:
    """A timestamp with a zone, as text; a `ValueError` where it is none."""
    if given is None:
        return None
    if not isinstance(given, str) or pd.Timestamp(given).tz is None:
        raise ValueError(f"epoch is {given!r}")
    return given
