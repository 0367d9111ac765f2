"""The same recordings with and without physics, with and without PAC term, and other systems."""

import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde._devices import same_for_seeds
from hybridsde._errors import InputError, InputNotice
from hybridsde._types import Array
from hybridsde.baselines import NAMED, AbstractBaseline, score_forecasters
from hybridsde.fit import Callback, Fitted, Watch, train_many
from hybridsde.forecast import SCORES, score_many
from hybridsde.model import HybridSDE
from hybridsde.run.calibrate import calibrate_many
from hybridsde.run.project import Project
from hybridsde.run.settings import PhysicsSettings

PROPOSED, ALL = "proposed", "all"
"""Which other systems to compare with: none of them, all of them, or some by name."""
OWN = "own loss"
"""The objective of another system."""
Part = tuple[str, str]
"""Method and objective."""


@dataclass(frozen=True)
class Variant:
    """One row of a comparison."""

    method: str
    objective: str
    project: Project

    @property
    def name(self) -> str:
        """How it is called in tables."""
        return f"{self.method}, {self.objective}"


def variants(project: Project) -> list[Variant]:
    """Black box, physics alone and hybrid; the PAC term makes no difference without weights."""
    project = _whole(project)
    settings = project.settings
    black = settings.model_copy(update={"physics": PhysicsSettings()})
    alone = settings.model_copy(update={"model": settings.model.model_copy(update={"hidden": []})})
    chosen = [("black box", black, "bayes"), ("black box", black, "pac-bayes")]
    if settings.physics != PhysicsSettings():
        chosen += [("physics alone", alone, "bayes")]
        chosen += [("hybrid", settings, "bayes"), ("hybrid", settings, "pac-bayes")]
    rows = []
    for method, wanted, objective in chosen:
        train = wanted.train.model_copy(update={"objective": objective})
        wanted = wanted.model_copy(update={"train": train})
        model = wanted.build_model(project.source.parent, trust=True)
        rows.append(Variant(method, objective, replace(project, settings=wanted, model=model)))
    return rows


def others(project: Project, methods: str) -> dict[str, AbstractBaseline]:
    """Other systems by name: all that can take these recordings, or those that are asked for.

    With "all", one that cannot is left out, and it is said why. Asked for by name it is an
    `InputError`, and so is a name that is not known.
    """
    if methods == PROPOSED:
        return {}
    names = tuple(NAMED) if methods == ALL else tuple(one.strip() for one in methods.split(","))
    unknown = [name for name in names if name not in NAMED]
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is no system to compare with. There are {', '.join(NAMED)}, and "
            f"{ALL} for all of them."
        )
    project, model, found = _whole(project), project.model, {}
    for name in names:
        declared = NAMED[name](model.observations, _positive(model), model.context)
        try:
            for data in (project.pieces, project.test, project.validation):
                if data is not None:
                    declared.check(data)
        except ValueError as error:
            if methods != ALL:
                raise InputError(str(error)) from None
            warnings.warn(f"Left out: {error}", InputNotice, stacklevel=2)
            continue
        found[name] = declared
    return found


def _positive(model: HybridSDE) -> tuple[str, ...]:
    return tuple(name for name in model.observations if name in model.positive)


def _whole(project: Project) -> Project:
    """With all training recordings, none of them set apart for a certificate."""
    train = project.settings.train.model_copy(update={"prior_fraction": None})
    return replace(project, settings=project.settings.model_copy(update={"train": train}))


def compare(
    project: Project,
    seeds: int,
    watch: Watch | None = None,
    compared: Mapping[str, AbstractBaseline] = MappingProxyType({}),
    skip: Collection[Part] = (),
) -> Iterator[pd.DataFrame]:
    """Scores on the held-out recordings, a row per seed, for one variant after the other.

    All share the split. Other systems (`others`) follow, trained for as many epochs.
    """
    project = _whole(project)
    for variant in variants(project):
        if (variant.method, variant.objective) not in skip:
            fitted = fit_seeds(variant.project, seeds, watch(variant.name) if watch else ())
            scores = score_seeds(variant.project, fitted, seeds)
            yield scores.assign(method=variant.method, objective=variant.objective)
    for name, declared in compared.items():
        if (name, OWN) not in skip:
            scores = score_other(project, declared, seeds, watch(name) if watch else ())
            yield scores.assign(method=name, objective=OWN)


def score_other(
    project: Project,
    declared: AbstractBaseline,
    seeds: int,
    callbacks: tuple[Callback, ...] = (),
) -> pd.DataFrame:
    """Another system from several seeds: every score on the held-out recordings."""
    assert project.test is not None
    numbers, kept = seeds_of(project, seeds), project.validation
    fitted = declared.fit_many(
        declared.batch(project.pieces),
        validation=None if kept is None else declared.batch(kept),
        training=project.training,
        callbacks=callbacks,
        keys=jax.vmap(jr.key)(numbers),
    )
    keys, draws = jax.vmap(jr.key)(numbers + 1), project.settings.forecast.draws
    test = declared.batch(project.test)
    table = score_forecasters(fitted.model, test, declared.context, draws, keys)
    frame = pd.DataFrame({name: np.asarray(table[name][:, -1], float) for name in SCORES})
    return frame.assign(seed=np.asarray(numbers), diverged=fitted.diverged)


def fit_seeds(project: Project, seeds: int, callbacks: tuple[Callback, ...] = ()) -> Fitted:
    """The same fit from several seeds, as one program; each equals `Project.fit` of its seed."""
    keys = jax.vmap(lambda seed: jr.split(jr.key(seed)))(seeds_of(project, seeds))
    batch = project.model.batch(project.pieces)
    models = eqx.filter_vmap(lambda key: project.model.init(batch, key=key))(keys[:, 0])
    kept = project.validation
    validation = None if kept is None else same_for_seeds(project.model.batch(kept), seeds)
    fitted = train_many(
        models,
        same_for_seeds(batch, seeds),
        project.objective,
        solver=project.solver,
        training=project.training,
        validation=validation,
        callbacks=callbacks,
        keys=keys[:, 1],
    )
    if project.held_out is None:
        return fitted
    held_out = same_for_seeds(project.model.batch(project.held_out), seeds)
    roots = jax.vmap(jr.key)(seeds_of(project, seeds))
    return replace(fitted, model=calibrate_many(fitted.model, project.solver, held_out, roots))


def score_seeds(project: Project, fitted: Fitted, seeds: int) -> pd.DataFrame:
    """Every score on the held-out recordings, one row per seed."""
    assert project.test is not None
    batch = project.model.batch(project.test)
    keys = jax.vmap(jr.key)(seeds_of(project, seeds) + 1)
    draws = project.settings.forecast.draws
    table = score_many(fitted.model, project.solver, same_for_seeds(batch, seeds), draws, keys)
    frame = pd.DataFrame({name: np.asarray(table[name][:, -1], float) for name in SCORES})
    return frame.assign(seed=np.asarray(seeds_of(project, seeds)), diverged=fitted.diverged)


def parts_of(scores: pd.DataFrame) -> list[Part]:
    """Every method and objective once: the variants first, then other systems in one order."""
    pairs = dict.fromkeys(zip(scores["method"], scores["objective"], strict=True))
    names = list(NAMED)
    return sorted(pairs, key=lambda part: names.index(part[0]) if part[1] == OWN else -1)


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over seeds, one row per method and objective."""
    rows: list[dict[str, Any]] = []
    for method, objective in parts_of(scores):
        group = scores.loc[(scores["method"] == method) & (scores["objective"] == objective)]
        row = {"method": method, "objective": objective, "seeds": len(group)}
        for name in ("rmse", "nll", "crps", "coverage90"):
            row[name] = group[name].mean()
            row[f"{name}_se"] = group[name].std(ddof=1) / np.sqrt(group[name].count())
        rows.append(row)
    return pd.DataFrame(rows)


def seeds_of(project: Project, count: int) -> Array:
    """The seeds of a comparison, from that of the settings on."""
    return project.settings.train.seed + jnp.arange(count)
