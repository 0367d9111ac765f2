"""Several forecasters that forecast together."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import repetitions
from hybridsde._parameters import Relative
from hybridsde._types import PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.forecast.forecaster import AbstractForecaster, Prediction
from hybridsde.model import AbstractObservation


class Ensemble(AbstractForecaster):
    """Every member draws its share of the futures. Members are alike but for their numbers."""

    members: AbstractForecaster
    """Arrays with a leading axis of members."""

    def __init__(self, members: AbstractForecaster):
        self.members = members

    @property
    def observation(self) -> AbstractObservation:
        """That of the members: names and units; the noise differs."""
        return self.members.observation

    @property
    def context(self) -> int:
        """That of the members."""
        return self.members.context

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """The draws of the first member, then those of the second, and so on."""
        count = repetitions(self.members)
        if draws % count:
            raise ValueError(f"`draws` must be a multiple of the {count} members, but is {draws}.")

        def one(member: AbstractForecaster, key: PRNGKeyArray) -> Prediction:
            found = member.predict(
                batch, draws // count, paths_per_weight=paths_per_weight, key=key
            )
            sd = jnp.broadcast_to(found.sd, found.means.shape)
            return replace(found, sd=sd)

        parts = eqx.filter_vmap(one)(self.members, jr.split(key, count))
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), parts)

    def spreads(self) -> dict[str, Relative]:
        """All members are scaled alike."""
        return self.members.spreads()

    def describe(self) -> str:
        """As its members do."""
        return f"{repetitions(self.members)} of them together, each by {self.members.describe()}"
