"""Known drifts r_ξ: Python functions of named quantities, or none."""

from hybridsde.physics.base import AbstractPhysics as AbstractPhysics
from hybridsde.physics.base import NoPhysics as NoPhysics
from hybridsde.physics.equations import EquationPhysics as EquationPhysics
from hybridsde.physics.equations import equations as equations
from hybridsde.physics.function import FunctionPhysics as FunctionPhysics
from hybridsde.physics.function import known_drift as known_drift
from hybridsde.physics.positive import PositivePhysics as PositivePhysics
