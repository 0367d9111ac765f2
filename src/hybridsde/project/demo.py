"""The embedded example: a pendulum whose gravity is known and whose friction is not."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from hybridsde._parameters import Bounded, Positive
from hybridsde.certify import Certificate
from hybridsde.data import Trajectories
from hybridsde.datasets import pendulum
from hybridsde.fit import CallbackFactory, Training
from hybridsde.forecast import SCORES, Forecast, ModelSpec
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.discovered import Discovered
from hybridsde.objective import EmpiricalPACBayes
from hybridsde.physics import equations
from hybridsde.physics.expression import Name
from hybridsde.project.project import DATA
from hybridsde.project.split import Split
from hybridsde.registry import SYSTEMS
from hybridsde.run import Run, fit

GUESS, RANGE = 5.0, (1.0, 20.0)
"""What is believed of gravity over length; the truth is 6."""
SWINGS, ROWS, SMALL = 3, 50, 1.2
"""Recordings to learn from: few, short, and of small swings."""
NEW, LONGER, LARGE = 40, 100, 2.6
"""New recordings to forecast: longer, and of swings that nearly go over the top."""
DRAWS = 200
EPOCHS = 300
SIMPLEST = ("persistence", "climatology")
BLACK_BOX, PHYSICS, HYBRID = "black box", "gravity alone", "hybrid"
BY_HAND = "friction by hand"
"""What somebody fits who has guessed what is missing."""
TRUTH = "true equations"


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    runs: dict[str, Run]
    scores: pd.DataFrame
    """One row per forecaster, best possible last."""
    forecasts: dict[str, Forecast]
    """Of the first new recording, from its first row."""
    truth: Trajectories
    """That recording without noise."""
    split: Split
    """The recordings that the models were fitted to, and those that they were scored on."""
    equations: Discovered
    certificate: Certificate

    def keep(self, out: Path) -> Path:
        """Save the hybrid with its recordings into a new folder inside `out`; returns it."""
        names = (f"hybrid{end}" for end in ("", *(f"-{number}" for number in range(2, 1000))))
        folder = next(out / name for name in names if not (out / name).exists())
        content = self.split.to_frame().to_csv(index=False).encode()
        self.runs[HYBRID].save(folder, {DATA: content})
        return folder

    @property
    def friction(self) -> tuple[float, float] | None:
        """The coefficient of v that was read off, with its error; None where there is none."""
        for term in self.equations.terms:
            if (term.state, term.term) == ("v", Name("v")):
                return term.value, term.error
        return None

    def sentences(self) -> list[str]:
        """What was seen, from the numbers above."""
        worse = self.scores["crps"] / self.scores["crps"][TRUTH]
        cover = self.scores["coverage90"]
        w = (self.runs[HYBRID].metadata.parameters or {})["w"]
        said = [
            f"Learned from {SWINGS} noisy recordings of small swings; {NEW} new and larger swings "
            "were forecast from their first angle and velocity.",
            f"The error (CRPS) of the black box is {worse[BLACK_BOX]:.1f} times that of the true "
            f"equations, of gravity without friction {worse[PHYSICS]:.1f} times, of the hybrid "
            f"{worse[HYBRID]:.2f} times; of somebody who has guessed friction and fits it "
            f"{worse[BY_HAND]:.2f} times.",
            f"The 90 % bands of the hybrid hold {cover[HYBRID]:.0%} of the values, those of the "
            f"black box {cover[BLACK_BOX]:.0%}.",
            f"Gravity was given as {GUESS:g} and corrected to {w['value']:.2f} ± {w['error']:.2f} "
            f"(truth {pendulum.TRUE['w']:g}).",
        ]
        if self.friction is not None:
            value, error = self.friction
            said.append(
                f"What was missing was read off, out of a library of terms: friction, {value:.2f} "
                f"v with a standard error of {error:.2f} (truth {-pendulum.TRUE['c']:g} v)."
            )
        bound, seen = self.certificate.bound, self.certificate.terms["empirical risk"]
        return [
            *said,
            f"Certified: of a further swing fewer than {bound:.0%} of the values are expected "
            f"outside such bands, with 95 % confidence; of these {NEW} swings {seen:.0%} were.",
        ]


def run_demo(
    *, seed: int = 0, epochs: int = EPOCHS, callbacks: CallbackFactory | None = None
) -> Demo:
    """Fit, forecast, score, certify. `callbacks` gives those of each fit by its name."""
    train, _ = pendulum.recordings(SWINGS, ROWS, SMALL, seed=seed)
    test, exact = pendulum.recordings(NEW, LONGER, LARGE, seed=seed + 1)
    gravity = equations("dq = v", "dv = -w*sin(q)", w=Bounded.of(GUESS, *RANGE))
    friction = equations(
        "dq = v", "dv = -w*sin(q) - c*v", w=Bounded.of(GUESS, *RANGE), c=Positive.of(1.0)
    )
    hybrid = HybridSDE(states=pendulum.STATES, physics=gravity, exact=["q"])
    blank = HybridSDE(states=pendulum.STATES, learned="network", members=1)
    true = equations("dq = v", "dv = -w*sin(q) - c*v", flows=(), **pendulum.TRUE)
    declared: dict[str, ModelSpec] = {
        **{name: SYSTEMS[name](pendulum.STATES, (), 1) for name in SIMPLEST},
        PHYSICS: replace(hybrid, hidden=None),
        BY_HAND: replace(hybrid, physics=friction, hidden=None),
        BLACK_BOX: blank,
        HYBRID: hybrid,
        TRUTH: replace(
            hybrid,
            physics=true,
            hidden=None,
            diffusion=pendulum.DIFFUSION,
            noise=pendulum.NOISE,
        ),
    }
    runs = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says how bad each of them is
        for name, model in declared.items():
            # The black box is trained on the objective of the paper; the others need no training.
            paper = {"objective": EmpiricalPACBayes(), "training": Training(epochs=epochs)}
            runs[name] = fit(
                model,
                train,
                **(paper if name == BLACK_BOX else {}),
                callbacks=() if callbacks is None else callbacks(name),
                progress=False,
                seed=seed,
            )
        rows = {name: run.score(test, draws=DRAWS).loc["overall"] for name, run in runs.items()}
    scores = pd.DataFrame(rows).T.reindex(columns=SCORES).rename_axis("forecaster")
    first = exact.take([0])
    forecasts = {
        name: runs[name].forecast(test.take([0]).start(), first.times[0, 1:], draws=DRAWS)
        for name in (BLACK_BOX, HYBRID)
    }
    return Demo(
        runs,
        scores,
        forecasts,
        first,
        Split(train, None, test),
        runs[HYBRID].equations(train),
        runs[HYBRID].certify(test, loss="interval"),
    )
