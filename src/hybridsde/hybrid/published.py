"""The method of Haussmann et al. 2021 as it was published: the model, its loss, and its training.

What stands in `FIXED` is the method; what stands in `USUAL` the paper leaves open or varies from
one experiment to the next. A settings file with `preset = "paper"` and the tables of the paper are
made of the same numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from hybridsde._parameters import AbstractParameter, trainable
from hybridsde.fit import Training
from hybridsde.hybrid.build import GUESS, LEARN
from hybridsde.hybrid.declaration import NETWORK
from hybridsde.hybrid.knowledge import Knowledge
from hybridsde.hybrid.numerics import Numerics
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.model import AbstractDiffusion
from hybridsde.objective import AbstractSDEObjective, EmpiricalBayes, EmpiricalPACBayes
from hybridsde.simulate import EulerMaruyama

PAPER = "paper"
"""What the preset is called in a settings file."""

FIXED: Mapping[str, Any] = {
    "learned": NETWORK,
    "members": 1,
    "far": "free",
    "standardise": False,
    "prior_sd": 1.0,
    "degree": None,
    "functions": HybridSDE.functions,
    "terms": (),
    "positive": (),
    "bounds": {},
    "saturates": {},
    "exact": (),
    "sees": None,
    "knowledge": Knowledge(),
    "numerics": Numerics(),
    "clip": None,
    "prior_fraction": None,
}
"""One network of the raw state in every equation, whose weights are standard normal under the
prior; free paths; gradients as they are. Names are those of a `HybridSDE` and of settings."""

USUAL: Mapping[str, Any] = {
    "hidden": (100, 100),
    "activation": "softplus",
    "weights": "local",
    "initial_sd": 0.01,
    "last_layer": 1.0,
    "start": "first",
    "diffusion": GUESS,
    "noise": GUESS,
}
"""The network of the Lorenz experiment, weights by the local reparameterisation trick, h₀ the first
row. G and σ are constants that the paper is given: without numbers they are guessed and held."""

SPREADS, CONSTANT = ("diffusion", "noise"), "a constant there"
EPOCHS, BATCH_SIZE, LEARNING_RATE = 100, 2, 1e-3
"""Of Adam, in the Lorenz experiment."""
OBJECTIVES = {"pac-bayes": "mean_log", "bayes": "log_mean"}
"""The estimators of Algorithm 1 and of eq. marglik-mc."""


def published(
    states: Sequence[str],
    *,
    objective: str = "pac-bayes",
    samples: int = 1,
    delta: float = 0.05,
    substeps: int = 1,
    epochs: int = EPOCHS,
    batch_size: int = BATCH_SIZE,
    learning_rate: float = LEARNING_RATE,
    piece: int | None = None,
    **declared: Any,
) -> tuple[HybridSDE, dict[str, Any]]:
    """Exactly the method of Haussmann et al. 2021, for data of your own: what `fit` is to be given.

        model, how = hs.published(states=["x", "y"], physics=physics, diffusion=0.2, noise=0.1)
        run = hs.fit(model, train, **how)

    `how` holds the loss and the training. `declared` are fields of a `HybridSDE`; one that
    contradicts the method is an error. What the paper leaves open can be chosen:

    - `objective`: "pac-bayes" is Algorithm 1, E-PAC-Bayes; "bayes" is E-Bayes, eq. marglik-mc.
    - `samples`, `delta`: S and δ. `substeps`: Euler–Maruyama steps from row to row.
    - `piece`: recordings are cut into sequences of this many rows; None leaves them whole.
    - `diffusion`, `noise`: the constants G and σ. Guessed from the training data and held where
      they are left out; see `HybridSDE`.
    """
    if refusal := contradictions(declared):
        raise ValueError(refusal[0])
    given = {k: v for k, v in declared.items() if not (k in SPREADS and v is None)}
    if declared.get("latent") is not None:
        given = {"start": None, **given}  # it is encoded
    model = HybridSDE(states=states, **{**MODEL, **given})
    _check_constants(model)
    loss = published_loss(objective, samples=samples, delta=delta, substeps=substeps)
    training = published_training(epochs, batch_size, learning_rate, piece)
    return model, {"objective": loss, "training": training}


def published_training(
    epochs: int = EPOCHS,
    batch_size: int = BATCH_SIZE,
    learning_rate: float = LEARNING_RATE,
    piece: int | None = None,
) -> Training:
    """Adam at one rate, without clipping, on sequences that are cut by nobody else."""
    return Training(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        schedule="constant",
        clip=FIXED["clip"],
        longest=piece,
    )


def published_loss(
    objective: str, *, samples: int = 1, delta: float = 0.05, substeps: int = 1
) -> AbstractSDEObjective:
    """Algorithm 1 ("pac-bayes"), or eq. marglik-mc ("bayes"), along free Euler–Maruyama paths."""
    if objective not in OBJECTIVES:
        raise ValueError(
            f"`objective` must be {' or '.join(OBJECTIVES)}, which is what the paper proposes, but "
            f"is {objective!r}."
        )
    same: dict[str, Any] = {
        "samples": samples,
        "estimator": OBJECTIVES[objective],
        "solver": EulerMaruyama(substeps),
    }
    if objective == "bayes":
        return EmpiricalBayes(**same)
    return EmpiricalPACBayes(**same, delta=delta, path_kl="sum")


MODEL: Mapping[str, Any] = {
    name: value
    for name, value in {**USUAL, **FIXED}.items()
    if name in HybridSDE.__dataclass_fields__
}
"""Fields of a `HybridSDE` as it was published."""


def contradictions(given: Mapping[str, Any]) -> list[str]:
    """What of these fields or settings the published method does not have, a sentence each."""
    found = []
    for name, value in given.items():
        if name in FIXED and _differs(value, FIXED[name]):
            wanted = f"{name} = {FIXED[name]!r}" if FIXED[name] else f"no {name}"
            found.append(_refusal(name, value, wanted))
        if name in SPREADS and isinstance(value, str) and value == LEARN:
            found.append(_refusal(name, value, CONSTANT))
    return found


def _refusal(name: str, value: Any, wanted: str) -> str:
    return (
        f"{name} = {value!r} contradicts the method as it was published, which has {wanted}. Leave "
        "out the one or the other."
    )


def _differs(given: Any, wanted: Any) -> bool:
    if not wanted:
        return bool(given)
    if isinstance(wanted, tuple):
        return tuple(given) != wanted
    return given != wanted


def _check_constants(model: HybridSDE) -> None:
    """A `ValueError` where G, σ or ξ would be learned, or G could not be inverted."""
    for name in SPREADS:
        value = getattr(model, name)
        if isinstance(value, AbstractParameter | AbstractDiffusion) and _moved(value):
            raise ValueError(_refusal(name, value, CONSTANT))
    given = model.diffusion
    if not isinstance(given, str | AbstractParameter | AbstractDiffusion) and not callable(given):
        numbers = np.asarray(given, float)
        if np.any((np.diag(numbers) if numbers.ndim == 2 else numbers) == 0):
            raise ValueError(
                "`diffusion` has a zero, but the path KL of the method as it was published needs a "
                "G that can be inverted (Lemma 1). Give numbers above zero, or drop the preset."
            )
    if _moved(model.physics):
        raise ValueError(
            "Parameters of the known equations are learned, but the method as it was published "
            "holds them. Give their values alone, or leave out the preset."
        )


def _moved(tree: Any) -> bool:
    return any(np.any(leaf) for leaf in jax.tree.leaves(trainable(tree)))
