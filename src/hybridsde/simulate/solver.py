"""Solvers: one step of the SDE, and the path KL that the step adds."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Array, Float, PyTree, Scalar
from hybridsde.data.checks import check_whole
from hybridsde.model import SDE

LARGEST_STEP = 5.0
"""No tamed step is longer, in standard deviations of the state."""


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
        energy = 0.5 * jnp.sum(sde.diffusion.whiten(t, h, learned) ** 2) * dt
        return h + (learned + known) * dt + sde.diffusion.spread(t, h, dw), energy


class TamedEuler(AbstractSolver):
    """Euler–Maruyama with bounded steps: h ← h + x/√(1 + (x/5s)²) + G ΔW, x = (f + γ∘r) Δt.

    s is the spread of each state in the training data. Where the drift grows faster than linearly,
    as x·y does, plain Euler paths can explode although those of the SDE do not; tamed ones cannot
    (Hutzenthaler, Jentzen and Kloeden 2012). A step of a tenth of s is changed by a
    five-thousandth of itself. Strong order ½, Itô; the path KL is that of the plain scheme.
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
        """One bounded step."""
        learned, known = sde.drift(t, h, u, noise)
        energy = 0.5 * jnp.sum(sde.diffusion.whiten(t, h, learned) ** 2) * dt
        move = (learned + known) * dt
        largest = LARGEST_STEP * sde.learned.scale.state_sd
        tamed = move / jnp.sqrt(1 + (move / largest) ** 2)
        return h + tamed + sde.diffusion.spread(t, h, dw), energy
