"""A fit that begins with what another has learned."""

from dataclasses import replace

import equinox as eqx
from jaxtyping import PRNGKeyArray

from hybridsde._errors import InputError
from hybridsde.data import Batch
from hybridsde.forecast import AbstractInference, GradientDescent, ModelSpec
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.model import BayesianSDE
from hybridsde.run.run import Run


def begin_from(inference: AbstractInference, spec: ModelSpec, other: Run) -> GradientDescent:
    """The same inference, begun with encoder, decoder and scales of another run."""
    source = other.spec
    if (
        not (isinstance(spec, HybridSDE) and isinstance(source, HybridSDE))
        or spec.latent is None
        or (spec.latent, spec.observed, spec.states)
        != (source.latent, source.observed, source.states)
    ):
        raise InputError(
            "`start_from` must be a run of a latent model with the same `latent`, `observed` and "
            "`states`."
        )
    assert isinstance(inference, GradientDescent)
    assert isinstance(other.forecaster, SDEForecaster)
    trained = other.forecaster.model

    def init(batch: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
        return with_maps_of(spec.init(batch, key=key), trained)

    return replace(inference, init=init)


def with_maps_of(model: BayesianSDE, source: BayesianSDE) -> BayesianSDE:
    """A model with encoder, decoder and scales of a trained one."""
    maps = (source.start, source.observation, source.scale)
    return eqx.tree_at(lambda m: (m.start, m.observation, m.scale), model, maps)
