"""The Python that does the same as a settings file: a script that can be run as it stands."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde.fit import Training
from hybridsde.hybrid import HybridSDE
from hybridsde.project.settings import ParameterSettings, PeriodSettings, Settings, TrainSettings

TEMPLATE = '''\
"""Fit, score and save the model of {title}. Run it where its recordings are."""

import hybridsde as hs
{imports}

def main() -> None:
    data = hs.read_table({files}, {columns}{separator})
    split = Split.of(data, {test}, {validation}, seed={seed})
{physics}    {made}(
{model}
    ){settled}
    run = hs.fit(
        model,
        split.train,
        validation=split.validation,
{fit}
    )
    print(run)
    if split.test is not None:
        print(run.score({test_rows}, draws={draws}))
    run.save({out})


if __name__ == "__main__":
    main()
'''
OBJECTIVES = {
    None: "EmpiricalPACBayes",
    "pac-bayes": "EmpiricalPACBayes",
    "bayes": "EmpiricalBayes",
    "vi": "ELBO",
    "sgld": "LogPosterior",
}
USUAL = {"diffusion": "learn", "noise": "learn", "start": "uncertain"}
"""What fields of a model are where they are left out."""


def python_text(settings: Settings, name: str, training: Training) -> str:
    """A script from settings; `training` is what they come to for their recordings."""
    _check(settings)
    data, train, horizon = settings.data, settings.train, settings.forecast.horizon
    model = settings.build_model(Path(), trust=False)
    periods = isinstance(data.test, PeriodSettings) or isinstance(data.validation, PeriodSettings)
    imports = [f"from hybridsde.project.split import {'Period, ' * periods}Split"]
    stepped = train.substeps and not settings.published
    if stepped:
        imports.insert(0, "from hybridsde.project.project import settled")
    rows = "split.test"
    if horizon:
        rows = (
            f"split.test.windows({model.context + horizon}, {horizon}, least={model.context + 1})"
        )
    return TEMPLATE.format(
        title=re.sub(r"[^\w. -]", "", name),
        imports="\n".join(imports) + "\n",
        files=literal(data.files),
        columns=_columns(settings),
        separator="" if data.separator == "," else f", separator={literal(data.separator)}",
        test=_part(data.test),
        validation=_part(data.validation),
        seed=train.seed,
        physics=_physics(settings),
        made="model, how = hs.published" if settings.published else "model = hs.HybridSDE",
        model=_lines({**_model(model), **_published(settings)}, 8),
        settled=f"\n    model = settled(model, split.train, {train.substeps})" if stepped else "",
        fit=_lines(_fit(settings, model, training), 8) + "\n        **how," * settings.published,
        test_rows=rows,
        draws=settings.forecast.draws,
        out=literal(f"{name}-again"),
    )


def _check(settings: Settings) -> None:
    if settings.physics.python:
        raise InputError(
            f"The known physics is Python code ({settings.physics.python}): import it, and give "
            "hs.known_drift(function) as physics."
        )
    if settings.train.prior_fraction is not None:
        raise InputError(
            "A fit with train.prior_fraction is `hs.fit_certified`, which divides the recordings "
            "itself. Use the settings file."
        )


def _columns(settings: Settings) -> str:
    columns = settings.columns
    given = {"states": tuple(columns.states)}
    given |= {
        one.name: getattr(columns, one.name)
        for one in fields(columns)
        if one.name != "states" and getattr(columns, one.name) not in (one.default, {})
    }
    return f"hs.Columns({', '.join(f'{name}={literal(value)}' for name, value in given.items())})"


def _part(given: Any) -> str:
    if not isinstance(given, PeriodSettings):
        return literal(given)
    period = given.build()
    return f"Period({literal(period.start)}, {literal(period.end)})"


def _physics(settings: Settings) -> str:
    given = settings.physics
    if not given.equations:
        return ""
    lines = [literal(one) for one in given.equations]
    lines += [f"{name}={_parameter(one)}" for name, one in given.parameters.items()]
    inside = "".join(f"        {line},\n" for line in lines)
    return f"    physics = hs.equations(\n{inside}    )\n"


def _parameter(given: float | ParameterSettings) -> str:
    if not isinstance(given, ParameterSettings):
        return literal(given)
    if not given.learn:
        return literal(given.value)
    if given.low is None:
        return f"hs.Free({literal(given.value)})"
    return f"hs.Bounded.of({literal(given.value)}, {literal(given.low)}, {literal(given.high)})"


def _model(model: HybridSDE) -> dict[str, str]:
    """Fields that say something else than where they are left out."""
    given = {"states": literal(tuple(model.states))}
    if model.physics.known(tuple(model.states), tuple(model.inputs)):
        given["physics"] = "physics"
    for one in fields(model):
        value = getattr(model, one.name)
        made = one.default_factory() if one.default_factory is not MISSING else one.default
        same = value == made or value == USUAL.get(one.name, MISSING)
        same = same or (one.name == "observed" and tuple(value) == tuple(model.states))
        if one.name not in ("states", "physics", "numerics") and not same:
            given[one.name] = literal(value)
    return given


def _published(settings: Settings) -> dict[str, str]:
    """What `hs.published` is told beside fields of the model."""
    if not settings.published:
        return {}
    train = settings.train
    told = ("objective", "samples", "delta", "substeps", "epochs", "batch_size", "learning_rate")
    given = {name: getattr(train, name) for name in (*told, "piece")}
    return {name: literal(value) for name, value in given.items() if value is not None}


def _fit(settings: Settings, model: HybridSDE, training: Training) -> dict[str, str]:
    train, given = settings.train, {}
    if settings.published:
        if settings.forecast.horizon is not None:
            given["horizon"] = literal(settings.forecast.horizon)
        return {**given, "seed": literal(train.seed)}
    if train.build_objective(model) is not None:
        samples = train.samples or model.samples
        delta = f", delta={literal(train.delta)}" * (train.objective in (None, "pac-bayes"))
        given["objective"] = (
            f"hs.{OBJECTIVES[train.objective]}(samples={samples}, "
            f"estimator={literal(train.estimator)}{delta})"
        )
    usual = TrainSettings()
    told = ("epochs", "batch_size", "learning_rate", "clip", "piece")
    if any(getattr(train, name) != getattr(usual, name) for name in told):
        chosen = ("epochs", "batch_size", "learning_rate", "clip", "longest", "passes")
        listed = ", ".join(f"{name}={literal(getattr(training, name))}" for name in chosen)
        given["training"] = f"hs.Training({listed})"
    if train.langevin is not None:
        given["langevin"] = "hs.Langevin()"
    if settings.forecast.horizon is not None:
        given["horizon"] = literal(settings.forecast.horizon)
    return {**given, "seed": literal(train.seed)}


def _lines(given: Mapping[str, str], indent: int) -> str:
    return "\n".join(f"{' ' * indent}{name}={value}," for name, value in given.items())


def literal(value: Any) -> str:
    """A value as Python reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        inside = ", ".join(map(literal, value)) + ("," if len(value) == 1 else "")
        return f"({inside})" if isinstance(value, tuple) else f"[{', '.join(map(literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
