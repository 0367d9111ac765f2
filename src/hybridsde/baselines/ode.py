"""Solutions of ordinary differential equations at given times, by diffrax."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Float, PyTree

MOST_STEPS = 4096
"""Of one solution with adapted steps."""


def solve(
    field: Callable[[PyTree], PyTree],
    start: PyTree,
    times: Float[Array, " time"],
    *,
    tolerance: float | None,
) -> PyTree:
    """y(t) with dy/dt = field(y) at every time, the first included; arrays gain a leading axis.

    Tsit5, a Runge–Kutta pair of order 5(4): one step between two times, or steps of adapted length
    with this relative tolerance. Gradients are those of the steps that were taken (the discrete
    adjoint).
    """
    import diffrax as dfx  # an extra, and a slow import

    terms, solver = dfx.ODETerm(lambda _t, y, _args: field(y)), dfx.Tsit5(scan_kind="bounded")
    if tolerance is None:
        return _stepwise(terms, solver, start, times)
    found = dfx.diffeqsolve(
        terms,
        solver,
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=start,
        saveat=dfx.SaveAt(ts=times),
        stepsize_controller=dfx.PIDController(rtol=tolerance, atol=tolerance / 10),
        adjoint=dfx.DirectAdjoint(),
        max_steps=MOST_STEPS,
        throw=False,
    )
    return found.ys


def _stepwise(terms, solver, start: PyTree, times: Float[Array, " time"]) -> PyTree:
    """One step between two times: a plain scan, several times faster than a loop that may adapt."""
    first = solver.init(terms, times[0], times[1], start, None)

    def step(carry, ends):
        y, kept = carry
        y, _, _, kept, _ = solver.step(terms, *ends, y, None, kept, made_jump=False)
        return (y, kept), y

    _, later = lax.scan(step, (start, first), (times[:-1], times[1:]))
    return jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), start, later)
