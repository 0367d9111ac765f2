"""Every system that can be declared: by class for run folders, by name for commands."""

from collections.abc import Callable
from typing import cast

from hybridsde._errors import InputError, suggest
from hybridsde.baselines import (
    DTSBN,
    ODE2VAE,
    Analogues,
    Climatology,
    LinearGaussian,
    NeuralODE,
    NpODE,
    Persistence,
    VectorAutoregression,
)
from hybridsde.forecast import ModelSpec
from hybridsde.hybrid import HybridSDE
from hybridsde.model import Latent

Columns = tuple[str, ...]
Maker = Callable[[Columns, Columns, int], ModelSpec]
"""From the observed columns, the positive ones among them, and how many first rows are given."""

_CLASSES: dict[str, type[ModelSpec]] = {
    kind.__name__: kind
    for kind in (
        HybridSDE,
        NeuralODE,
        NpODE,
        ODE2VAE,
        DTSBN,
        LinearGaussian,
        Persistence,
        Climatology,
        Analogues,
        VectorAutoregression,
    )
}


def register(kind: type[ModelSpec], name: str | None = None, make: Maker | None = None) -> None:
    """Make a system of your own known to run folders and, under a name, to comparisons.

    `make` declares one for a comparison; by default it is given `observed`, `positive` and `given`.
    """
    _CLASSES[kind.__name__] = kind
    if name is None:
        return

    declare = cast(Callable[..., ModelSpec], kind)

    def plain(columns: Columns, positive: Columns, given: int) -> ModelSpec:
        return declare(observed=columns, positive=positive, given=given)

    SYSTEMS[name] = make or plain


def class_of(name: str) -> type[ModelSpec]:
    """The class that a run folder names."""
    if name not in _CLASSES:
        raise InputError(
            f"This version knows no system of the kind {name!r}.{suggest(name, _CLASSES)} One of "
            "your own must be made known with `hybridsde.register` before its runs are loaded."
        )
    return _CLASSES[name]


def _latent(given: int, spread: float = 0.0) -> Latent:
    return Latent(context=given, spread=spread)


SYSTEMS: dict[str, Maker] = {
    "neural-ode": lambda y, positive, given: NeuralODE(
        observed=y, positive=positive, latent=_latent(given), states=2 * len(y)
    ),
    "npode": lambda y, positive, given: NpODE(observed=y, positive=positive, given=given),
    "npsde": lambda y, positive, given: NpODE(
        observed=y, positive=positive, given=given, diffusion=True
    ),
    "ode2vae": lambda y, positive, given: ODE2VAE(
        observed=y, positive=positive, latent=_latent(given, 0.1), positions=len(y)
    ),
    "ode2vae-kl": lambda y, positive, given: ODE2VAE(
        observed=y, positive=positive, latent=_latent(given, 0.1), positions=len(y), penalty=1.0
    ),
    "dtsbn-s": lambda y, positive, given: DTSBN(observed=y, positive=positive, given=given),
    "linear-gaussian": lambda y, positive, given: LinearGaussian(
        observed=y, positive=positive, given=given, states=2 * len(y)
    ),
    "persistence": lambda y, positive, given: Persistence(
        observed=y, positive=positive, given=given
    ),
    "climatology": lambda y, positive, given: Climatology(
        observed=y, positive=positive, given=given
    ),
    "analogues": lambda y, positive, given: Analogues(observed=y, positive=positive, given=given),
    "mean-curve": lambda y, positive, given: Analogues(
        observed=y, positive=positive, given=given, first_rows=True
    ),
    "var": lambda y, positive, given: VectorAutoregression(
        observed=y, positive=positive, given=given
    ),
}
"""Systems to compare with, in a size that suits a few columns."""
SIMPLE = ("persistence", "climatology", "analogues", "mean-curve", "var")
"""Those that cost seconds, and that everything else should beat."""
