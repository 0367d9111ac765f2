"""The same recordings with and without physics, with and without PAC term, and other systems."""

import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, notice
from hybridsde._types import Bool, Float
from hybridsde.fit import Callback, CallbackFactory, Training
from hybridsde.forecast import ModelSpec
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.declaration import ENSEMBLE, LIBRARY, NETWORK
from hybridsde.objective import AbstractObjective
from hybridsde.physics import NoPhysics
from hybridsde.project.floor import BRIEFLY, floor_loss, floor_model
from hybridsde.project.project import Project, judged_by, plain_scores, scores_in_spreads
from hybridsde.registry import SIMPLE, SYSTEMS
from hybridsde.run import Run, fit_many
from hybridsde.store.metadata import SCALED, SCALED_SCORES

PROPOSED, QUICK, ALL = "proposed", "simple", "all"
"""Which other systems to compare with: none, the simple ones, all of them, or some by name."""
OWN = "own loss"
"""The objective of another system."""
FLOOR = "true equations"
"""The row of the floor, where the settings of simulated recordings name it."""
EVIDENCE, BAYES, PAC_BAYES = "evidence", "bayes", "pac-bayes"
"""Of the learned part: of a library, and of networks without and with the PAC term."""
Part = tuple[str, str]
"""Method and objective."""
OF = ":"
"""Between a score and the one observation that it is of."""
EACH = ("rmse", "crps", "coverage90")
"""Scores that are kept of every observation."""


def name_of(method: str, objective: str) -> str:
    """How a row of a comparison is called."""
    return method if objective == OWN else f"{method}, {objective}"


@dataclass(frozen=True)
class Candidate:
    """One row of a comparison: a system, and how it is fitted where that is not left to it."""

    method: str
    objective: str
    spec: ModelSpec
    loss: AbstractObjective | None = None
    training: Training | None = None

    @property
    def name(self) -> str:
        """How it is called in tables."""
        return name_of(self.method, self.objective)


@dataclass(frozen=True)
class Compared:
    """What was found of a candidate: its fits, and a row of scores for each."""

    candidate: Candidate
    runs: tuple[Run, ...]
    scores: pd.DataFrame


def variants(project: Project) -> list[Candidate]:
    """Black box, physics alone and hybrid.

    Where the settings leave open what the learned part is made of, it is a library by its evidence
    in one row, and networks in others, with and without the PAC term. The term makes no difference
    where nothing is learned. What is known beside equations has a row for each kind, in which it
    is left out.
    """
    project = _whole(project)
    physics, losses = project.model.physics, _losses(project.model)
    blank = isinstance(physics, NoPhysics)
    known = {"black box": NoPhysics()} if blank else {"black box": NoPhysics(), "hybrid": physics}
    wanted = [
        (method, loss, replace(project.model, physics=one))
        for method, one in known.items()
        for loss in losses
    ]
    if not blank:
        alone = ("physics alone", BAYES, replace(project.model, hidden=None))
        wanted.insert(len(losses), alone)
    whole = wanted[-len(losses)]
    if project.model.undecided and project.model.rival == ENSEMBLE:
        # What `fit` tries beside the library where states are not measured.
        wanted += [
            (f"{method}, ensemble", OWN, replace(project.model, physics=one, learned=ENSEMBLE))
            for method, one in known.items()
        ]
    known = project.model.knowledge
    wanted += [
        (f"{whole[0]} without {kind}", whole[1], replace(whole[2], knowledge=known.without(kind)))
        for kind in known.kinds
    ]
    found = [_candidate(project, *one) for one in wanted]
    truth = project.settings.floor
    if truth is not None:
        model = floor_model(truth, project.model).settled(project.split.train)
        found.append(Candidate(FLOOR, OWN, model, floor_loss(model), BRIEFLY))
    return found


def _losses(model: HybridSDE) -> tuple[str, ...]:
    if model.undecided:
        return EVIDENCE, BAYES, PAC_BAYES
    return (EVIDENCE,) if model.scored else (BAYES, PAC_BAYES)


def _candidate(project: Project, method: str, loss: str, model: HybridSDE) -> Candidate:
    """As `fit` would do it, with this loss and what goes with it."""
    # A library needs no first guess of physical parameters, so there may be none yet.
    again = replace(model.numerics, typical=None)
    if loss == OWN:
        return Candidate(method, loss, replace(model, numerics=again).settled(project.split.train))
    if loss == EVIDENCE:
        model = replace(model, learned=LIBRARY) if model.undecided else model
        return Candidate(method, loss, model)
    if project.model.undecided:
        model = replace(model, learned=NETWORK, numerics=again).settled(project.split.train)
    train = project.settings.train.model_copy(update={"objective": loss})
    settings = project.settings.model_copy(update={"train": train})
    variant = replace(project, settings=settings, model=model)
    return Candidate(method, loss, model, variant.objective, variant.training)


def others(project: Project, methods: str) -> list[Candidate]:
    """Other systems by name: all that can take these recordings, or those that are asked for.

    With "all" or "simple", one that cannot is left out, and it is said why. Asked for by name it
    is an `InputError`, and so is a name that is not known.
    """
    if methods == PROPOSED:
        return []
    groups = {ALL: tuple(SYSTEMS), QUICK: SIMPLE}
    names = groups.get(methods) or tuple(one.strip() for one in methods.split(","))
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is no system to compare with. There are {', '.join(SYSTEMS)}, and "
            f"{QUICK} and {ALL} for some and all of them."
        )
    split, model, found = project.split, project.model, []
    positive = tuple(name for name in model.observations if name in model.positive)
    for name in names:
        spec = SYSTEMS[name](model.observations, positive, model.context)
        if spec.requirements.inputs and is_dataclass(spec):
            spec = replace(spec, inputs=tuple(model.inputs))
        try:
            spec.check_training(split.train)
            spec = spec.settled(split.train)
            for data in (project.test, split.validation):
                if data is not None:
                    spec.check_later(data)
        except ValueError as error:
            if methods not in groups:
                raise InputError(str(error)) from None
            notice(f"Left out: {error}")
            continue
        found.append(Candidate(name, OWN, spec))
    return found


def _whole(project: Project) -> Project:
    """With all training recordings, none of them set apart for a certificate."""
    train = project.settings.train.model_copy(update={"prior_fraction": None})
    return replace(project, settings=project.settings.model_copy(update={"train": train}))


def compare(
    project: Project,
    seeds: int,
    watch: CallbackFactory | None = None,
    compared: Collection[Candidate] = (),
    skip: Collection[Part] = (),
) -> Iterator[Compared]:
    """Fits and scores on the held-out recordings, for one candidate after the other.

    All share the split, are trained by their own settings and are calibrated in the same way.
    `compared` are other systems, which follow the variants.
    """
    for candidate in (*variants(project), *compared):
        if (candidate.method, candidate.objective) in skip:
            continue
        callbacks = watch(candidate.name) if watch else ()
        yield repeat(project, candidate, seeds, callbacks)


def repeat(
    project: Project, candidate: Candidate, seeds: int, callbacks: tuple[Callback, ...] = ()
) -> Compared:
    """One candidate from several seeds as one program; each equals the `fit` of its seed."""
    assert project.test is not None
    runs = fit_many(
        candidate.spec,
        project.split.train,
        seeds=seeds_of(project, seeds),
        objective=candidate.loss,
        training=candidate.training,
        validation=project.split.validation,
        horizon=project.settings.forecast.horizon,
        callbacks=callbacks,
    )
    settings, draws = project.settings.model_dump(), project.settings.forecast.draws
    judged = judged_by(project.split.train, project.test)
    kept, rows = [], []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for run in runs:
            table = run.score(project.test, draws=draws)
            known = replace(
                run.metadata, settings=settings, test_scores=plain_scores(table, *judged)
            )
            kept.append(replace(run, metadata=known))
            rows.append({**score_row(table, *judged), "seed": run.seed, "diverged": run.diverged})
    for message in dict.fromkeys(str(one.message) for one in said):
        notice(f"{candidate.name}: {message}")
    scores = pd.DataFrame(rows).assign(method=candidate.method, objective=candidate.objective)
    return Compared(candidate, tuple(kept), scores)


def score_row(
    table: pd.DataFrame,
    spread: Float[np.ndarray, " obs"],
    measured: Bool[np.ndarray, " obs"],
) -> dict[str, float]:
    """The scores of a fit in one row: over all values and, where there are several observations,
    of each and in spreads of the data.

    Errors in kilograms and in volts have no sum; in spreads, each observation counts alike.
    """
    row = {str(name): float(value) for name, value in table.loc["overall"].items()}
    each = table.drop(index="overall")
    if len(each) == 1:
        return row
    row |= scores_in_spreads(table, spread, measured)
    for name in EACH:
        values = zip(each.index, each[name].to_numpy(float), strict=True)
        row |= {f"{name}{OF}{observation}": float(value) for observation, value in values}
    return row


def error_of(score: str) -> str:
    """The column with the standard error of a score; no state can be called so."""
    return f"se_{score}" if OF in score else f"{score}_se"


def headline(scores: pd.DataFrame) -> str:
    """The score by which systems are judged: CRPS, in spreads where units would mix."""
    return f"crps{SCALED}" if f"crps{SCALED}" in scores else "crps"


def by_observation(table: pd.DataFrame, score: str) -> list[str]:
    """The columns that hold this score of each observation; none where there is only one."""
    return [name for name in table if name.startswith(f"{score}{OF}")]


def parts_of(scores: pd.DataFrame) -> list[Part]:
    """Every method and objective once: the variants first, then other systems in one order."""
    pairs = dict.fromkeys(zip(scores["method"], scores["objective"], strict=True))
    names = [*SYSTEMS, FLOOR]
    return sorted(pairs, key=lambda part: names.index(part[0]) if part[1] == OWN else -1)


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over seeds, one row per method and objective."""
    rows: list[dict[str, Any]] = []
    for method, objective in parts_of(scores):
        group = scores.loc[(scores["method"] == method) & (scores["objective"] == objective)]
        row = {"method": method, "objective": objective, "seeds": len(group)}
        further = [name for name in scores if OF in name or name in SCALED_SCORES]
        for name in ("rmse", "nll", "crps", "coverage90", *further):
            row[name] = group[name].mean()
            row[error_of(name)] = group[name].std(ddof=1) / np.sqrt(group[name].count())
        rows.append(row)
    return pd.DataFrame(rows)


def verdict(table: pd.DataFrame) -> str | None:
    """A sentence where another system forecasts better than every hybrid; None where none does."""
    own = table[table["method"] == "hybrid"]
    own = own if len(own) else table[table["objective"] != OWN]
    others = table[(table["objective"] == OWN) & (table["method"] != FLOOR)]
    by = headline(table)
    own, others = (one.loc[np.isfinite(one[by])] for one in (own, others))
    if not len(own) or not len(others):
        return None
    best, other = (one.iloc[int(np.argmin(one[by]))] for one in (own, others))
    if not other[by] < best[by]:
        return None
    error = np.hypot(np.nan_to_num(best[error_of(by)]), np.nan_to_num(other[error_of(by)]))
    sure = "" if best[by] - other[by] > 2 * error else ", within the noise of the seeds"
    units = ", in spreads of the data" if by != "crps" else ""
    return (
        f"{other['method']} forecasts these recordings better than the {best['method']} (CRPS "
        f"{other[by]:.4g} against {best[by]:.4g}{units}{sure}). Use it, or find out what the "
        "equations or the settings lack."
    )


def seeds_of(project: Project, count: int) -> list[int]:
    """The seeds of a comparison, from that of the settings on."""
    return [project.settings.train.seed + number for number in range(count)]
