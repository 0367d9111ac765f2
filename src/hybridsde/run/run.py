"""A fitted model and what one does with it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._types import Numbers, PRNGKeyArray
from hybridsde.certify import AbstractLoss, Certificate, ConformalBand, Seen
from hybridsde.certify.question import HOLD_OUT, Question
from hybridsde.certify.seen import POSTERIOR
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.forecast import SCORES, Forecast, clock_of, evaluate, future, label, predict
from hybridsde.model import BayesianSDE, HybridSDE, SampledNetworks
from hybridsde.run.certify import certify
from hybridsde.run.conformal import conformal
from hybridsde.run.folder import (
    NETWORKS,
    RUN,
    load_run,
    rebuild_solver,
    save_run,
    solver_facts,
)
from hybridsde.simulate import AbstractSolver

OWN = frozenset(
    {"model", NETWORKS, "solver", "diverged", "seed", "format", "versions", "weights_sha256"}
)
"""What a run folder says of the run itself."""
FORECASTS = 1
"""Folded into the seed of a run to give the key of its forecasts."""


@dataclass(frozen=True, eq=False)
class Run:
    """The result of `fit`: forecasts, scores and the history of training."""

    declared: HybridSDE
    model: BayesianSDE
    solver: AbstractSolver
    history: pd.DataFrame
    """One row per epoch; one column per term of the objective."""
    diverged: bool
    seed: int
    facts: dict[str, Any] = field(default_factory=dict)
    """What else a run folder remembers: the data it was fitted to, and settings."""

    @classmethod
    def load(cls, folder: str | Path, *, trust: bool = False) -> "Run":
        """Read a run folder. Nothing in it is executed, unless its Python physics is trusted."""
        declared, model, history, facts = load_run(Path(folder), trust=trust)
        return cls(
            declared,
            model,
            rebuild_solver(facts["solver"]),
            history,
            facts["diverged"],
            facts["seed"],
            {name: facts[name] for name in facts.keys() - OWN},
        )

    def save(self, folder: str | Path) -> None:
        """Write everything needed to forecast again into a new folder."""
        folder = Path(folder)
        if (folder / RUN).exists():
            raise InputError(f"{folder} holds a run already. Choose another folder.")
        own = {
            "solver": solver_facts(self.solver),
            "diverged": self.diverged,
            "seed": self.seed,
        }
        save_run(folder, self.declared, self.model, self.history, {**self.facts, **own})

    def forecast(
        self,
        start: Trajectories,
        times: Numbers | None = None,
        *,
        elapsed: Numbers | None = None,
        inputs: Numbers | None = None,
        draws: int = 200,
        paths_per_weight: int = 4,
        seed: int | None = None,
    ) -> Forecast:
        """Sampled futures of every trajectory in `start`.

        Give `times` on the clock of the data (one grid for all, or one row per trajectory), or
        `elapsed` since each trajectory's start. `inputs` hold u at those times, one row per
        trajectory; without them the first inputs are kept. Draws come in groups of
        `paths_per_weight` that share their weights, which is what splits the variance.
        """
        self.declared.check(start)
        check_whole(paths_per_weight, "paths_per_weight")
        check_whole(draws, "draws")
        if draws % paths_per_weight:
            raise ValueError(
                f"`draws` must be a multiple of `paths_per_weight`, but they are {draws} and "
                f"{paths_per_weight}."
            )
        context = self.declared.context
        if np.any(start.lengths < context):
            raise ValueError(
                f"The model encodes the first {context} rows, but a series has fewer. Give "
                f"`data.start({context})`."
            )
        clock = clock_of(start, times, elapsed, context)
        start = self.declared.encode(start)
        if inputs is not None:
            inputs = np.asarray(inputs, float)
            wanted = (*clock.shape, len(self.declared.inputs))
            if inputs.shape != wanted or not np.isfinite(inputs).all():
                raise ValueError(
                    f"`inputs` must be finite with shape {wanted}, but have {inputs.shape}."
                )
        path_key, noise_key = jr.split(self._key(seed))
        states = predict(
            self.model,
            self.solver,
            future(start, clock, inputs, context),
            draws=draws,
            paths_per_weight=paths_per_weight,
            key=path_key,
        )[:, :, context:]
        observation = self.model.observation
        seen = np.asarray(observation.raw(observation.sample(jnp.asarray(states), key=noise_key)))
        states = self.declared.raw_states(states)
        where = (clock, start.times[:, 0], start.ids)
        return Forecast(
            label(states, *where, tuple(self.declared.states), "state"),
            label(seen, *where, observation.names, "obs"),
            paths_per_weight,
        )

    def score(
        self, data: Trajectories, *, draws: int = 200, seed: int | None = None
    ) -> pd.DataFrame:
        """Scores of forecasts from the first time of every series, per observation and overall."""
        self.declared.check_later(data)
        check_whole(draws, "draws", least=2)
        batch = self.declared.batch(data)
        table = evaluate(self.model, self.solver, batch, draws, key=self._key(seed))
        rows = [*self.model.observation.names, "overall"]
        return pd.DataFrame({name: np.asarray(table[name]) for name in SCORES}, rows)

    def certify(
        self,
        data: Trajectories,
        *,
        loss: str | AbstractLoss = "error",
        bound: str = "auto",
        delta: float = 0.05,
        union: int = 1,
        dependence: str = "iid",
        ensemble: int = 1,
        draws: int = 10_000,
        gates: int = 1,
        reference: Trajectories | None = None,
        seed: int | None = None,
    ) -> Certificate:
        """How far forecasts can be trusted: a bound on their expected loss, with every term.

        - `loss`: error, interval, band, crps or likelihood, or one with constants of your own.
        - `bound`: "auto" takes a hold-out bound on unseen trajectories, and "ub" on those that
          `fit_certified` set apart. "kl", "catoni", "holdout-kl" are alternatives; "paper" is the
          bound of Haussmann et al. 2021, a diagnostic.
        - `delta`: the certificate may be false with this probability.
        - `union`: how many models were compared on these trajectories.
        - `dependence`: "sequential" for windows of one recording, with a weaker promise.
        - `ensemble`: networks in one forecast, for "ub", "kl" and "catoni".
        - `reference`: other trajectories, to settle constants on.

        Refused with an `InputError` where it would be false.
        """
        question = Question(bound, delta, union, dependence, ensemble, draws, gates)
        return certify(self, data, question, loss=loss, reference=reference, seed=seed)

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

        From unseen trajectories, whatever the model. With `delta` the promise holds for all but
        that share of calibration sets, instead of on average over them.
        """
        return conformal(self, data, alpha=alpha, delta=delta, draws=draws, seed=seed)

    def certifiable(self, data: Trajectories, bound: str = "auto") -> Trajectories:
        """The trajectories that a certificate may use.

        For PAC-Bayes bounds the prior has not seen them; for "holdout" and "conformal" the weights
        have not either.
        """
        but = () if bound in (*HOLD_OUT, "conformal") else (POSTERIOR,)
        free = ~Seen.from_facts(self.facts).any_of(data, but=but)
        if not free.any():
            apart = ", or fit with `fit_certified`, which sets some apart"
            sampled = isinstance(self.model.network, SampledNetworks)
            raise InputError(
                "The fit has used all of these trajectories. Certify on others"
                f"{'' if sampled else apart}."
            )
        return data.take(np.flatnonzero(free))

    def _key(self, seed: int | None) -> PRNGKeyArray:
        """Randomness of forecasts: apart from that of the fit, and repeatable."""
        return jr.fold_in(jr.key(self.seed), FORECASTS) if seed is None else jr.key(seed)
