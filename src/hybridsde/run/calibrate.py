"""A last look at the diffusion: forecasts of recordings that were not trained on."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds
from hybridsde._errors import InputError
from hybridsde._parameters import Relative
from hybridsde._types import Array, Float, Keys, PRNGKeyArray, Scalar
from hybridsde.certify import Seen
from hybridsde.certify.seen import POSTERIOR
from hybridsde.data import Batch, Trajectories
from hybridsde.forecast import crps
from hybridsde.model import BayesianSDE, DiagonalDiffusion
from hybridsde.run.run import Run
from hybridsde.simulate import AbstractSolver, simulate

FACTORS = (0.1, 0.15, 0.22, 0.33, 0.45, 0.6, 0.75, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0)
NOISE_FACTORS = (0.5, 0.6, 0.75, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0)
"""CRPS hardly feels small noise, but densities do: it is not shrunk further than to half."""
DRAWS = 64
CALIBRATION = 2
"""Folded into the seed of a run to give the key of its calibration."""


def calibrate(run: Run, data: Trajectories) -> Run:
    """Multiply a learned G, then learned noise, by the factor whose forecasts are best.

    Filtering judges both by what happens between neighbouring observations. Where measurement
    errors or missing physics last longer than that, forecasts over many steps need other spreads.
    The best forecast of `data` is that of lowest CRPS; the factor nearest to one that is within a
    standard error of it is kept. Haussmann et al. 2021 choose G on held-out data in the same
    spirit.
    """
    if not any(_learned(run.model)):
        raise InputError("Only a learned diffusion or noise can be calibrated: declare 'learn'.")
    seen = Seen.from_facts(run.facts)
    if POSTERIOR in seen.steps:
        raise InputError(
            "This run was trained on trajectories that are to certify it, so its spreads must stay "
            "as they are. Calibrate before `certified`, or fit again."
        )
    run.declared.check_later(data)
    batch = run.declared.batch(data)
    key = jr.fold_in(jr.key(run.seed), CALIBRATION)
    factors = _best_factors(run.model, run.solver, batch, key)
    facts = {
        **run.facts,
        **seen.add(calibration=data).facts(),
        "calibration": {name: float(f) for name, f in factors.items()},
    }
    return replace(run, model=scale_spreads(run.model, **factors), facts=facts)


@eqx.filter_jit
def calibrate_many(
    models: BayesianSDE, solver: AbstractSolver, batch: Batch, keys: Keys
) -> BayesianSDE:
    """`calibrate` for models along a leading `seed` axis, with one batch for each."""

    def one(model: BayesianSDE, batch: Batch, key: PRNGKeyArray) -> BayesianSDE:
        factors = best_factors(model, solver, batch, key=jr.fold_in(key, CALIBRATION))
        return eqx.filter(scale_spreads(model, **factors), eqx.is_array)

    scaled = over_seeds(one, models, batch, keys, one_by_one=True)
    return eqx.combine(scaled, models)


@eqx.filter_jit
def _best_factors(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch, key: PRNGKeyArray
) -> dict[str, Scalar]:
    return best_factors(model, solver, batch, key=key)


def best_factors(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch, *, key: PRNGKeyArray
) -> dict[str, Scalar]:
    """The factors of those above with the best CRPS: of G first, then of the noise.

    Every observation counts in units of its own spread, every series as much as another.
    """
    path_key, noise_key = jr.split(key)
    later = slice(model.context, None)
    values, seen = batch.values[:, later], batch.observed[:, later]
    spread = jnp.std(values, (0, 1), where=seen)
    counted = seen & (spread > 0)

    def losses(diffusion: Scalar, noise: Scalar) -> Float[Array, " series"]:
        scaled = scale_spreads(model, diffusion, noise)
        states = simulate(scaled, solver, batch, samples=DRAWS, key=path_key).states[:, :, later]
        draws = scaled.observation.sample(states, key=noise_key)
        relative: Float[Array, "series time obs"] = crps(draws, values) / spread
        found = jnp.sum(relative, (1, 2), where=counted) / jnp.maximum(counted.sum((1, 2)), 1)
        return jnp.where(jnp.isfinite(found), found, jnp.inf)

    factors, one = jnp.array(FACTORS), jnp.ones(())
    diffusion = least_change(factors, jax.lax.map(lambda factor: losses(factor, one), factors))
    noises = jnp.array(NOISE_FACTORS)
    noise = least_change(noises, jax.lax.map(lambda factor: losses(diffusion, factor), noises))
    return {"diffusion": diffusion, "noise": noise}


def least_change(factors: Float[Array, " factor"], losses: Float[Array, "factor series"]) -> Scalar:
    """The factor nearest to one whose loss is within a standard error of the lowest.

    The error is that of the mean difference between the two over series; few series seldom tell
    neighbouring factors apart. One where no loss is finite.
    """
    means = losses.mean(1)
    best = jnp.argmin(means)
    excess = losses - losses[best]
    error = jnp.std(excess, 1) / jnp.sqrt(jnp.maximum(losses.shape[1] - 1, 1))
    as_good = (excess.mean(1) <= error) & jnp.isfinite(means)
    change = jnp.where(as_good, jnp.abs(jnp.log(factors)), jnp.inf)
    return jnp.where(jnp.any(as_good), factors[jnp.argmin(change)], 1.0)


def scale_spreads(model: BayesianSDE, diffusion: Scalar, noise: Scalar) -> BayesianSDE:
    """The same model with G and σ multiplied by numbers; what is not learned is left alone."""
    learned_diffusion, learned_noise = _learned(model)
    if learned_diffusion:
        model = eqx.tree_at(
            lambda m: m.diffusion.sd.unit.frozen,
            model,
            replace_fn=lambda unit: unit * diffusion,
        )
    if learned_noise:
        model = eqx.tree_at(
            lambda m: m.observation.sd.unit.frozen, model, replace_fn=lambda unit: unit * noise
        )
    return model


def _learned(model: BayesianSDE) -> tuple[bool, bool]:
    """Whether G and σ are learned from a guess."""
    g = model.diffusion
    diffusion = isinstance(g, DiagonalDiffusion) and isinstance(g.sd, Relative)
    return diffusion, isinstance(model.observation.sd, Relative)
