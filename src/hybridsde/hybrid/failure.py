"""Why a fit has no finite loss: the first thing that is not finite, by name."""

import jax
import jax.numpy as jnp
import numpy as np

from hybridsde.data import Batch
from hybridsde.estimate.filter import row_scores
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.model import GaussianObservation


def why_not_finite(spec: ModelSpec, forecaster: AbstractForecaster, batch: Batch) -> str:
    """The series, time and state where the likelihood stops being a number, and a likely cause."""
    general = (
        "The loss was never a number. Check the units of the data and of the known equations, and "
        "their parameters."
    )
    if not isinstance(forecaster, SDEForecaster):
        return general
    model, solver = forecaster.model, forecaster.solver
    if not isinstance(model.observation, GaussianObservation):
        return general
    found = np.asarray(jax.jit(row_scores)(model, solver, batch))
    wrong = np.argwhere(~np.isfinite(found))
    if not wrong.size:
        return f"{general} The likelihood itself is finite: the path KL or the weights are not."
    series, step = wrong[np.argmin(wrong[:, 1])]
    one = jax.tree.map(lambda leaf: leaf[series], batch)
    grid = one.grid(solver.substeps, model.interpolation)
    start = model.initial_state(model.typical(), one, jnp.zeros(model.start_normals))
    sde = model.typical()

    def walk(h, x):
        after = sde.clip(solver.transition(sde, x.t, h, x.u, x.dt, None).mean)
        return after, (sde.drift(x.t, h, x.u, None), after)

    _, ((learned, known), after) = jax.lax.scan(walk, start, grid)
    for name, term in (("known", known), ("learned", learned)):
        places = np.argwhere(~np.isfinite(np.asarray(term)))
        if places.size:
            first, state = places[0]
            before = np.asarray(start if first == 0 else after[first - 1])
            where = ", ".join(
                f"{n} = {v:.3g}" for n, v in zip(spec.state_names, before, strict=True)
            )
            return (
                f"The {name} drift of {spec.state_names[state]!r} is not a number at time "
                f"{float(grid.t[first]):.4g} of a recording, at {where}. Declare `positive` or "
                "`bounds` for states that cannot go there, or correct the equation."
            )
    return (
        f"The likelihood is not a number from step {step} of recording number {series} on, at time "
        f"{float(grid.t[step]):.4g}, although the drift is. {general}"
    )
