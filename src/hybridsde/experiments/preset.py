"""Settings that an experiment is run with."""

from dataclasses import dataclass
from typing import TypeVar

from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Training
from hybridsde.model import HybridSDE
from hybridsde.objective import AbstractObjective, EmpiricalBayes, EmpiricalPACBayes
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

    def objective(self, method: str) -> AbstractObjective:
        """The loss of a method."""
        return METHODS[method](samples=self.samples)


METHODS = {"e-bayes": EmpiricalBayes, "e-pac-bayes": EmpiricalPACBayes}
