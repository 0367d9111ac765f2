"""What a hybrid has learned: its equations, its drift beside what is known, and its numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._streams import Stream, stream
from hybridsde.data import Trajectories
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.build import seen_by
from hybridsde.hybrid.declaration import ENSEMBLE, LIBRARY, PROCESS
from hybridsde.hybrid.discovered import Discovered
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.model import BayesianSDE
from hybridsde.physics import EquationPhysics
from hybridsde.physics.expression import mathml, symbol
from hybridsde.report import panels
from hybridsde.run import Run

UNLIKELY = 0.01
"""Terms that are less likely than this are not listed."""
WEIGHTS = 32
"""Draws of the weights behind a picture of the drift."""


@dataclass(frozen=True)
class Hybrid:
    """A run of a hybrid SDE."""

    spec: HybridSDE
    model: BayesianSDE
    seed: int
    parameters: Mapping[str, Mapping[str, float | None]]
    """Learned physical parameters with standard errors."""
    discovered: Discovered | None = None
    """Its equations, where the learned part is a library of terms."""

    @classmethod
    def of(cls, run: Run, data: Trajectories) -> "Hybrid | None":
        """None where something else was fitted, which has no drift to show."""
        if isinstance(run.spec, HybridSDE) and isinstance(run.forecaster, SDEForecaster):
            learned = run.metadata.parameters or {}
            found = run.equations(data) if LIBRARY in run.spec.pieces else None
            return cls(run.spec, run.forecaster.model, run.seed, learned, found)
        return None


def equations(fitted: Hybrid) -> list[str]:
    """The drift of every state, typeset; what is learned stands as f."""
    physics = fitted.spec.physics
    states = tuple(fitted.spec.states)
    known = physics.known(states, tuple(fitted.spec.inputs))
    formulas = {}
    if isinstance(physics, EquationPhysics):
        formulas = {equation.state: mathml(equation.rate) for equation in physics.equations}
    gate = np.asarray(fitted.model.known.gate.value)
    lines = []
    for index, name in enumerate(states):
        parts = []
        if name in known:
            part = formulas.get(name, f"<msub><mi>r</mi>{symbol(name)}</msub>")
            strength = float(gate[index])
            factor = "" if strength == 1 else f"<mn>{strength:.2f}</mn><mo>·</mo>"
            if name in fitted.spec.positive:
                part = f"<mfrac><mn>1</mn>{symbol(name)}</mfrac><mo>(</mo>{part}<mo>)</mo>"
            parts.append(f'<mrow class="known">{factor}{part}</mrow>')
        seen = seen_by(fitted.spec, name)
        if fitted.discovered is not None:
            terms = fitted.discovered.learned(name)
            if terms is not None:
                parts.append(f'<mrow class="learned">{mathml(terms)}</mrow>')
            seen = seen if PROCESS in fitted.spec.pieces else ()
        if seen:
            arguments = "<mo>,</mo>".join(symbol(one) for one in seen)
            parts.append(
                f'<mrow class="learned"><msub><mi>f</mi>{symbol(name)}</msub><mo>(</mo>'
                f"{arguments}<mo>)</mo></mrow>"
            )
        drift = "<mo>+</mo>".join(parts) or "<mn>0</mn>"
        logarithm = "<mi>ln</mi>" if name in fitted.spec.positive else ""
        lines.append(
            '<math display="block"><mrow><mi>d</mi>'
            f"{logarithm}{symbol(name)}<mo>=</mo><mo>[</mo>{drift}<mo>]</mo><mi>d</mi><mi>t</mi><mo>+</mo>"
            f"<msub><mi>G</mi>{symbol(name)}</msub><mi>d</mi><msub><mi>W</mi>{symbol(name)}</msub>"
            "</mrow></math>"
        )
    return lines


def made_of(fitted: Hybrid) -> str:
    """What the learned part is, in words."""
    kinds = {
        "network": "a Bayesian neural network"
        if fitted.spec.networks < 2
        else f"{fitted.spec.networks} Bayesian neural networks in equal shares",
        LIBRARY: "a few terms out of a library, by their evidence",
        PROCESS: "a Gaussian process",
        ENSEMBLE: f"an ensemble of {fitted.spec.networks} small networks in equal shares",
    }
    return " and ".join(kinds[one] for one in fitted.spec.pieces) or "none"


def terms(fitted: Hybrid) -> list[dict[str, str]]:
    """Every term that may be in an equation, with its coefficient and how likely it is."""
    if fitted.discovered is None:
        return []
    return [
        {
            "state": _scale(fitted, one.state),
            "term": f"<math>{mathml(one.term)}</math>",
            "value": with_error(one.value, one.error),
            "probability": f"{100 * one.probability:.0f} %",
        }
        for one in fitted.discovered.terms
        if one.probability > UNLIKELY
    ]


def slices(fitted: Hybrid, data: Trajectories, most: int = 6) -> list[str]:
    """The drift of each state along itself, the others at their median; none with hidden ones."""
    states = tuple(fitted.spec.states)
    if len(data.states) != len(states) or not data.observed.all(-1).any():
        return []
    points = [data.values[..., k][data.observed[..., k]] for k in range(len(data.states))]
    middle = np.array([np.median(column) for column in points])
    names = fitted.spec.physics.known(states, tuple(fitted.spec.inputs))
    pictures = []
    for k, name in enumerate(states[:most]):
        low, high = np.quantile(points[k], [0.01, 0.99])
        at = np.linspace(low, high, 60)
        grid = np.repeat(middle[None], len(at), 0)
        grid[:, k] = at
        learned, known = rates_at(fitted, grid, data)
        shown = known[:, k] if name in names else None
        pictures.append(panels.slice_of_drift(at, learned[..., k], shown, name, name))
    return pictures


def rates_at(fitted: Hybrid, grid: np.ndarray, data: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """`rates_along` at one time, with the inputs of one row."""
    inputs = data.inputs[data.inputs.shape[0] // 2, 0] if data.input_names else np.zeros(0)
    times = np.full(len(grid), np.median(data.times))
    return rates_along(fitted, grid, times, np.broadcast_to(inputs, (len(grid), len(inputs))))


def rates_along(
    fitted: Hybrid, states: np.ndarray, times: np.ndarray, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Learned drifts under draws of the weights, and the known drift, γ included, at each row.

    States, times and rates are in the units of the data: dx/dt = x d ln x/dt where x is positive.
    """
    logarithms = np.array([name in fitted.spec.positive for name in fitted.spec.states])
    grid = states - fitted.spec.offset_of(fitted.spec.states)
    places = np.where(logarithms, np.log(np.where(logarithms, grid, 1.0)), grid)
    clock = jnp.asarray(times - fitted.spec.clock.origin)
    rows = (clock, jnp.asarray(places), jnp.asarray(inputs, float))

    def one(key) -> tuple[jax.Array, jax.Array]:
        sde = fitted.model.draw(key=key)
        noise = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape[2:], leaf.dtype),
            sde.learned.network.noise(jnp.zeros(1, jnp.uint32), 1, key=key),
        )
        return jax.vmap(lambda t, h, u: sde.drift(t, h, u, noise))(*rows)

    learned, known = jax.vmap(one)(jr.split(stream(fitted.seed, Stream.PICTURE), WEIGHTS))
    slope = np.where(logarithms, grid, 1.0)
    return np.asarray(learned) * slope, np.asarray(known[0]) * slope


def numbers(fitted: Hybrid) -> list[dict[str, str]]:
    """Spreads and parameters that training decided."""
    rows = []
    spread = getattr(fitted.model.diffusion, "sd", None)
    if spread is not None:
        values = np.broadcast_to(np.asarray(spread.value), (len(fitted.spec.states),))
        rows += [
            {"name": f"G, noise of the motion of {_scale(fitted, name)}", "value": f"{value:.3g}"}
            for name, value in zip(fitted.spec.states, values, strict=True)
        ]
    observation = fitted.model.observation
    values = np.broadcast_to(np.asarray(observation.sd.value), (len(observation.names),))
    rows += [
        {"name": f"measurement noise of {_scale(fitted, name)}", "value": f"{value:.3g}"}
        for name, value in zip(observation.names, values, strict=True)
    ]
    rows += [
        {"name": name, "value": _with_error(fitted, name, float(parameter.value))}
        for name, parameter in parameters_of(fitted.model.known.physics).items()
        if np.ndim(parameter.value) == 0
    ]
    return rows


def _with_error(fitted: Hybrid, name: str, value: float) -> str:
    """A physical parameter, with its standard error where it was learned."""
    error = fitted.parameters.get(name, {}).get("error")
    return f"{value:.4g}" if error is None else with_error(value, error)


def with_error(value: float, error: float) -> str:
    """A number and its standard error, to two digits of the error: −3.925 ± 0.085."""
    if not (np.isfinite(value) and np.isfinite(error) and error > 0):
        return f"{value:.4g}".replace("-", "−")
    places = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:.{places}f} ± {error:.{places}f}".replace("-", "−")


def _scale(fitted: Hybrid, name: str) -> str:
    return f"ln {name}" if name in fitted.spec.positive else name
