"""Every system by the name that commands know it by, in a size that suits a few columns."""

from collections.abc import Callable

from hybridsde.baselines.base import AbstractBaseline
from hybridsde.baselines.dtsbn import DTSBN
from hybridsde.baselines.kalman import LinearGaussian
from hybridsde.baselines.neural_ode import NeuralODE
from hybridsde.baselines.np_ode import NpODE
from hybridsde.baselines.ode2vae import ODE2VAE
from hybridsde.baselines.simple import Climatology, Persistence
from hybridsde.model import Latent

Columns = tuple[str, ...]
Maker = Callable[[Columns, Columns, int], AbstractBaseline]
"""From the observed columns, the positive ones among them, and how many first rows are given."""


def _latent(given: int, spread: float = 0.0) -> Latent:
    return Latent(context=given, spread=spread)


NAMED: dict[str, Maker] = {
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
}
