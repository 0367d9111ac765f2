"""Settings that an experiment is run with."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Training
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.published import published, published_loss
from hybridsde.objective import ELBO, AbstractSDEObjective, LogPosterior
from hybridsde.simulate import AbstractSolver, EulerMaruyama

Data = TypeVar("Data", Batch, Trajectories)


@dataclass(frozen=True)
class Preset:
    """A choice of model, training and solver."""

    model: HybridSDE
    """Without physics; each row brings its own."""
    training: Training
    solver: AbstractSolver
    samples: int
    """S, paths per series and gradient step."""
    window: tuple[int, int] | None = None
    """Length and stride of the pieces that training sequences are cut into; None leaves them."""
    learned_gate: bool = False
    """Whether γ is learned for the known equations instead of held at one."""
    uncertain_physics: bool = False
    """Whether physics alone is forecast with parameters drawn anew for every path."""

    @classmethod
    def published(cls, **declared: Any) -> "Preset":
        """The method of the paper, as `hybridsde.published` gives it to everybody."""
        model, how = published(**declared)
        loss = how["objective"]
        return cls(model, how["training"], loss.solver, loss.samples)

    def pieces(self, data: Data) -> Data:
        """Training sequences as they are trained on."""
        return data if self.window is None else data.windows(*self.window)

    def objective(self, method: str) -> AbstractSDEObjective:
        """The loss of a method."""
        return replace(METHODS[method], samples=self.samples, solver=self.solver)


METHODS: dict[str, AbstractSDEObjective] = {
    "e-bayes": replace(published_loss("bayes"), estimator="mean_log"),
    "e-pac-bayes": published_loss("pac-bayes"),
}
"""The losses as they were published. With one sample, which `paper` has, the log of a mean is the
mean of logs; `recommended` has two, and takes the mean of logs in both rows of a pair, so that they
differ in the PAC term alone."""
_FREE_PATHS = {"samples": 1, "estimator": "mean_log", "solver": EulerMaruyama()}
COMPARED: dict[str, AbstractSDEObjective] = {
    "d-bnn (sgld)": LogPosterior(**_FREE_PATHS),
    "d-bnn (vi)": ELBO(**_FREE_PATHS),
}
"""Those that the paper compares with: of the most probable weights, and variational inference."""
PHYSICS, LIBRARY = "physics", "library"
"""Methods without a loss: nothing learned, and a library of terms by its evidence."""
