"""`fit`: from a declared model and recordings to a run."""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde._cache import keep_compiled_here, make_room
from hybridsde._errors import FitFailed, notice
from hybridsde._types import Bool
from hybridsde.certify import UsedData
from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Callback, Checkpoint, Fitted, Langevin, Training
from hybridsde.fit.checkpoint import fingerprint
from hybridsde.forecast import (
    AbstractForecaster,
    AbstractInference,
    GradientDescent,
    ModelSpec,
)
from hybridsde.forecast.plausible import plausible_range
from hybridsde.forecast.spec import common_step
from hybridsde.hybrid import FrozenDrift, HybridSDE, SDEForecaster
from hybridsde.hybrid.declaration import LIBRARY
from hybridsde.hybrid.failure import parameters_at_limits, why_not_finite
from hybridsde.hybrid.free_run import leaving
from hybridsde.hybrid.offsets import with_smallest
from hybridsde.hybrid.parameters import Estimates, estimates, same_work
from hybridsde.model import Standardiser
from hybridsde.objective import AbstractObjective, solver_of
from hybridsde.physics import NoPhysics
from hybridsde.run.calibrate import calibrate
from hybridsde.run.choice import (
    better_of,
    doubt_about,
    say_contradiction,
    set_apart,
    with_choice,
)
from hybridsde.run.progress_line import progress_line, somebody_looks
from hybridsde.run.request import check_request
from hybridsde.run.run import Run
from hybridsde.run.transfer import begin_from
from hybridsde.run.windows import forecast_windows, training_batch, training_windows
from hybridsde.store.folder import TRIAL_CHECKPOINT
from hybridsde.store.metadata import RunMetadata
from hybridsde.store.spec_io import physics_source, write_spec

TRIAL, REST = 0.5, 0.6
"""Of the usual epochs: enough to tell whether a library is beaten, and what is left to do then."""


def fit(
    model: ModelSpec,
    data: Trajectories,
    *,
    objective: AbstractObjective | None = None,
    training: Training | None = None,
    langevin: Langevin | None = None,
    validation: Trajectories | None = None,
    horizon: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | Path | None = None,
    start_from: Run | None = None,
    progress: bool | None = None,
    seed: int = 0,
) -> Run:
    """Fit a declared model to recordings. The same seed gives the same numbers.

    What is left out is chosen as on the command line. A `HybridSDE` gets a library of terms, by
    their evidence with the Wiener noise filtered out, and Heun's rule with steps that suit the
    data. Networks are trained by Empirical PAC-Bayes, Adam with cosine decay for a few thousand
    steps; see `learned`. A system of `hybridsde.baselines` comes with a loss of its own.

    - `validation`: recordings that choose the epoch to keep; estimated spreads are then calibrated
      on forecasts of them, `horizon` rows ahead (to their ends by default).
    - `langevin`: steps after the fit that turn one set of weights into a sample of them (SGLD).
    - `checkpoint`: the name of a file. A fit that was killed goes on where it was and ends with
      the same numbers.
    - `start_from`: a run of a latent model; encoder and decoder begin as its, so that latent
      states mean the same.
    - `progress`: a line that says how far the fit is. By default it is shown in terminals and
      notebooks, where no `callbacks` are given.

    What is compiled is kept for the next session, as by the commands; `HYBRIDSDE_CACHE=off`
    switches that off.
    """
    keep_compiled_here()
    check_request(
        model,
        data,
        objective,
        langevin,
        validation=validation,
        horizon=horizon,
        checkpoint=checkpoint,
        start_from=start_from,
    )
    callbacks = tuple(callbacks)
    if progress is None:
        progress = not callbacks and somebody_looks(sys.stderr)
    free = objective is None and langevin is None and start_from is None
    with progress_line(progress) as line:
        same = {
            "validation": validation,
            "horizon": horizon,
            "callbacks": (*callbacks, *line),
            "checkpoint": checkpoint,
            "seed": seed,
        }
        if isinstance(model, HybridSDE) and model.undecided and free:
            run = _fit_chosen(model, data, training, **same)
        else:
            run = _fit(model, data, objective, training, langevin, start_from, **same)
        run, said = _looked_over(run, data)
    for one in said:
        notice(one)
    return run


def _looked_over(run: Run, data: Trajectories) -> tuple[Run, list[str]]:
    """What a fitted model should not be trusted with, before anybody forecasts with it."""
    said = parameters_at_limits(run.spec, run.forecaster)
    if not (isinstance(run.spec, HybridSDE) and isinstance(run.forecaster, SDEForecaster)):
        return run, said
    left = leaving(run.spec, run.forecaster, data, run.seed)
    if not left:
        return run, said
    said += [one.sentence(name) for name, one in left.items()]
    plain = {name: asdict(one) for name, one in left.items()}
    return replace(run, metadata=replace(run.metadata, leaves=plain)), said


def _fit_chosen(model: HybridSDE, data: Trajectories, training: Training | None, **same) -> Run:
    """A library first, in seconds; networks too where it leaves a doubt that can be settled."""
    if _leaves_steps_open(None, training):
        model.check_training(data)
        model = model.settled(data)  # once for all fits of it
    library = _fit(replace(model, learned=LIBRARY), data, **same)
    batch = training_batch(library.spec, data, None)
    doubt = doubt_about(library, batch)
    if doubt is None:
        return with_choice(
            library, "library: nothing in its errors from row to row speaks for a missing term."
        )
    wanted = replace(model, learned=model.rival)
    if not model.hidden_states:
        # A library needs no first guess of physical parameters, so there may be none yet.
        wanted = replace(wanted, numerics=replace(model.numerics, typical=None))
    validation = same["validation"]
    if validation is None:
        return _judged_apart(library, wanted, data, training, doubt, same)
    try:
        network = _fit(wanted, data, training=training, **same)
    except FitFailed as error:
        return with_choice(library, f"library, though {doubt}: networks failed ({error})")
    windows = forecast_windows(validation, same["horizon"], model.context)
    best = better_of(library, network, windows, doubt, "the validation data")
    if not (isinstance(model.physics, NoPhysics) or model.hidden_states):
        _compare_without(best, model, data, windows, same)
    return best


def _judged_apart(
    library: Run,
    wanted: HybridSDE,
    data: Trajectories,
    training: Training | None,
    doubt: str,
    same: dict[str, Any],
) -> Run:
    """Without validation data, networks must forecast a part better that they have not seen.

    They are trained for a part of the time. Where they do, they go on with everything. The library
    has seen it, so it is kept unless they are clearly better. Where states are not measured it is
    fitted without that part too: what it leaves out there is in its noise, which hides how far its
    forecasts go astray on other rows.
    """
    apart = set_apart(data, same["seed"])
    if apart is None:
        return with_choice(library, f"library, though {doubt}: there are too few data to judge.")
    kept = same["checkpoint"]
    beside = None if kept is None else Path(f"{kept}{TRIAL_CHECKPOINT}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = {**same, "checkpoint": beside}
            trial = _fit(wanted, data, training=training, effort=TRIAL, apart=apart.rows, **own)
            rival, unseen = library, "the networks"
            if wanted.hidden_states:
                own = {**same, "checkpoint": None, "callbacks": ()}
                rival, unseen = _fit(library.spec, data, apart=apart.rows, **own), "they"
    except (FitFailed, ValueError) as error:
        if beside is not None and beside.exists():
            raise  # what was left there may be of another fit
        why = f"library, though {doubt}: networks could not be tried ({error})"
        return with_choice(library, why)
    windows = forecast_windows(apart.recordings, same["horizon"], wanted.context)
    best = better_of(rival, trial, windows, doubt, f"recordings that {unseen} had not seen")
    kept_run = library
    if best.spec is trial.spec:
        kept_run = _fit(wanted, data, training=training, effort=REST, begun=trial, **same)
    best = with_choice(kept_run, str(best.metadata.choice))
    if beside is not None:
        beside.unlink(missing_ok=True)
    return best


def _compare_without(
    best: Run, model: HybridSDE, data: Trajectories, windows: Trajectories, same: dict[str, Any]
) -> None:
    """Say where a library alone forecasts better; whatever happens to it, the fit is there."""
    blank = replace(model, physics=NoPhysics(), gate=None, exact=(), learned=LIBRARY)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            without = _fit(blank, data, **{**same, "callbacks": (), "checkpoint": None})
    except (FitFailed, ValueError):
        return
    say_contradiction(best, without, windows)


@dataclass(frozen=True)
class Prepared:
    """A model that is decided and its recordings, ready for inference from any seed."""

    model: ModelSpec
    data: Trajectories
    validation: Trajectories | None
    inference: AbstractInference
    batch: Batch
    """The training recordings as they are trained on."""
    held_out: Batch | None
    """The validation recordings likewise."""
    interval: float | None
    used: UsedData

    @classmethod
    def of(
        cls,
        model: ModelSpec,
        data: Trajectories,
        objective: AbstractObjective | None = None,
        training: Training | None = None,
        langevin: Langevin | None = None,
        *,
        validation: Trajectories | None,
        apart: Bool[np.ndarray, "series time"] | None = None,
    ) -> "Prepared":
        """Check the recordings and choose what is left open: steps of time, loss, schedule."""
        model.check_training(data)
        if _leaves_steps_open(objective, training):
            model = model.settled(data)
        elif isinstance(model, HybridSDE):
            model = with_smallest(model, data)
        interval = common_step(data, model.name) if model.requirements.regular else None
        held_out = None
        if validation is not None:
            model.check_later(validation)
            if interval is not None:
                common_step(validation, model.name, interval)
            held_out = training_batch(model, validation, training)
        batch = training_batch(model, data, training, apart)
        inference = model.inference(batch, objective, training, langevin)
        used = UsedData.of(train=data, validation=validation)
        return cls(model, data, validation, inference, batch, held_out, interval, used)

    def run(self, fitted: Fitted[AbstractForecaster], seed: int) -> Run:
        """What inference has found from a seed, with all that is to be remembered of it."""
        found = learned_numbers(fitted.model, self.batch)
        say_same_work(self.model, found.parameters)
        return self.remembered(fitted, seed, found)

    def remembered(self, fitted: Fitted[AbstractForecaster], seed: int, found: Estimates) -> Run:
        """The same, with learned numbers whose errors are known already."""
        whole = self.model.batch(self.data)
        spread = np.asarray(Standardiser.of(whole.values, whole.observed).sd, float)
        trained = bool(fitted.history) and isinstance(self.inference, GradientDescent)
        metadata = RunMetadata(
            self.used,
            _loss_name(self.inference),
            tuple(spread.tolist()),
            self.interval,
            kept_epoch=int(fitted.kept) if trained else None,
            parameters=found.parameters or None,
            diffusion=found.diffusion or None,
            noise=found.noise or None,
            plausible=plausible_range(self.model.centred(self.data), self.model.positive),
            epoch=self.data.epoch,
            usual_step=self.data.interval,
        )
        history = pd.DataFrame(fitted.history).rename_axis("epoch")
        return Run(self.model, fitted.model, history, bool(fitted.diverged), seed, metadata)


def _fit(
    model: ModelSpec,
    data: Trajectories,
    objective: AbstractObjective | None = None,
    training: Training | None = None,
    langevin: Langevin | None = None,
    start_from: Run | None = None,
    *,
    validation: Trajectories | None,
    horizon: int | None,
    callbacks: tuple[Callback, ...],
    checkpoint: str | Path | None,
    seed: int,
    effort: float = 1.0,
    apart: Bool[np.ndarray, "series time"] | None = None,
    begun: Run | None = None,
) -> Run:
    """One fit of a model that is decided, with a share of the usual epochs.

    Without the rows that are set `apart`, or from where another fit has `begun`.
    """
    make_room()
    task = Prepared.of(
        model, data, objective, training, langevin, validation=validation, apart=apart
    )
    if effort != 1 and isinstance(task.inference, GradientDescent):
        usual = task.inference.training
        shorter = replace(usual, epochs=max(1, round(effort * usual.epochs)))
        task = replace(task, inference=replace(task.inference, training=shorter))
    if begun is not None and isinstance(task.inference, GradientDescent):
        assert isinstance(begun.forecaster, SDEForecaster)
        first = begun.forecaster.model
        inference = replace(task.inference, init=lambda data, key: first)  # noqa: ARG005
        task = replace(task, inference=inference)
    if start_from is not None:
        task = replace(task, inference=begin_from(task.inference, task.model, start_from))
    keeper = None
    if checkpoint is not None:
        keeper = Checkpoint(Path(checkpoint), _fingerprint(task, start_from, seed))
    fitted = task.inference.fit(
        task.batch,
        validation=task.held_out,
        callbacks=callbacks,
        checkpoint=keeper,
        key=jr.key(seed),
    )
    watched = "validation_loss" if "validation_loss" in fitted.history else "loss"
    if fitted.history and not np.isfinite(fitted.history[watched]).any():
        pieces = training_windows(task.model, task.data, training)
        raise FitFailed(why_not_finite(task.model, fitted.model, task.batch, pieces, task.data))
    run = task.run(fitted, seed)
    if validation is None or not run.forecaster.spreads():
        return run
    return calibrate(run, forecast_windows(validation, horizon, run.spec.context))


def learned_numbers(forecaster: AbstractForecaster, batch: Batch) -> Estimates:
    """Parameters and spreads with their errors; none of a system without such."""
    return estimates(forecaster, batch) if isinstance(forecaster, SDEForecaster) else Estimates()


def say_same_work(model: ModelSpec, found: Iterable[str]) -> None:
    """A notice about every learned parameter whose work the learned part can do too."""
    if not isinstance(model, HybridSDE) or model.linear:
        return
    for name in same_work(model, tuple(found)):
        notice(
            f"The learned part can do the same work as the parameter {name!r}, so its value is "
            "what the two share. Declare the equation `exact`, or say what the learned part "
            "`sees`, to tell them apart."
        )


def _leaves_steps_open(objective: AbstractObjective | None, training: Training | None) -> bool:
    """Whether `fit` is to choose the steps of time: no solver and no windows of rows are given."""
    named = None if objective is None else solver_of(objective)
    return named is None and (training is None or training.windows is None)


def frozen_drift(run: Run) -> FrozenDrift:
    """What a run has learned, as known physics for another: learned plus known drift, held fixed.

    For latent states begin the other fit with `start_from=run`, so that they mean the same.
    """
    if not (isinstance(run.spec, HybridSDE) and isinstance(run.forecaster, SDEForecaster)):
        raise ValueError(f"{run.spec.name} has no drift that another model could take over.")
    return FrozenDrift.of(run.spec, run.forecaster.model)


def _loss_name(inference: AbstractInference) -> str:
    if isinstance(inference, GradientDescent):
        return type(inference.loss).__name__
    return "closed form"


def _fingerprint(task: Prepared, start_from: Run | None, seed: int) -> str:
    """What must agree for a fit to be continued: declaration, loss, training, data and seed."""
    source = physics_source(task.model)
    code = source.read_text() if source else ""
    begun = None if start_from is None else start_from.metadata.used.series
    parts = [write_spec(task.model), code, seed, task.used.series, begun]
    if isinstance(task.inference, GradientDescent):
        parts += [task.inference.loss, task.inference.training, task.inference.langevin]
    return fingerprint(*parts)
