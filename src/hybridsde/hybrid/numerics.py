"""How a hybrid is computed: the origin of time, the longest step, the scheme, and hidden sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import Array, Float
from hybridsde.data import Batch, Trajectories
from hybridsde.data.checks import check_positive
from hybridsde.hybrid.defaults import MOST_SUBSTEPS, RESOLUTION
from hybridsde.model import BayesianSDE, Scale
from hybridsde.simulate import AbstractSolver
from hybridsde.simulate.schemes import SOLVERS

HEUN, ROSENBROCK = "Heun", "Rosenbrock"
SINGLE = 2.0**-23
"""Relative spacing of single-precision numbers."""
BLUR = 1e-3
"""Times are counted from the first one where rounding would move them by this share of a gap."""
STABLE = 1.0
"""A step of Heun's rule times the fastest decay of the known physics stays below this."""
ACCURATE = 0.1
"""Where parameters are all that is learned a step times the fastest rate stays below this: Heun's
rule then errs by a part in six hundred, which must not show beside a standard error."""
MOST_RESOLVED = 200
"""More steps in a usual interval, where physics oscillates that fast, are refused."""
PROBES = 256
"""Rows at which the slope of the known drift is looked at."""


@dataclass(frozen=True)
class Numerics:
    """What a fit chooses by looking at data and physics, unless it is given.

    - `origin`: the time that `t` counts from.
    - `step`: the longest step of the solver, in units of time.
    - `scheme`: "Heun", or "Rosenbrock" for stiff physics.
    - `offsets`: what is subtracted from columns that lie far from zero, by name.
    - `smallest`: what a zero of a positive state is below, by name.
    - `typical`: mean and standard deviation of states that are never measured, by name.
    """

    origin: float | None = None
    step: float | None = None
    scheme: str | None = None
    typical: Mapping[str, tuple[float, float]] | None = None
    offsets: Mapping[str, float] | None = None
    smallest: Mapping[str, float] | None = None
    why: str | None = None
    """What decided the step, in words."""

    def __post_init__(self):
        if self.step is not None:
            check_positive(self.step, "step")
        if self.scheme is not None and self.scheme not in SOLVERS:
            raise ValueError(
                f"`scheme` must be one of {', '.join(SOLVERS)}, but is {self.scheme!r}."
            )

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Numerics":
        """What plain data say, such as JSON holds."""
        sizes = content.get("typical")
        pairs = None if sizes is None else {name: tuple(pair) for name, pair in sizes.items()}
        return cls(**{**content, "typical": pairs})

    @property
    def solver(self) -> AbstractSolver | None:
        """One step of the scheme for each step of the clock; None while nothing is chosen."""
        return None if self.step is None else SOLVERS[self.scheme or HEUN]()


def origin_of(data: Trajectories) -> float:
    """Zero, or the first time where single precision would blur the gaps between rows."""
    gaps = np.diff(data.times)
    shortest = np.min(gaps, where=gaps > 0, initial=np.inf)
    blurred = np.abs(data.times).max() * SINGLE > BLUR * shortest
    return float(data.times.min()) if blurred else 0.0


@dataclass(frozen=True)
class Step:
    """The longest step of a solver, its scheme, and why."""

    length: float
    scheme: str
    why: str


def choose_step(
    model: BayesianSDE, batch: Batch, lift: Float[Array, "state obs"], accuracy: float = STABLE
) -> Step:
    """Short against what the data and the known physics do.

    A quarter of the time in which the fastest state changes by its spread, but not less than a
    twentieth of the usual interval, since noise looks fast; a quarter radian of the fastest
    oscillation of the known drift; and, for Heun's rule, the time of its fastest decay. Where that
    would take many steps in an interval the physics is stiff, and an implicit scheme is taken. A
    step times the fastest rate stays below the `accuracy` that is asked for, as far as a twentieth
    of the usual interval allows.
    """
    scale = eqx.filter_jit(Scale.of)(batch, lift)
    measured = np.any(np.asarray(lift) != 0, 1)
    speed = float(np.max(np.asarray(scale.rate / scale.states.sd)[measured]))
    interval = usual_interval(batch)
    length, why = RESOLUTION / speed, "how fast the recordings change"
    if length < interval / MOST_SUBSTEPS:
        length, why = interval / MOST_SUBSTEPS, "the usual interval, as the recordings are rough"
    decay, turn = known_rates(model, batch, lift)
    if turn > 0 and RESOLUTION / turn < length:
        length, why = RESOLUTION / turn, "the fastest oscillation of the known equations"
        if interval / length > MOST_RESOLVED:
            raise InputError(
                f"The known equations oscillate {turn:.3g} radians per unit of time, which needs "
                f"steps of {length:.3g}: {interval / length:.0f} in the usual interval of "
                f"{interval:.3g}. Check units and parameters, or say train.substeps."
            )
    if decay > 0 and STABLE / decay < length:
        if interval * decay / STABLE > MOST_SUBSTEPS:
            return Step(
                length,
                ROSENBROCK,
                f"{why}; the known equations decay at {decay:.3g} per unit of time, which is stiff",
            )
        length, why = STABLE / decay, "the fastest decay of the known equations"
    fastest = max(decay, turn)
    if fastest * length > accuracy:
        shortest = interval / MOST_SUBSTEPS
        length, why = max(accuracy / fastest, min(shortest, length)), "the accuracy of parameters"
    return Step(length, HEUN, why)


def usual_interval(batch: Batch) -> float:
    """The median time between rows that say something."""
    told, clock = np.asarray(batch.observed.any(-1)), np.asarray(batch.elapsed, float)
    gaps = np.concatenate([np.diff(t[seen]) for t, seen in zip(clock, told, strict=True)])
    gaps = gaps[gaps > 0]
    if not gaps.size:
        gaps = np.asarray(batch.steps)[np.asarray(batch.steps) > 0]
    return float(np.median(gaps)) if gaps.size else 1.0


def known_rates(
    model: BayesianSDE, batch: Batch, lift: Float[Array, "state obs"]
) -> tuple[float, float]:
    """How fast the known drift decays and turns at recorded states: from its eigenvalues.

    The 90 % quantile over rows, so that one odd row does not decide.
    """
    states, times, inputs = probes(model, batch, lift)
    sde = model.typical()
    slopes = jax.jit(jax.vmap(lambda t, h, u: jax.jacfwd(lambda h: sde.known_part(t, h, u))(h)))(
        times, states, inputs
    )
    slopes = np.asarray(slopes, float)
    slopes = slopes[np.isfinite(slopes).all((1, 2))]
    if not len(slopes):
        return 0.0, 0.0
    values = np.linalg.eigvals(slopes)
    decay = np.quantile(np.max(-values.real, 1, initial=0.0), 0.9)
    turn = np.quantile(np.max(np.abs(values.imag), 1, initial=0.0), 0.9)
    return float(decay), float(turn)


def probes(
    model: BayesianSDE, batch: Batch, lift: Float[Array, "state obs"]
) -> tuple[Float[Array, "row state"], Float[Array, " row"], Float[Array, "row input"]]:
    """Some recorded states, with times and inputs."""
    told = np.argwhere(np.asarray(batch.observed.any(-1)))
    chosen = told[np.linspace(0, len(told) - 1, min(PROBES, len(told))).astype(int)]
    series, row = chosen.T
    states = recorded_states(model, batch, lift)[series, row]
    times, inputs = np.asarray(batch.times)[series, row], np.asarray(batch.inputs)[series, row]
    return jnp.asarray(states), jnp.asarray(times), jnp.asarray(inputs)


def recorded_states(
    model: BayesianSDE, batch: Batch, lift: Float[Array, "state obs"]
) -> Float[np.ndarray, "series time state"]:
    """States by straight lines through what was recorded; others stand at their typical value."""
    measured = np.any(np.asarray(lift) != 0, 1)
    states = batch.bridged() @ np.asarray(lift, float).T
    return np.where(measured, states, np.asarray(model.scale.value.states.mean, float))
