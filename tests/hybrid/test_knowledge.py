"""Knowledge beside equations: residuals in closed form, and fits that keep to it."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.data import Batch
from hybridsde.hybrid.scoring import LogLikelihood
from hybridsde.hybrid.violations import violations
from hybridsde.model.constraints import TOLERANCE, WORTH
from hybridsde.model.drift import Symmetry, symmetric
from hybridsde.simulate import EulerMaruyama


def rows(count=3, length=30, seed=0, states=("x", "v"), inputs=("u",), positive=False):
    """Anything at all: residuals are about the drift."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, length, len(states)))
    return hs.Trajectories.from_arrays(
        [0.1 * np.arange(length)] * count,
        list(np.exp(values) if positive else values),
        states=states,
        inputs=list(rng.normal(size=(count, length, len(inputs)))) if inputs else None,
        input_names=inputs,
    )


def residuals(equations, data=None, positive=(), **known):
    """Of known physics alone, with the points that they were computed in."""
    data = data or rows()
    spec = hs.HybridSDE(
        states=("x", "v"),
        inputs=data.input_names,
        physics=hs.equations(*equations),
        knowledge=hs.Knowledge(**known),
        positive=positive,
    )
    model = spec.init(spec.batch(data), key=jr.key(0))
    bare = replace(spec, hidden=None).init(spec.batch(data), key=jr.key(0))
    assert model.constraints is not None
    constraints = model.constraints.value
    return np.asarray(constraints.residuals(bare.typical())), constraints


def test_energy_changes_by_what_friction_takes():
    """Q = v² + x² of dx = v, dv = −x − c v: dQ/dt = −2 c v²."""
    found, at = residuals(["dx = v", "dv = -x - 0.3*v"], conserved=["x^2 + v^2"])
    gradient = 2 * np.asarray(at.states)
    unit = np.sqrt(np.mean(np.sum((gradient * np.asarray(at.rate)) ** 2, 1)))
    np.testing.assert_allclose(found[0], -0.6 * np.asarray(at.states[:, 1]) ** 2 / unit, atol=1e-5)
    kept, _ = residuals(["dx = v", "dv = -x"], conserved=["x^2 + v^2"])
    np.testing.assert_allclose(kept, 0, atol=1e-5)


def test_a_quantity_of_positive_states_is_in_raw_units():
    """D(ln x) = −v, d(ln v) = x conserve x + v: x·(−v) + v·x = 0."""
    found, _ = residuals(
        ["dx = -x*v", "dv = x*v"], rows(positive=True), ("x", "v"), conserved=["x + v"]
    )
    np.testing.assert_allclose(found, 0, atol=1e-5)


def test_slopes_of_the_wrong_sign_count():
    found, at = residuals(["dv = -2*x + u"], effects={"v": {"x": "+", "u": "+"}})
    spread, rate = np.asarray(at.spread), np.asarray(at.rate)
    np.testing.assert_allclose(found[0], 2 * spread[0] / rate[1], rtol=1e-4)
    np.testing.assert_allclose(found[1], 0, atol=1e-6)


def test_odd_and_even():
    """x² in a drift that should be odd is off by 2x²; x·v is even in both."""
    found, at = residuals(
        ["dx = x*v", "dv = -x - x^2"], odd={"v": ["x", "v"]}, even={"x": ["x", "v"]}
    )
    expected = -2 * np.asarray(at.states[:, 0]) ** 2 / np.asarray(at.rate)[1]
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found[1], 0, atol=1e-5)


def test_decay_is_asked_for_without_inputs():
    found, at = residuals(["dx = -x + 5*u", "dv = v"], decays=["x", "v"])
    np.testing.assert_allclose(found[0], 0, atol=1e-6)
    v, spread = np.asarray(at.states[:, 1]), np.asarray(at.spread)
    np.testing.assert_allclose(found[1], v**2 / spread[1] / np.asarray(at.rate)[1], rtol=1e-3)


def test_the_likelihood_pays_for_contradictions():
    data = rows(inputs=())
    known = hs.Knowledge(conserved=["x + v"], odd={"v": ["x", "v"]})
    spec = hs.HybridSDE(
        states=("x", "v"), learned="library", degree=2, functions=(), knowledge=known
    )
    batch = Batch.of(data)
    models = [
        one.init(batch, key=jr.key(0)) for one in (spec, replace(spec, knowledge=hs.Knowledge()))
    ]
    held, free = (
        LogLikelihood(model, model.network.mean(), EulerMaruyama(), batch) for model in models
    )
    rng = np.random.default_rng(1)
    theta = held.start + 0.05 * rng.normal(size=len(held.start))
    found, plain = held(theta), free(theta)
    assert models[0].constraints is not None
    constraints = models[0].constraints.value
    r = np.asarray(constraints.residuals(driven(models[0], theta, held)))
    paid = 0.5 * WORTH * np.sum(np.mean((r / TOLERANCE) ** 2, 1))
    np.testing.assert_allclose(found.value, plain.value - paid, rtol=1e-4)
    step = 1e-5
    for k in range(4):
        moved = np.eye(len(theta))[k] * step
        slope = (held(theta + moved).value - held(theta - moved).value) / (2 * step)
        np.testing.assert_allclose(found.gradient[k], slope, rtol=1e-4, atol=1e-3)


def driven(model, theta, likelihood):
    """The SDE that a vector of numbers stands for."""
    mean = model.network.mean()
    coefficients = jnp.asarray(theta[: likelihood.coefficients]).reshape(mean.coefficients.shape)
    library = eqx.tree_at(lambda n: n.coefficients, mean, coefficients)
    return likelihood.model(theta).driven_by(library)


def test_a_symmetry_is_asked_beyond_the_recorded_range():
    """Terms stand still far outside; recordings of one side must not make x unlike −x."""
    data = rows(inputs=())
    data = replace(data, values=np.abs(data.values) + 5.0)
    spec = hs.HybridSDE(
        states=("x", "v"), learned="library", degree=1, functions=(),
        knowledge=hs.Knowledge(odd={"v": ["x", "v"]}),
    )  # fmt: skip
    batch = Batch.of(data)
    model = spec.init(batch, key=jr.key(0))
    likelihood = LogLikelihood(model, model.network.mean(), EulerMaruyama(), batch)
    theta = likelihood.start
    theta[model.network.basis.value.names.index("x") * 2 + 1] = 1.0
    assert model.constraints is not None
    found = model.constraints.value.residuals(driven(model, theta, likelihood))
    np.testing.assert_allclose(found, 0, atol=1e-4)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"conserved": ["x + w"]}, "names 'w'"),
        ({"effects": {"x": {"v": "up"}}}, "must be \\+ or -"),
        ({"effects": {"x": {"w": "+"}}}, "names 'w'"),
        ({"odd": {"w": ["x"]}}, "names 'w'"),
        ({"even": {"x": ["p"]}}, "cannot be mirrored"),
        ({"conserved": ["pi"]}, "has none"),
        ({"decays": ["w"]}, "names 'w'"),
    ],
)
def test_mistakes_are_told_when_a_model_is_declared(known, message):
    with pytest.raises(ValueError, match=message):
        hs.HybridSDE(states=("x", "v", "p"), positive=("p",), knowledge=hs.Knowledge(**known))


def epidemics(count, seed=0, length=40):
    """S and I and R of a population of one: dS = −2SI, dI = 2SI − I/2, dR = I/2, with noise."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.05, 0.3, count)
    h = np.stack([1 - start, start, np.zeros(count)], 1)
    out = [h]
    for _ in range(length - 1):
        for _ in range(10):
            new, gone = 2 * h[:, 0] * h[:, 1], 0.5 * h[:, 1]
            h = h + 0.025 * np.stack([-new, new - gone, gone], 1)
        out.append(h)
    values = np.stack(out, 1) + 0.02 * rng.normal(size=(count, length, 3))
    times = [0.25 * np.arange(length)] * count
    return hs.Trajectories.from_arrays(times, list(values), states=("s", "i", "r"))


@pytest.mark.slow
@pytest.mark.parametrize("learned", ["library", "network"])
def test_a_fit_keeps_what_is_conserved(learned, tmp_path):
    known = hs.Knowledge(conserved=["s + i + r"])
    spec = hs.HybridSDE(states=("s", "i", "r"), learned=learned, hidden=(16,), knowledge=known)
    data = epidemics(2)
    epochs = {} if learned == "library" else {"training": hs.Training(epochs=150)}
    runs = [hs.fit(one, data, **epochs) for one in (spec, replace(spec, knowledge=hs.Knowledge()))]
    off = [violations(known, run.spec, run.forecaster.model, spec.batch(data)) for run in runs]
    assert off[0][0].size < 0.05
    assert off[0][0].size < 0.5 * off[1][0].size
    runs[0].save(tmp_path / "run")
    again = hs.Run.load(tmp_path / "run")
    assert again.spec.knowledge.conserved == ["s + i + r"]
    np.testing.assert_array_equal(again.score(data), runs[0].score(data))


@pytest.mark.parametrize("learned", ["network", "ensemble"])
def test_networks_have_symmetries_built_in(learned):
    """Dv is odd in x, v and u together and even in x and v, dx even in u.

    Far from the data a pull back there adds what is odd in x and v together.
    """
    spec = hs.HybridSDE(
        states=("x", "v"),
        inputs=("u",),
        learned=learned,
        knowledge=hs.Knowledge(odd={"v": ["x", "v", "u"]}, even={"x": ["u"], "v": ["x", "v"]}),
    )
    sde = spec.init(spec.batch(rows()), key=jr.key(0)).draw(key=jr.key(1))
    for h, u in (([0.3, -0.7], [0.4]), ([30.0, -70.0], [40.0])):
        h, u = jnp.array(h), jnp.array(u)
        here = sde.learned(jnp.zeros(()), h, u, None)
        mirrored = sde.learned(jnp.zeros(()), -h, -u, None)
        other_input = sde.learned(jnp.zeros(()), h, -u, None)
        other_state = sde.learned(jnp.zeros(()), -h, u, None)
        assert np.abs(here).min() > 1e-4
        np.testing.assert_allclose(mirrored[1], -here[1], rtol=1e-4)
        np.testing.assert_allclose(other_input[0], here[0], rtol=1e-4)
        if abs(u[0]) < 1:
            np.testing.assert_allclose(other_state[1], here[1], rtol=1e-4)


def test_libraries_have_no_symmetry_built_in():
    spec = hs.HybridSDE(
        states=("x", "v"),
        inputs=("u",),
        learned="library",
        knowledge=hs.Knowledge(odd={"v": ["x"]}),
    )
    assert spec.init(spec.batch(rows()), key=jr.key(0)).symmetries == ()


def test_each_mirrored_place_is_looked_at_once():
    """Eight states, each odd in itself: nine places, not 2⁸."""
    calls = []

    def f(h, u):
        calls.append(1)
        return h + 1.0

    states = 8
    flips = np.eye(states, dtype=bool)
    each = [Symmetry(tuple(row.tolist()), tuple(-1.0 * row)) for row in flips]
    h = jnp.arange(1.0, states + 1)
    np.testing.assert_allclose(symmetric(f, each, h, jnp.zeros(0)), h)
    assert len(calls) == states + 1


def test_what_would_be_zero_is_refused():
    with pytest.raises(ValueError, match="so dv would be zero"):
        hs.HybridSDE(states=("x", "v"), knowledge=hs.Knowledge(odd={"v": ["x"]}, even={"v": ["x"]}))
