"""The paper's Lorenz experiment: forecasts with one equation known, none, or all.

Haussmann et al. 2021, Table 1. The first half of a recording is cut into training sequences, the
second half into test sequences; the later points of each are predicted from its first.
"""

from dataclasses import replace

from hybridsde.datasets import lorenz
from hybridsde.fit import Training
from hybridsde.hybrid import HybridSDE
from hybridsde.paper.experiment import Experiment
from hybridsde.paper.preset import LIBRARY, Preset
from hybridsde.paper.system import Protocol, System
from hybridsde.simulate import EulerMaruyama

SYSTEM = System(
    states=lorenz.STATES,
    diffusion=lorenz.DIFFUSION,
    interval=lorenz.RECORDER.interval,
    observe=lorenz.observe,
    equations=lorenz.equations,
    truth=lorenz.true_physics,
    parameter_sd=1.0,
)

ONE = "-one"
"""Behind the name of a protocol: one recording for all repetitions."""
_OWN = {
    "24": Protocol(20, 24, 20, 24),
    "960": Protocol(20, 24, 20, 24, observations=1920),
    "appendix": Protocol(20, 50, 10, 100),
}
PROTOCOLS = _OWN | {
    f"{name}{ONE}": replace(protocol, one_recording=True) for name, protocol in _OWN.items()
}
"""Sequences of 24 from the halves of 2000 observations, or of 1920 as the main text has it, and the
sequences of the appendix."""

KNOWN = {"none": (), "x": ("x",), "y": ("y",), "z": ("z",), "all": ("x", "y", "z")}
"""Which equations each row is given."""

PUBLISHED = {
    ("none", "e-bayes"): (29.20, 0.19),
    ("none", "e-pac-bayes"): (29.05, 0.23),
    ("x", "e-bayes"): (27.58, 0.17),
    ("x", "e-pac-bayes"): (27.42, 0.16),
    ("y", "e-bayes"): (15.87, 0.46),
    ("y", "e-pac-bayes"): (15.06, 0.35),
    ("z", "e-bayes"): (27.82, 0.26),
    ("z", "e-pac-bayes"): (28.37, 0.21),
    ("all", "physics"): (16.40, 2.31),
}
"""Mean test MSE of Table 1, and its standard error over fifty repetitions."""

PRESETS = {
    "paper": Preset.published(
        states=lorenz.STATES, diffusion=lorenz.DIFFUSION, noise=1.0, hidden=(100, 100)
    ),
    "recommended": Preset(
        HybridSDE(
            members=1,
            states=lorenz.STATES,
            far="free",
            diffusion=lorenz.DIFFUSION,
            noise=0.4,
            hidden=(64, 64),
            start="first",
        ),
        Training(epochs=500, batch_size=10, learning_rate=5e-3, schedule="cosine"),
        EulerMaruyama(),
        samples=2,
        window=(8, 4),
        uncertain_physics=True,
    ),
}

NOTES = """\
Where our numbers differ from the published ones, and why:

- With the protocols 24, 960 and appendix every repetition simulates a recording of its own; with
  24-one and 960-one all repetitions share the one of their seed, and differ in wrong parameters,
  weights and draws. A published standard error of 0.19 over fifty repetitions is a spread of 1.3.
  Recordings of their own spread ten times as much, one recording several times less, and which
  recording it is decides the mean. So the paper most likely had one, and its means are those of one
  recording. The protocols with 960 rows in each half are those of the main text (1920
  observations), the others those of the appendix (2000).
- The published black-box rows are near what raw, unscaled inputs give (`paper` preset). The
  `recommended` preset standardises states and drift and trains longer with a decaying rate.
- The published second-equation rows (15.87, 15.06) are ten times ours. We do not know why. The
  public reference code shows its drift the absolute time, which at test time is always outside the
  range it was trained on; ours does not. Whether that is the cause was not measured here.
- The published row (v), 16.40, is above ours. The public reference code draws parameters with
  standard deviation 2 and adds fresh noise at every step; here they are drawn once, with standard
  deviation 1, as the paper's text says. Under `recommended` every path of the forecast also has
  parameters of its own, drawn around the wrong ones, since their error is known to be there.
- Table 1 swaps the means of κ and ρ. Here κ = 28 stands in the second equation and ρ = 2.67 in the
  third.
- S, σ and the initial spread of the weights are not given in the paper. `paper` uses S = 1, σ = 1
  and the spread 0.01 that this package starts from anywhere. With 0.1 the rows come nearer to the
  published ones, and the row of the third equation lies above its own (31.2 ± 1.7 against 27.82).
- `library` is what `fit` takes by default: terms chosen by their evidence, nothing set by hand. Its
  row `all` is the hybrid with all three equations and wrong parameters. The NLL is that of a
  mixture over 100 paths, each as wide as the noise of a measurement; a library learns a small one,
  which so few paths represent badly. The CRPS knows no such width.
- Width, length of the pieces, batch size and σ of the networks of `recommended` were chosen by test
  error among some thirty settings, on recordings of this system other than those that any seed
  gives now.
"""


EXPERIMENT = Experiment(
    "Lorenz attractor (Haussmann et al. 2021, Table 1)",
    NOTES,
    SYSTEM,
    PROTOCOLS,
    KNOWN,
    PUBLISHED,
    PRESETS,
    {"recommended": tuple((known, LIBRARY) for known in KNOWN)},
)
