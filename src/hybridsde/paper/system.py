"""A simulated system of which part is known, and how its recordings are cut."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch, Trajectories
from hybridsde.hybrid import HybridSDE
from hybridsde.physics import AbstractPhysics, FunctionPhysics, known_drift


@dataclass(frozen=True)
class System:
    """A simulated system: its recording, its true equations, and the noisy knowledge of them."""

    states: tuple[str, ...]
    diffusion: tuple[float, ...]
    interval: float
    observe: Callable[..., Float[Array, "time state"]]
    """One recording from a `key`."""
    equations: Callable
    truth: Callable[[], FunctionPhysics]
    """All equations with the true parameters."""
    parameter_sd: float
    """Spread of the error in each known parameter, drawn once per repetition."""

    def noisy(self, *, key: PRNGKeyArray) -> FunctionPhysics:
        """All equations, each parameter off by its own normal error."""
        return self.blurred(self.truth(), key=key)

    def blurred(self, physics: AbstractPhysics, *, key: PRNGKeyArray) -> FunctionPhysics:
        """The same equations with a further error in every parameter."""
        if not isinstance(physics, FunctionPhysics):
            raise ValueError(f"Only parameters of a function can be blurred, not of {physics!r}.")
        errors = self.parameter_sd * jr.normal(key, (len(physics.parameters),))
        pairs = zip(physics.parameters.items(), errors, strict=True)
        return known_drift(self.equations, **{name: p.value + error for (name, p), error in pairs})

    def exact(self) -> HybridSDE:
        """The true SDE, observed all but exactly: in expectation, no forecast is better."""
        return HybridSDE(
            states=self.states,
            far="free",
            physics=self.truth(),
            diffusion=self.diffusion,
            noise=1e-3,
            hidden=None,
            start="first",
        )

    def gate(self, known: tuple[str, ...]) -> Float[Array, " state"]:
        """γ that lets the named equations through and no others."""
        return jnp.array([float(name in known) for name in self.states])


@dataclass(frozen=True)
class Protocol:
    """How a recording is cut: its first half into training sequences, its second into tests."""

    train_sequences: int
    train_length: int
    test_sequences: int
    test_length: int
    observations: int | None = None
    """How many of a recording are used; all, if not given."""
    one_recording: bool = False
    """Whether all repetitions see the same recording, and differ in what is known, in the weights
    and in what is drawn."""

    def cut(self, recording: Trajectories) -> tuple[Trajectories, Trajectories]:
        """Training and test sequences of one recording."""
        first, second = recording.windows((self.observations or recording.times.shape[1]) // 2)
        return (
            first.windows(self.train_length).take(range(self.train_sequences)),
            second.windows(self.test_length).take(range(self.test_sequences)),
        )


def recording_keys(protocol: Protocol, keys: Keys) -> Keys:
    """The key of the recording of every repetition."""
    each = jax.vmap(lambda key: jr.split(key, 3)[0])(keys)
    return jnp.repeat(each[:1], len(each), 0) if protocol.one_recording else each


def recording(system: System, protocol: Protocol, *, key: PRNGKeyArray) -> tuple[Batch, Batch]:
    """Training and test sequences of one recording. Can be compiled and mapped."""
    path = system.observe(key=key)[: protocol.observations]

    def sequences(first: int, count: int, length: int) -> Batch:
        values = path[first : first + count * length].reshape(count, length, -1)
        return Batch.regular(values, system.interval, first)

    return (
        sequences(0, protocol.train_sequences, protocol.train_length),
        sequences(len(path) // 2, protocol.test_sequences, protocol.test_length),
    )
