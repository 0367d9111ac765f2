"""An ensemble of small networks, each found by second-order steps through the filter.

Every network begins at weights of its own and climbs to a maximum of its posterior together with
all other numbers: physical parameters, diffusion, noise and starts. A network is one explanation of
the data; what the ensemble disagrees about is what the data leave open (Lakshminarayanan, Pritzel
and Blundell 2017). All climb side by side as one program, by Fisher scoring; see `scoring`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from hybridsde._types import Float, PyTree
from hybridsde.data import Batch
from hybridsde.hybrid.scoring import (
    STUCK,
    Local,
    LogLikelihood,
    Prior,
    after_step,
    damped_step,
)
from hybridsde.model import BayesianSDE, MeanField, MixtureMLP
from hybridsde.model.sde import OwnNumbers
from hybridsde.simulate import AbstractSolver

ITERATIONS = 60
"""Steps of every network at most."""
FURTHEST = 3.0
"""No weight moves further in a step."""
ENOUGH = 0.02
"""A network that gains less than this in log-probability in a step is done."""
DAMPING = 1e-2
"""Of the first step."""


@dataclass(frozen=True)
class Ensembled:
    """What was found."""

    model: BayesianSDE
    log_likelihoods: tuple[float, ...]
    """Mean over the networks, after every step."""


@dataclass
class Climber:
    """One network on its way."""

    about: Local
    damping: float = DAMPING
    done: bool = False

    def take(self, tried: Local, prior: Prior) -> None:
        """Go where a step has led, if that is higher."""
        before = self.about
        self.about, self.damping, gain = after_step(before, tried, prior, self.damping)
        moved = self.about is not before
        self.done = self.damping > STUCK or (moved and gain < ENOUGH)


def fit_ensemble(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    report: Callable[[int, int, float], None],
) -> Ensembled:
    """Learn everything about a model whose learned part is a `MixtureMLP`."""
    network = model.network
    assert isinstance(network, MixtureMLP)
    likelihood = LogLikelihood(model, network.mean(), solver, batch)
    prior = Prior.of(likelihood, weight_precisions(network))
    weights = [np.asarray(ravel_pytree(network.member(n).mean)[0]) for n in range(network.count)]
    starts = np.stack([np.concatenate([one, likelihood.others]) for one in weights])
    climbers = [Climber(about) for about in likelihood.about_each(starts)]
    values = [_mean(climbers)]
    if not np.isfinite(values[0]):
        return Ensembled(model, (np.nan,))
    for step in range(ITERATIONS):
        tried = likelihood.about_each(
            np.stack([_proposed(likelihood, one, prior) for one in climbers])
        )
        for one, there in zip(climbers, tried, strict=True):
            if not one.done:
                one.take(there, prior)
        values.append(_mean(climbers))
        report(step + 1, ITERATIONS, values[-1])
        if all(one.done for one in climbers):
            report(ITERATIONS, ITERATIONS, values[-1])
            break
    return Ensembled(_gathered(likelihood, model, climbers, prior), tuple(values))


def weight_precisions(network: MixtureMLP) -> Float[np.ndarray, " weight"]:
    """1/σ₀² of every weight of one network under its prior."""
    sd = np.asarray(ravel_pytree(network.prior.value.sd())[0], float)
    return 1 / sd**2


def _mean(climbers: list[Climber]) -> float:
    return float(np.mean([one.about.value for one in climbers]))


def _proposed(
    likelihood: LogLikelihood, one: Climber, prior: Prior
) -> Float[np.ndarray, " number"]:
    everything = np.ones(len(one.about.at), bool)
    step = damped_step(likelihood, one.about, prior, everything, one.damping)
    count = likelihood.coefficients
    step[:count] = np.clip(step[:count], -FURTHEST, FURTHEST)
    return one.about.at + step


def _gathered(
    likelihood: LogLikelihood, model: BayesianSDE, climbers: list[Climber], prior: Prior
) -> BayesianSDE:
    """All networks in one model, each with its physical parameters and diffusion.

    Weights are Gaussian about each maximum, independent as in the rest of the model: of all such
    Gaussians, those with the variances 1/Hᵢᵢ are nearest to N(θ, H⁻¹) in KL(q ‖ ·). Noise and
    starts are the means over networks.
    """
    count = likelihood.coefficients
    network = model.network
    assert isinstance(network, MixtureMLP)
    _, restore = ravel_pytree(network.member(0).mean)
    means = [one.about.at[:count] for one in climbers]
    curved = [np.diag(one.about.information)[:count] + prior.precision[:count] for one in climbers]
    posterior = MeanField(
        _stacked([restore(jnp.asarray(one, jnp.float32)) for one in means]),
        _stacked([restore(jnp.asarray(-0.5 * np.log(one), jnp.float32)) for one in curved]),
    )
    middle = np.mean([one.about.at for one in climbers], 0)
    shared = likelihood.model(middle)
    each = [likelihood.model(one.about.at) for one in climbers]
    own = OwnNumbers.of(shared, each)
    return eqx.tree_at(
        lambda m: (m.network, m.own),
        shared,
        (MixtureMLP(posterior, network.prior), own),
        is_leaf=lambda leaf: leaf is None,
    )


def _stacked(trees: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def with_own_numbers(model: BayesianSDE, networks: int) -> BayesianSDE:
    """A model in the shape of a fitted ensemble, without differences between its networks."""
    own = OwnNumbers.of(model, [model] * networks)
    return eqx.tree_at(lambda m: m.own, model, own, is_leaf=lambda leaf: leaf is None)
