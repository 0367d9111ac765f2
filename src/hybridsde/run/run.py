"""A fitted model and what one does with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd

from hybridsde._cache import make_room
from hybridsde._errors import InputError
from hybridsde._files import make_folder
from hybridsde._memory import check_memory
from hybridsde._streams import Stream, stream
from hybridsde._types import Array, Float, LossName, Numbers, PRNGKeyArray, Reading
from hybridsde.certify import (
    AbstractLoss,
    Certificate,
    CertificateRequest,
    ConformalBand,
    Subject,
    certify,
    conformal_band,
)
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.estimate.choices import AUTO, EXTENDED, estimator_of
from hybridsde.fit import Callback, Training
from hybridsde.forecast import (
    SCORES,
    AbstractForecaster,
    AbstractStateEstimator,
    Forecast,
    ModelSpec,
    StateEstimate,
    backtest,
    estimate_states,
    evaluate,
)
from hybridsde.forecast.backtest import origins_of
from hybridsde.forecast.evaluation import evaluate_values
from hybridsde.forecast.future import clock_of, forecast
from hybridsde.forecast.inputs import FutureInputs
from hybridsde.forecast.sanity import say_nonsense
from hybridsde.forecast.spec import JITTER
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.discovered import Discovered, discover
from hybridsde.hybrid.profile import profile
from hybridsde.run.following import Follower, follow
from hybridsde.run.updating import update
from hybridsde.run.windows import training_batch
from hybridsde.store import RunMetadata, StoredRun, load_run, save_run
from hybridsde.store.folder import RUN
from hybridsde.store.lock import locked
from hybridsde.store.spec_io import write_spec


@dataclass(frozen=True, eq=False)
class Run:
    """The result of `fit`, whatever was fitted: forecasts, scores, certificates, history."""

    spec: ModelSpec
    """How it was declared."""
    forecaster: AbstractForecaster
    """What was found."""
    history: pd.DataFrame
    """One row per epoch; one column per term of the loss. Empty where nothing was trained."""
    diverged: bool
    seed: int
    metadata: RunMetadata

    @classmethod
    def load(cls, folder: str | Path, *, trust: bool = False) -> "Run":
        """Read a run folder. Nothing in it is executed, unless its Python physics is trusted."""
        found = load_run(Path(folder), trust=trust)
        return cls(
            found.spec,
            found.forecaster,
            found.history,
            found.diverged,
            found.seed,
            found.metadata,
        )

    def save(self, folder: str | Path, files: Mapping[str, bytes] | None = None) -> None:
        """Write everything needed to forecast again into a new folder, `files` beside it."""
        folder = Path(folder)
        write_spec(self.spec)  # says what cannot be saved before there is a folder
        make_folder(folder)
        with locked(folder):
            if (folder / RUN).exists():
                raise InputError(f"{folder} holds a run already. Choose another folder.")
            save_run(folder, self.stored, files)

    @property
    def stored(self) -> StoredRun:
        """What a run folder holds of it."""
        return StoredRun(
            self.spec, self.forecaster, self.history, self.diverged, self.seed, self.metadata
        )

    def __repr__(self) -> str:
        """One line: what it is, of what, and how it does."""
        scores = self.metadata.test_scores
        crps = None if scores is None else scores.shown("crps")
        units = " in spreads of the data" if scores is not None and scores.in_spreads else ""
        told = "" if crps is None else f", CRPS {crps:.4g}{units} on held-out trajectories"
        return f"<Run: {self.spec.name} of {', '.join(self.spec.state_names)}{told}>"

    def _repr_html_(self) -> str:
        """For notebooks: the same, with the scores and why it is what it is."""
        parts = [f"<b>{escape(self.spec.name)}</b> of {escape(', '.join(self.spec.state_names))}"]
        if self.metadata.choice:
            parts.append(escape(self.metadata.choice))
        scores = self.metadata.test_scores
        if scores is not None:
            names = ("rmse", "nll", "crps", "coverage90")
            label = "all, in spreads of the data" if scores.in_spreads else "all"
            rows = {**scores.states, label: {name: scores.shown(name) for name in names}}
            table = pd.DataFrame(rows).T.reindex(columns=list(names))
            parts.append(table.astype(float).round(4).to_html(border=0))
        return "<br>".join(parts)

    def forecast(
        self,
        history: Trajectories,
        times: Numbers | None = None,
        *,
        steps: int | None = None,
        elapsed: Numbers | None = None,
        inputs: FutureInputs | None = None,
        draws: int = 200,
        paths_per_weight: int | None = None,
        estimator: Reading = "extended",
        seed: int | None = None,
    ) -> Forecast:
        """Sampled futures of every trajectory in `history`, after its last row.

        All rows that are given count: they are filtered, and draws of the weights count by how
        well they explain them. `data.start()` gives the first row alone, as in the paper.

        Give `steps` of the usual interval, `times` on the clock of the data (one grid for all, or
        one row per trajectory), or `elapsed` since each trajectory's last row. A model with inputs
        must be told what they will be: `inputs` is a record that goes on over those times, such as
        `test` after `test.start()`, of which every row counts; numbers, one row per time; or
        "hold", which keeps the last given ones. Draws come in groups of `paths_per_weight` that
        share their weights, which is what splits the variance: four by default, where that divides
        `draws`. `estimator` reads the history; see `filter`.
        """
        make_room()
        self.spec.check(history)
        context = self.spec.context
        if np.any(history.lengths < context):
            raise ValueError(
                f"{self.spec.name} looks back at {context} rows, but a series has fewer. Give more."
            )
        clock = clock_of(history, times, elapsed, steps, self.metadata.usual_step)
        self._check_steps(np.concatenate([history.ends[:, None], clock], 1))
        return forecast(
            self.spec,
            self._reading(estimator, history, seed),
            history,
            clock,
            inputs,
            draws=draws,
            paths_per_weight=paths_per_weight,
            plausible=self.metadata.plausible,
            key=self._key(seed),
        )

    def _reading(
        self, estimator: Reading, history: Trajectories, seed: int | None
    ) -> AbstractForecaster:
        """The forecaster that reads histories as asked for."""
        if estimator == EXTENDED:
            return self.forecaster
        if not isinstance(self.forecaster, AbstractStateEstimator):
            raise InputError(f"{self.spec.name} has no states apart from what is measured.")
        if estimator == AUTO:
            estimator = self.filter(history, seed=seed).estimator
        named = estimator_of(estimator)
        return self.forecaster if estimator == EXTENDED else self.forecaster.reading(named)

    def follow(self, history: Trajectories, *, seed: int | None = None) -> Follower:
        """Take in records up to now; `follower.update(rows)` then takes in new rows as they come.

        An update takes milliseconds and equals filtering everything at once.
        """
        known = self.metadata.plausible
        return follow(
            self.spec,
            self.forecaster,
            history,
            known,
            self.metadata.usual_step,
            key=self._key(seed),
        )

    def update(
        self,
        recordings: Trajectories,
        *,
        training: Training | None = None,
        callbacks: Iterable[Callback] = (),
        seed: int | None = None,
    ) -> "Run":
        """Learn from further recordings, with what was learned before as the prior.

        The old recordings are not needed again. A library follows Bayes' rule; networks are
        trained by variational Bayes for a while, see `training`. Physical parameters, diffusion,
        noise and starts stay. To take in new rows of a record that goes on, without
        learning from them, see `follow`.
        """
        found = update(
            self.spec,
            self.forecaster,
            self.metadata,
            recordings,
            training,
            tuple(callbacks),
            key=stream(self.seed if seed is None else seed, Stream.UPDATE),
        )
        return replace(
            self,
            forecaster=found.forecaster,
            history=found.history,
            diverged=found.diverged,
            metadata=found.metadata,
        )

    def filter(
        self,
        data: Trajectories,
        *,
        estimator: Reading = "auto",
        draws: int = 200,
        seed: int | None = None,
    ) -> StateEstimate:
        """Every state at every row, hidden ones too, given the rows up to it.

        Rows without values are answered as well: add some to see the states between measurements.
        `estimator` is "extended" (Kalman), "cubature", "unscented", "ensemble", "particles",
        "parallel" (in time, for long records on a GPU), or "auto", which takes the first unless
        its errors say that particles explain a record better.
        """
        return self._states(data, draws, seed, estimator, smooth=False)

    def smooth(
        self,
        data: Trajectories,
        *,
        estimator: Reading = "auto",
        draws: int = 200,
        seed: int | None = None,
    ) -> StateEstimate:
        """Every state at every row, hidden ones too, given the whole record, as sampled paths.

        See `filter` for the estimators.
        """
        return self._states(data, draws, seed, estimator, smooth=True)

    def _states(
        self, data: Trajectories, draws: int, seed: int | None, estimator: Reading, *, smooth: bool
    ) -> StateEstimate:
        self.spec.check(data)
        check_whole(draws, "draws", least=2)
        if not isinstance(self.forecaster, AbstractStateEstimator):
            raise InputError(f"{self.spec.name} has no states apart from what is measured.")
        return estimate_states(
            self.spec,
            self.forecaster,
            data,
            smooth=smooth,
            estimator=estimator,
            draws=draws,
            key=self._key(seed),
        )

    def profile(self, data: Trajectories) -> pd.DataFrame:
        """Profile intervals of 90 % of the learned parameters of known equations, one row each.

        `data` are the recordings that were learned from. An end that the data leave open is NaN.
        Some twenty fits of all other numbers for each parameter: seconds.
        """
        self.spec.check_later(data)
        if not isinstance(self.forecaster, SDEForecaster) or not self.metadata.parameters:
            raise InputError(f"{self.spec.name} has no learned parameters of known equations.")
        batch = training_batch(self.spec, data, None)
        found = pd.DataFrame(profile(self.forecaster, batch)).T.astype(float)
        return found.rename_axis("parameter")

    def equations(self, data: Trajectories) -> Discovered:
        """What was learned as equations that can be read, with errors and probabilities.

        `data` are recordings along which the learned drift is looked at. `print` it, or take its
        `equations()` as known physics for another model.
        """
        self.spec.check(data)
        spec, forecaster = self.spec, self.forecaster
        if not (isinstance(spec, HybridSDE) and isinstance(forecaster, SDEForecaster)):
            raise InputError(f"{spec.name} has no drift that could be written as equations.")
        if spec.latent is not None or spec.weights != "path":
            raise InputError("Only drifts of states that mean something are written as equations.")
        key = stream(self.seed, Stream.PICTURE)
        return discover(spec, forecaster.model, spec.batch(data), key=key)

    def backtest(
        self,
        data: Trajectories,
        *,
        horizon: int,
        origins: int | None = None,
        draws: int = 200,
        estimator: Reading = "extended",
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Scores by lead time of forecasts from rolling origins, each given all rows before it.

        `origins` are that many along each record, evenly spread; one every `horizon` rows by
        default. Lead 0 stands for all leads together. `estimator` reads the rows before; see
        `filter`.
        """
        self.subject.check(data)
        check_whole(draws, "draws", least=2)
        check_whole(horizon, "horizon")
        starts = origins_of(data, horizon, origins, self.spec.context)
        self._check_room(draws, len(starts) * horizon)
        return backtest(
            self.spec,
            self._reading(estimator, data, seed),
            data,
            horizon=horizon,
            origins=origins,
            draws=draws,
            plausible=self._plausible,
            key=self._key(seed),
        )

    def score(
        self, data: Trajectories, *, draws: int = 200, seed: int | None = None
    ) -> pd.DataFrame:
        """Scores of forecasts from the first rows of every series, per observation and overall."""
        return self._scores(evaluate(**self._forecasts(data, draws, seed)), data)

    def score_values(
        self, data: Trajectories, *, draws: int = 200, seed: int | None = None
    ) -> tuple[pd.DataFrame, Float[np.ndarray, "series time obs"]]:
        """The same scores, and the CRPS of every value after the given rows.

        It is not a number where nothing was measured.
        """
        table, each = evaluate_values(**self._forecasts(data, draws, seed))
        return self._scores(table, data), np.asarray(each)

    def certify(
        self,
        data: Trajectories,
        *,
        loss: LossName | AbstractLoss = "error",
        reference: Trajectories | None = None,
        seed: int | None = None,
        **request,
    ) -> Certificate:
        """How far forecasts can be trusted: a bound on their expected loss, with every term.

        - `loss`: error, interval, band, crps or likelihood, or one with constants of your own.
        - `reference`: other trajectories, to settle constants on.

        And what a `CertificateRequest` holds:

        - `bound`: "auto" takes a hold-out bound on unused trajectories, and "ub" on those that
          `fit_certified` set apart. "kl", "catoni", "holdout-kl" are alternatives; "paper" is the
          bound of Haussmann et al. 2021, a diagnostic.
        - `delta`: the certificate may be false with this probability.
        - `models_compared`: how many models were compared on these trajectories.
        - `dependence`: "sequential" for windows of one recording, with a weaker promise.
        - `ensemble`: networks in one forecast, for "ub", "kl" and "catoni".
        - `draws`: sampled forecasters.
        - `gate_values`: |Γ| of the paper's bound where γ was given. A learned γ is rounded to a
          grid, which is counted.

        Refused with an `InputError` where it would be false.
        """
        asked = CertificateRequest(**request)
        return certify(self.subject, data, asked, loss=loss, reference=reference, seed=seed)

    def conformal(
        self,
        data: Trajectories,
        *,
        alpha: float = 0.1,
        delta: float | None = None,
        draws: int = 200,
        seed: int | None = None,
    ) -> ConformalBand:
        """A band that a new trajectory leaves with probability `alpha` at most, at any time.

        From unused trajectories, whatever the model. With `delta` the promise holds for all but
        that share of calibration sets, instead of on average over them.
        """
        return conformal_band(self.subject, data, alpha=alpha, delta=delta, draws=draws, seed=seed)

    def certifiable(self, data: Trajectories, bound: str = "auto") -> Trajectories:
        """The trajectories that a certificate may use.

        For PAC-Bayes bounds the prior has not used them; for "holdout" and "conformal" the weights
        have not either.
        """
        return self.subject.certifiable(data, bound)

    @property
    def subject(self) -> Subject:
        """What certificates have to know of the run."""
        known = self.metadata
        return Subject(
            self.spec,
            self.forecaster,
            known.used,
            known.spread,
            known.reference,
            known.interval,
            self.seed,
        )

    @property
    def _plausible(self) -> Array | None:
        ends = self.metadata.plausible
        return None if ends is None else jnp.asarray(ends)

    def _forecasts(self, data: Trajectories, draws: int, seed: int | None) -> dict[str, Any]:
        """What scores of forecasts from the first rows are computed from."""
        make_room()
        self.subject.check(data)
        check_whole(draws, "draws", least=2)
        self._check_room(draws, data.times.size)
        return {
            "forecaster": self.forecaster,
            "batch": self.spec.batch(data),
            "draws": draws,
            "plausible": self._plausible,
            "key": self._key(seed),
        }

    def _scores(self, table: Mapping[str, Array], data: Trajectories) -> pd.DataFrame:
        rows = [*self.spec.observations, "overall"]
        found = pd.DataFrame({name: np.asarray(table[name]) for name in SCORES}, rows)
        calibrated, context = self.metadata.calibration is not None, self.spec.context
        say_nonsense(found, float(table["implausible"][-1]), data, context, calibrated=calibrated)
        return found

    def _check_room(self, draws: int, rows: int) -> None:
        columns = len(self.spec.state_names) + len(self.spec.observations)
        check_memory(
            float(draws) * rows * columns,
            f"Scores of {draws} draws at {rows} rows",
            "Ask for fewer draws, or for some trajectories at a time.",
        )

    def _check_steps(self, clock: np.ndarray) -> None:
        interval = self.metadata.interval
        if interval is not None and not np.allclose(np.diff(clock), interval, rtol=JITTER):
            raise ValueError(
                f"{self.spec.name} moves in steps of {interval:g}: forecast times must follow the "
                "given rows one by one at that step."
            )

    def _key(self, seed: int | None) -> PRNGKeyArray:
        """Randomness of forecasts: apart from that of the fit, and repeatable."""
        return stream(self.seed if seed is None else seed, Stream.FORECAST)
