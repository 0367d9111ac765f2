"""Solvers: one step of the SDE, and the path KL that the step adds."""

import abc
import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._linear import inverse
from hybridsde._types import Array, Float, PyTree, Scalar
from hybridsde.data.checks import check_whole
from hybridsde.model import SDE

LARGEST_STEP = 5.0
"""No bounded step is longer, in standard deviations of the state."""
IMPLICIT = 1 - math.sqrt(0.5)
"""The coefficient of the implicit part of `Rosenbrock`, which makes it L-stable."""


class AbstractSolver(eqx.Module):
    """A one-step scheme, taken `substeps` times between observations."""

    strong_order: eqx.AbstractClassVar[float]
    substeps: eqx.AbstractVar[int]

    @abc.abstractmethod
    def step(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        dw: Float[Array, " state"],
        noise: PyTree,
    ) -> tuple[Float[Array, " state"], Scalar]:
        """The state after `dt`, and the path KL of the step.

        `dw` is the Wiener increment, `noise` what the network consumes in one call.
        """

    @abc.abstractmethod
    def transition(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        noise: PyTree,
    ) -> "Transition":
        """A step without noise and its slopes, which a Gaussian is carried through."""


class Transition(NamedTuple):
    """φ(h, 0), A = ∂φ/∂h and B = ∂φ/∂ΔW of one step h ← φ(h, ΔW)."""

    mean: Float[Array, " state"]
    by_state: Float[Array, "state state"]
    by_noise: Float[Array, "state state"]


class AbstractDifferentiatedSolver(AbstractSolver):
    """A scheme of which only the step is written: its slopes come by differentiating it."""

    def transition(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        noise: PyTree,
    ) -> Transition:
        """The step and its slopes, by differentiating it."""

        def step(h: Float[Array, " state"], dw: Float[Array, " state"]) -> tuple[Array, Array]:
            after, _ = self.step(sde, t, h, u, dt, dw, noise)
            return after, after

        (by_state, by_noise), mean = jax.jacfwd(step, (0, 1), has_aux=True)(h, jnp.zeros_like(h))
        return Transition(mean, by_state, by_noise)


def drift_and_slope(
    sde: SDE,
    t: Scalar,
    h: Float[Array, " state"],
    u: Float[Array, " input"],
    noise: PyTree,
) -> tuple[Float[Array, " state"], Float[Array, "state state"]]:
    """F = f + γ∘r and ∂F/∂h, with one look at the network."""

    def drift(h: Float[Array, " state"]) -> tuple[Array, Array]:
        learned, known = sde.drift(t, h, u, noise)
        return learned + known, learned + known

    slope, rate = jax.jacfwd(drift, has_aux=True)(h)
    return rate, slope


def spread_matrix(sde: SDE, t: Scalar, h: Float[Array, " state"]) -> Float[Array, "state state"]:
    """G(h, t) as a matrix."""
    return jax.vmap(lambda dw: sde.diffusion.spread(t, h, dw), out_axes=1)(jnp.eye(len(h)))


def path_energy(
    sde: SDE, t: Scalar, h: Float[Array, " state"], learned: Float[Array, " state"], dt: Scalar
) -> Scalar:
    """½ fᵀJ⁻¹f Δt, what one step adds to the path KL (Haussmann et al. 2021, Lemma 1)."""
    return 0.5 * jnp.sum(sde.diffusion.whiten(t, h, learned) ** 2) * dt


def euler_maruyama(h, drift, dt, noise):
    """h + F Δt + G ΔW, for arrays of any kind (Maruyama 1955); `noise` is G ΔW."""
    return h + drift * dt + noise


class EulerMaruyama(AbstractSolver):
    """h ← h + (f + γ∘r) Δt + G ΔW      (Haussmann et al. 2021, eq. em-discretization)

    The KL between hybrid and prior path adds ½ fᵀJ⁻¹f Δt at every step (Lemma 1). For this scheme
    the sum is exact; no limit Δt → 0 is needed. Strong order ½, Itô.
    """

    substeps: int = eqx.field(static=True, default=1)
    strong_order: ClassVar[float] = 0.5

    def __check_init__(self):
        check_whole(self.substeps, "substeps")

    def step(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        dw: Float[Array, " state"],
        noise: PyTree,
    ) -> tuple[Float[Array, " state"], Scalar]:
        """One Euler step."""
        learned, known = sde.drift(t, h, u, noise)
        energy = path_energy(sde, t, h, learned, dt)
        spread = sde.diffusion.spread(t, h, dw)
        return euler_maruyama(h, learned + known, dt, spread), energy

    def transition(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        noise: PyTree,
    ) -> Transition:
        """h + F Δt and I + Δt ∂F/∂h."""
        rate, slope = drift_and_slope(sde, t, h, u, noise)
        eye = jnp.eye(len(h), dtype=h.dtype)
        return Transition(h + rate * dt, eye + slope * dt, spread_matrix(sde, t, h))


class Heun(AbstractSolver):
    """Heun's rule for the drift, Euler's for the noise, with bounded steps.

        x₁ = τ(F(t, h) Δt),   x₂ = τ(F(t + Δt, h + x₁) Δt),   h ← h + ½(x₁ + x₂) + G ΔW

    F = f + γ∘r, and τ(x) = x/√(1 + (x/5s)²) with s the spread of each state in the training data.
    Without noise of second order, so oscillations neither grow nor fade with the step as they do
    under Euler's rule; with noise of strong order ½ in general (Itô), and close to the noiseless
    order where G is small and constant. τ keeps paths finite where the drift grows faster than
    linearly, as x·y does (after Hutzenthaler, Jentzen and Kloeden 2012); it changes a step of a
    tenth of s by a five-thousandth. The path KL takes f at the start of the step.
    """

    substeps: int = eqx.field(static=True, default=1)
    strong_order: ClassVar[float] = 0.5

    def __check_init__(self):
        check_whole(self.substeps, "substeps")

    def step(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        dw: Float[Array, " state"],
        noise: PyTree,
    ) -> tuple[Float[Array, " state"], Scalar]:
        """One step with two looks at the drift."""
        learned, known = sde.drift(t, h, u, noise)
        energy = path_energy(sde, t, h, learned, dt)
        first = bounded(sde, (learned + known) * dt)
        there, then = sde.drift(t + dt, h + first, u, noise)
        move = 0.5 * (first + bounded(sde, (there + then) * dt))
        return h + move + sde.diffusion.spread(t, h, dw), energy

    def transition(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        noise: PyTree,
    ) -> Transition:
        """The step, and I + Z + ½Z² with Z = τ'(F Δt) Δt ∂F/∂h: its slope where F is linear.

        Where a move is bounded, its slope is too: covariances stay finite where paths do.
        """
        rate, slope = drift_and_slope(sde, t, h, u, noise)
        first = bounded(sde, rate * dt)
        there, then = sde.drift(t + dt, h + first, u, noise)
        mean = h + 0.5 * (first + bounded(sde, (there + then) * dt))
        z = bounded_slope(sde, rate * dt)[:, None] * slope * dt
        eye = jnp.eye(len(h), dtype=h.dtype)
        return Transition(mean, eye + z + 0.5 * z @ z, spread_matrix(sde, t, h))


class Rosenbrock(AbstractDifferentiatedSolver):
    """A linearly implicit rule of second order, for known physics that is stiff.

        W = I − aΔt ∂(γ∘r)/∂h,   a = 1 − 1/√2
        W k₁ = F(t, h),   W k₂ = F(t + Δt, h + Δt k₁) − 2k₁
        h ← h + Δt (3k₁ + k₂)/2 + W⁻¹ G ΔW

    ROS2 of Verwer, Spee, Blom and Hundsdorfer (1999): L-stable, and of second order whatever
    matrix stands for the Jacobian, so that of the known part is enough. Noise is damped as the
    drift is. Of a state that decays at a rate λ, the stationary variance is then 2λΔt/(1 + aλΔt)²
    of the true one where λΔt is large: the spread of what the step cannot follow is too small.
    Moves are bounded as in `Heun`.
    """

    substeps: int = eqx.field(static=True, default=1)
    strong_order: ClassVar[float] = 0.5

    def __check_init__(self):
        check_whole(self.substeps, "substeps")

    def step(
        self,
        sde: SDE,
        t: Scalar,
        h: Float[Array, " state"],
        u: Float[Array, " input"],
        dt: Scalar,
        dw: Float[Array, " state"],
        noise: PyTree,
    ) -> tuple[Float[Array, " state"], Scalar]:
        """One step with two looks at the drift and one at the slope of the known part."""
        learned, known = sde.drift(t, h, u, noise)
        energy = path_energy(sde, t, h, learned, dt)
        slope = jax.jacfwd(lambda h: sde.known_part(t, h, u))(h)
        backwards = inverse(jnp.eye(len(h), dtype=h.dtype) - IMPLICIT * dt * slope)
        k1 = backwards @ (learned + known)
        there, then = sde.drift(t + dt, h + bounded(sde, dt * k1), u, noise)
        k2 = backwards @ (there + then - 2 * k1)
        move = bounded(sde, dt * (1.5 * k1 + 0.5 * k2))
        return h + move + backwards @ sde.diffusion.spread(t, h, dw), energy


def bounded(sde: SDE, move: Float[Array, " state"]) -> Float[Array, " state"]:
    """A move that is no longer than a few standard deviations of each state."""
    largest = LARGEST_STEP * sde.learned.scale.states.sd
    return move / jnp.sqrt(1 + (move / largest) ** 2)


def bounded_slope(sde: SDE, move: Float[Array, " state"]) -> Float[Array, " state"]:
    """τ'(x) = (1 + (x/5s)²)^(−3/2) of `bounded`."""
    largest = LARGEST_STEP * sde.learned.scale.states.sd
    return (1 + (move / largest) ** 2) ** -1.5
