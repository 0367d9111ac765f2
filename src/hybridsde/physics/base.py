"""The known part of the drift, r_ξ."""

import abc
from collections.abc import Mapping

import equinox as eqx

from hybridsde._types import Scalar


class AbstractPhysics(eqx.Module):
    """Known rates of change of some of the states, in raw units.

    dh = r_ξ(h, t) dt      (Haussmann et al. 2021, eq. prior-ode)
    """

    @abc.abstractmethod
    def __call__(
        self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """The rate of every state whose equation is known, by name."""

    @abc.abstractmethod
    def known(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """Which of these states have an equation; a `ValueError` if a name does not fit."""


class NoPhysics(AbstractPhysics):
    """Nothing is known: the model is a black box."""

    def __call__(
        self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """No rates."""
        del t, states, inputs
        return {}

    def known(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """No states."""
        del states, inputs
        return ()
