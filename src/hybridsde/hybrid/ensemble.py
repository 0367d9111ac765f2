"""An ensemble of small networks, each found by second-order steps.

Every network begins at weights of its own and climbs to a maximum of its posterior together with
all other numbers: physical parameters, diffusion, noise and starts. A network is one explanation of
the data; what the ensemble disagrees about is what the data leave open (Lakshminarayanan, Pritzel
and Blundell 2017). All climb side by side as one program, by Fisher scoring; see `scoring`. Some
end at poor maxima, so twice as many begin as are kept.

They climb through the filter, or where states are not measured through simulations of whole
recordings, which look further ahead; see `simulations`.
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
from hybridsde.hybrid.climbing import Climber, Search
from hybridsde.hybrid.scoring import LogLikelihood, Prior
from hybridsde.hybrid.simulations import (
    ITERATIONS,
    Climbed,
    beside,
    climb_simulations,
    weight_precisions,
)
from hybridsde.model import BayesianSDE, MeanField, MixtureMLP
from hybridsde.model.sde import OwnNumbers
from hybridsde.simulate import AbstractSolver


@dataclass(frozen=True)
class Ensembled:
    """What was found."""

    model: BayesianSDE
    log_likelihoods: tuple[float, ...]
    """Mean over the networks, after every step."""


def fit_ensemble(
    model: BayesianSDE,
    others: MixtureMLP,
    solver: AbstractSolver,
    batch: Batch,
    report: Callable[[int, int, float], None],
    *,
    ahead: bool,
) -> Ensembled:
    """Learn everything about a model whose learned part is a `MixtureMLP`.

    `others` are as many further networks to begin with. Looking `ahead`, they fit simulations.
    """
    network = model.network
    assert isinstance(network, MixtureMLP)
    weights = np.concatenate([_weights(network), _weights(others)])
    climb = climb_simulations if ahead else _climb_filtered
    found = climb(model, solver, batch, weights, report)
    if found is None:
        return Ensembled(model, (np.nan,))
    best = [one for one in found.search.best(found.climbers, network.count) if one.about.finite]
    if not best:
        return Ensembled(model, (np.nan,))
    turns = [best[n % len(best)] for n in range(network.count)]
    return Ensembled(_gathered(found.search, model, turns), tuple(found.values))


def _climb_filtered(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    weights: Float[np.ndarray, "network weight"],
    report: Callable[[int, int, float], None],
) -> Climbed:
    """Climb the likelihood of the filter, from row to row."""
    network = model.network
    assert isinstance(network, MixtureMLP)
    likelihood = LogLikelihood(model, network.mean(), solver, batch)
    prior = Prior.of(likelihood, weight_precisions(network))
    search = Search(likelihood, prior, ITERATIONS, report)
    return Climbed(search, *search.climb(beside(weights, likelihood.others)))


def _weights(network: MixtureMLP) -> Float[np.ndarray, "network weight"]:
    each = [ravel_pytree(network.member(n).mean)[0] for n in range(network.count)]
    return np.stack([np.asarray(one, float) for one in each])


def _gathered(search: Search, model: BayesianSDE, climbers: list[Climber]) -> BayesianSDE:
    """All networks in one model, each with its physical parameters, diffusion and start.

    Weights are Gaussian about each maximum, independent as in the rest of the model: of all such
    Gaussians, those with the variances 1/Hᵢᵢ are nearest to N(θ, H⁻¹) in KL(q ‖ ·). The noise is
    the mean over networks.
    """
    likelihood, prior = search.likelihood, search.prior
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
