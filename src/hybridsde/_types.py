"""Array aliases and the one vocabulary of axes.

Every array axis in the package carries one of these names:

    seed     independent repetitions of a fit
    sample   Monte-Carlo draws: weights, then noise
    series   trajectories
    time     observation times; `step` for the solver's finer grid
    state    components of h
    obs      components of y
    input    components of u

Layers of a network use `in`, `out` and `width`.
"""

from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

Scalar = Float[Array, ""]

__all__ = ["Array", "Bool", "Float", "PRNGKeyArray", "PyTree", "Scalar"]
