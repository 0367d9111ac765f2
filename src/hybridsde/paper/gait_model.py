"""The pieces of a walk as a Bayesian SDE: what is seen of it, where it begins, what is known.

    dφ = ω dt + g dW,   dω = dz = dc = 0,   dd = −A_θ d dt + G dW,   θ ~ N(μ, s²)
    y = B(φ) (M + Σ_j z_j U_j) + Σ_k (c_k + d_k) V_k + ε

The first equation is known, the last is learned: drift = learned + γ ∘ known (Haussmann et al.
2021, eq. hybrid_sde). Phase φ, pace ω, shapes z of the own cycle, stances c (a pose that stays)
and sways d (a pose that comes and goes) are the states. Numbers come from `gait_shape`.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import AbstractParameter, Fixed, Relative
from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.model import (
    MLP,
    AbstractObservation,
    AbstractStart,
    BayesianMLP,
    BayesianSDE,
    DiagonalDiffusion,
    HeldWeights,
    KnownDrift,
    MeanField,
    Scale,
)
from hybridsde.model.drift import make_gate
from hybridsde.model.network import Linear
from hybridsde.paper.gait_shape import Gait, basis
from hybridsde.physics import equations

STILL = 1e-6
"""G of states that do not change: a diffusion has an inverse."""
PRIOR_SD = 10.0
"""Of the rates at which sways fade, per second."""


class Spreads(NamedTuple):
    """What the recordings of a few walks cannot say well, as it is declared."""

    phase: float
    """G of the phase, in radians per √s."""
    sway: float
    """Variance of sways of a new walker, in those of the training sequences."""
    stance: float
    """Variance of stances, in those of the sways."""
    noise: float
    """Variance of what the modes leave of a new walker, in those of the training sequences."""
    guesses: int
    """Of the first phase, equally spaced."""


class GaitObservation(AbstractObservation):
    """y = B(φ) (M + Σ_j z_j U_j) + Σ_k (c_k + d_k) V_k + ε."""

    cycle: Fixed
    shapes: Fixed
    modes: Fixed
    sd: AbstractParameter
    names: tuple[str, ...] = eqx.field(static=True)
    positive: tuple[str, ...] = eqx.field(static=True, default=())
    limits: tuple[tuple[float, float], ...] | None = eqx.field(static=True, default=None)

    def mean(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch obs"]:
        """What is seen without noise."""
        cycle, shapes, modes = self.cycle.value, self.shapes.value, self.modes.value
        z, c, d = jnp.split(h[..., 2:], [len(shapes), len(shapes) + len(modes)], -1)
        own = cycle + jnp.tensordot(z, shapes, 1)
        seen = basis(h[..., 0], (len(cycle) - 1) // 2, jnp)
        return jnp.einsum("...b,...bo->...o", seen, own) + (c + d) @ modes


class GaitStart(AbstractStart):
    """h₀ ~ N(m, s²) about one guess of the phase."""

    centre: Fixed
    spread: Fixed

    def normals(self, states: int) -> int:
        """One for every state."""
        return states

    def __call__(
        self,
        series: Batch,
        observation: AbstractObservation,
        scale: Scale,
        epsilon: Float[Array, " state"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""
        del series, observation, scale
        return self.centre.value + self.spread.value * epsilon


def state_names(shapes: int, sways: int) -> tuple[str, ...]:
    """Phase, pace, shapes, stances, sways."""
    many = (("shape", shapes), ("stance", sways), ("sway", sways))
    rest = (f"{name}{k}" for name, count in many for k in range(count))
    return ("phase", "pace", *rest)


def gait_model(
    gait: Gait, spreads: Spreads, step: float, names: tuple[str, ...], context: int
) -> BayesianSDE:
    """All pieces together; `step` is the time between rows."""
    sways, shapes = len(gait.modes), len(gait.shapes)
    states = state_names(shapes, sways)
    physics = equations("dphase = pace")
    gate = make_gate(None, states, physics.known(states, ()))
    return BayesianSDE(
        network=_fading(gait, step, len(states)),
        weights=HeldWeights(),
        known=KnownDrift(physics, gate, states, ()),
        diffusion=_diffusion(gait, spreads, step),
        observation=_observation(gait, spreads, names),
        start=_start(gait, spreads, step),
        scale=Fixed(Scale.identity(len(states), 0)),
        autonomous=True,
        context=context,
        sees=_own_past(len(states), sways),
    )


def _observation(gait: Gait, spreads: Spreads, names: tuple[str, ...]) -> GaitObservation:
    """What is seen; σ of a new walker."""
    unit = np.sqrt(spreads.noise) * gait.noise
    return GaitObservation(
        cycle=Fixed(jnp.asarray(gait.cycle)),
        shapes=Fixed(jnp.asarray(gait.shapes)),
        modes=Fixed(jnp.asarray(gait.modes)),
        sd=Relative(Fixed(jnp.asarray(unit)), Fixed(jnp.ones(()))),
        names=names,
    )


def _own_past(states: int, sways: int) -> tuple[tuple[bool, ...], ...]:
    """Every sway sees itself; nothing is learned of the others."""
    mask = np.diag(np.arange(states) >= states - sways)
    return tuple(tuple(bool(one) for one in row) for row in mask)


def _fading(gait: Gait, step: float, states: int) -> BayesianMLP:
    """−a d with a = (1 − ρ)/Δt, one Euler step from row to row, and the error of a."""
    sways = np.arange(states - len(gait.modes), states)
    rate, sd = np.zeros((states, states)), np.full((states, states), PRIOR_SD)
    rate[sways, sways] = (gait.kept - 1) / step
    sd[sways, sways] = gait.kept_sd / step
    still, sure = np.zeros(states), np.full(states, STILL)
    prior_sd = np.full((states, states), PRIOR_SD)

    def mlp(weight: np.ndarray, bias: np.ndarray) -> MLP:
        return MLP((Linear(jnp.asarray(weight), jnp.asarray(bias)),), jax.nn.relu)

    prior = MeanField(mlp(0 * rate, still), mlp(np.log(prior_sd), np.log(sure)))
    return BayesianMLP(MeanField(mlp(rate, still), mlp(np.log(sd), np.log(sure))), Fixed(prior))


def _diffusion(gait: Gait, spreads: Spreads, step: float) -> DiagonalDiffusion:
    """Sways keep their variance: G² Δt = (1 − ρ²) var d."""
    still = np.full(1 + len(gait.shapes) + len(gait.modes), STILL)
    sways = gait.sway_sd * np.sqrt(spreads.sway * (1 - gait.kept**2) / step)
    unit = np.concatenate([[spreads.phase], still, sways])
    return DiagonalDiffusion(Relative(Fixed(jnp.asarray(unit)), Fixed(jnp.ones(()))))


def _start(gait: Gait, spreads: Spreads, step: float) -> GaitStart:
    """A walker like those that were seen, at a phase that is known to half a guess."""
    first = [np.pi / spreads.guesses, gait.pace_sd / step]
    sway = np.sqrt(spreads.sway) * gait.sway_sd
    stance = np.sqrt(spreads.stance) * gait.sway_sd + STILL
    spread = np.concatenate([first, np.ones(len(gait.shapes)), stance, sway])
    centre = np.zeros(len(spread))
    centre[1] = gait.pace / step
    return GaitStart(Fixed(jnp.asarray(centre)), Fixed(jnp.asarray(spread)))
