"""What is known beside equations, and how well a run keeps to it."""

from hybridsde.data import Trajectories
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.violations import Violation, violations
from hybridsde.run import Run


def knowledge_kept(run: Run, data: Trajectories) -> list[Violation]:
    """Every property on and around these recordings; nothing where none was declared."""
    spec, forecaster = run.spec, run.forecaster
    if not (isinstance(spec, HybridSDE) and isinstance(forecaster, SDEForecaster)):
        return []
    return violations(spec.knowledge, spec, forecaster.model, spec.batch(data))
