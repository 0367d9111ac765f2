"""Settings that an experiment is run with."""

from dataclasses import dataclass, replace
from typing import TypeVar

from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Training
from hybridsde.hybrid import HybridSDE
from hybridsde.objective import AbstractSDEObjective, EmpiricalBayes, EmpiricalPACBayes
from hybridsde.simulate import AbstractSolver

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

    def pieces(self, data: Data) -> Data:
        """Training sequences as they are trained on."""
        return data if self.window is None else data.windows(*self.window)

    def objective(self, method: str) -> AbstractSDEObjective:
        """The loss of a method."""
        return replace(METHODS[method], samples=self.samples, solver=self.solver)


METHODS: dict[str, AbstractSDEObjective] = {
    "e-bayes": EmpiricalBayes(estimator="mean_log"),
    "e-pac-bayes": EmpiricalPACBayes(estimator="mean_log", path_kl="sum"),
}
"""The losses as Algorithm 1 prints them: sampled paths, and the path KL summed over series."""
PHYSICS, LIBRARY = "physics", "library"
"""Methods without a loss: nothing learned, and a library of terms by its evidence."""
