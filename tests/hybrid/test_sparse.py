"""Terms by their evidence: scoring through the filter, spike and slab, and what comes out."""

from dataclasses import replace
from itertools import chain, combinations

import jax.random as jr
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import hybridsde as hs
from hybridsde.data import Batch
from hybridsde.hybrid import scoring
from hybridsde.hybrid.discovered import discover
from hybridsde.hybrid.scoring import LogLikelihood
from hybridsde.hybrid.selection import Surrogate, select
from hybridsde.hybrid.sparse import (
    PARSIMONY,
    about_fitted,
    complexity,
    fit_sparse,
    inclusion_prior,
    row_innovations,
)
from hybridsde.model.library import polynomials
from hybridsde.physics.expression import text
from hybridsde.physics.grammar import parse_formula
from hybridsde.simulate import EulerMaruyama


def swings(count=6, rows=50, *, seed=0, hidden=False, damping=0.3, cubic=0.0):
    """dx = v dt, dv = (−4x − c v − b x³) dt + 0.05 dW, in fine steps, noise 0.02."""
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(count, 2))
    out = [h]
    for _ in range(rows - 1):
        for _ in range(20):
            x, v = h.T
            drift = np.stack([v, -4 * x - damping * v - cubic * x**3], 1)
            h = h + 0.005 * drift + np.array([0, 0.05]) * np.sqrt(0.005) * rng.normal(size=h.shape)
        out.append(h)
    values = np.stack(out, 1) + 0.02 * rng.normal(size=(count, rows, 2))
    columns = 1 if hidden else 2
    return hs.Trajectories.from_arrays(
        [0.1 * np.arange(rows)] * count, list(values[..., :columns]), states=("x", "v")[:columns]
    )


def drifting(c=0.4, g=0.5, count=3, rows=40):
    """Increments of dx = c dt + G dW."""
    rng = np.random.default_rng(2)
    steps = c * 0.1 + g * np.sqrt(0.1) * rng.normal(size=(count, rows, 1))
    values = [np.concatenate([[[0.0]], np.cumsum(one, 0)]) for one in steps]
    return hs.Trajectories.from_arrays([0.1 * np.arange(rows + 1)] * count, values, states=("x",))


def likelihood_of(data, **settings):
    spec = hs.HybridSDE(learned="library", functions=(), **settings)
    batch = Batch.of(data)
    model = spec.init(batch, key=jr.key(0))
    return LogLikelihood(model, model.network.mean(), EulerMaruyama(), batch), model


def test_the_information_of_a_constant_drift_is_time_over_g_squared():
    """Increments are N(c Δt, G² Δt): I(c) = T/G², and the score is Σ(Δx − c Δt)/G²."""
    data, g = drifting(), 0.5
    likelihood, model = likelihood_of(
        data, states=("x",), degree=1, diffusion=g, noise=1e-4, start="first"
    )
    found = likelihood(likelihood.start)
    unit = float(model.scale.value.rate[0] / model.network.basis.value.size[0])
    duration = 3 * 40 * 0.1
    np.testing.assert_allclose(found.information[0, 0], unit**2 * duration / g**2, rtol=1e-4)
    moved = sum(one[-1, 0] - one[0, 0] for one in data.values)
    np.testing.assert_allclose(found.gradient[0], unit * moved / g**2, rtol=1e-4)


def test_gradients_are_those_of_the_log_likelihood():
    likelihood, _ = likelihood_of(swings(2, 12), states=("x", "v"), degree=1)
    rng = np.random.default_rng(0)
    theta = likelihood.start + 0.1 * rng.normal(size=len(likelihood.start))
    found = likelihood(theta)
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-5
        slope = (likelihood(theta + step).value - likelihood(theta - step).value) / 2e-5
        np.testing.assert_allclose(found.gradient[k], slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("lanes", "rows"), [(4, 9), (30, 10), (10_000, 11)])
def test_slopes_in_some_numbers_are_those_in_all(lanes, rows, monkeypatch):
    """However many are computed at once; others are left out. Rows differ: no program is kept."""
    monkeypatch.setattr(scoring, "LANES", lanes)
    likelihood, _ = likelihood_of(swings(2, rows), states=("x", "v"), degree=2)
    theta = likelihood.start + 0.1
    whole = likelihood(theta)
    free = np.zeros(len(theta), bool)
    free[[1, 4, 5, -2]] = True
    for some in (free, ~free, np.zeros_like(free)):
        found = likelihood(theta, some)
        assert found.value == pytest.approx(whole.value, rel=1e-12)
        np.testing.assert_allclose(found.gradient[some], whole.gradient[some], rtol=1e-9)
        block = np.ix_(some, some)
        np.testing.assert_allclose(found.information[block], whole.information[block], rtol=1e-9)
        silent = ~some & (found.gradient == 0)
        assert not found.information[silent].any()
        if lanes == 4 and not some.any():
            assert silent.sum() >= len(theta) - lanes


def regression(seed=0, count=6, rows=40):
    """y = Φc + ε, ε ~ N(0, ½²): coefficients 0 and 3 are not zero."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(rows, count))
    phi[:, 4] = phi[:, 3] + 0.3 * rng.normal(size=rows)
    y = phi[:, 0] - 0.7 * phi[:, 3] + 0.5 * rng.normal(size=rows)
    h, b = phi.T @ phi / 0.25, phi.T @ y / 0.25
    chance = 0.3
    odds = np.full(count, np.log(chance / (1 - chance)))
    return phi, y, Surrogate(b, h, (b, h), np.full(count, 1 / 0.8**2), odds)


def test_the_evidence_is_that_of_the_marginal_gaussian():
    phi, y, surrogate = regression()
    noise = 0.25 * np.eye(len(y))

    def marginal(choice):
        inside = phi[:, list(choice)]
        cov = noise + 0.8**2 * inside @ inside.T
        return multivariate_normal(np.zeros(len(y)), cov).logpdf(y)

    for choice in ((0,), (0, 3), (1, 2, 5)):
        expected = marginal(choice) - marginal(()) + len(choice) * np.log(0.3 / 0.7)
        np.testing.assert_allclose(surrogate.log_evidence(choice), expected, rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_what_looking_at_every_choice_finds(seed):
    _, _, surrogate = regression(seed)
    every = list(chain.from_iterable(combinations(range(6), k) for k in range(7)))
    logs = np.array([surrogate.log_evidence(one) for one in every])
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    inclusion = np.array([shares[[i in one for one in every]].sum() for i in range(6)])
    everywhere, nowhere = np.ones(6, bool), np.zeros(6, bool)
    found = select(surrogate, (), everywhere, nowhere, np.zeros(6), 8)
    assert found.choices[0] == every[int(np.argmax(logs))]
    np.testing.assert_allclose(found.inclusion, inclusion, atol=0.15)
    np.testing.assert_allclose(found.shares.sum(), 1.0)


@pytest.mark.parametrize(("gain", "written"), [(0.8, 1), (2.0, 1), (3.0, 0)])
def test_the_simpler_of_two_terms_is_written_where_the_data_do_not_tell_them_apart(gain, written):
    """Posterior odds of e^(gain − 1) for the first of two: more than √10 only in the last case."""
    h = 100 * np.array([[1.0, 0.97, 0.0], [0.97, 1.0, 0.0], [0.0, 0.0, 1.0]])
    b = np.sqrt(2 * 101 * np.array([30 + gain, 30, 40]))
    odds = np.array([-2.5, -1.5, -1.0])
    surrogate = Surrogate(b, h, (b, h), np.ones(3), odds)
    assert surrogate.log_evidence((0,)) - surrogate.log_evidence((1,)) == pytest.approx(gain - 1)
    every, none = np.ones(3, bool), np.zeros(3, bool)
    found = select(surrogate, (), every, none, np.array([0, 0, 1]), 4)
    assert found.written.tolist() == [written == 0, written == 1, True]


def test_what_is_always_in_stays_and_what_is_not_allowed_stays_out():
    _, _, surrogate = regression()
    allowed = np.array([False, True, True, True, True, True])
    always = np.array([False, True, False, False, False, False])
    found = select(surrogate, (), allowed, always, np.zeros(6), 8)
    assert all(1 in one and 0 not in one for one in found.choices)


@pytest.fixture(scope="module")
def swung():
    spec = hs.HybridSDE(states=("x", "v"), learned="library", degree=3)
    return hs.fit(spec, swings()), swings()


def test_the_equations_of_a_spring_are_found_with_their_errors(swung):
    run, data = swung
    found = run.equations(data)
    likely = {one: {text(t.term) for t in found.likely(one)} for one in ("x", "v")}
    assert likely == {"x": {"v"}, "v": {"x", "v"}}
    truth = {"x": -4.0, "v": -0.3}
    for one in found.likely("v"):
        assert abs(one.value - truth[text(one.term)]) < 5 * one.error
        low, high = one.interval
        np.testing.assert_allclose([low, high], [one.value - 1.645 * one.error,
            one.value + 1.645 * one.error])  # fmt: skip
    assert found.explained == 1.0
    assert run.metadata.objective == "closed form"
    assert len(run.history) >= 2


def test_found_equations_can_be_read_again(swung):
    run, data = swung
    again = hs.equations(*run.equations(data).equations())
    assert again.known(("x", "v"), ()) == ("x", "v")
    assert "These terms explain 100%" in str(run.equations(data))


def test_the_same_data_give_the_same_numbers_whatever_the_seed(swung):
    run, data = swung
    other = hs.fit(run.spec, data, seed=5)
    np.testing.assert_array_equal(
        run.forecaster.model.network.means, other.forecaster.model.network.means
    )


def test_a_run_with_a_library_is_saved_and_loaded(swung, tmp_path):
    run, data = swung
    run.save(tmp_path / "run")
    loaded = hs.Run.load(tmp_path / "run")
    ours, theirs = (one.score(data, draws=20) for one in (run, loaded))
    np.testing.assert_array_equal(ours, theirs)
    assert loaded.equations(data).equations() == run.equations(data).equations()


@pytest.mark.slow
def test_nothing_is_added_to_equations_that_are_right_and_a_wrong_number_is_corrected():
    data = swings()
    right = hs.equations("dx = v", "dv = -k*x - c*v", k=4.0, c=0.3)
    spec = hs.HybridSDE(states=("x", "v"), physics=right, learned="library", degree=2)
    found = hs.fit(spec, data).equations(data)
    assert not found.likely("x")
    assert not found.likely("v")
    wrong = hs.equations("dx = v", "dv = -k*x - c*v", k=3.0, c=0.3)
    found = hs.fit(replace(spec, physics=wrong), data).equations(data)
    (correction,) = found.corrections
    assert correction.name == "k"
    assert abs(correction.after - 4.0) < 5 * correction.error
    assert found.equations() == ["dx = v", "dv = -k*x - c*v"]
    assert found.parameters["k"] == correction.after


def test_a_gate_stands_in_front_of_what_is_known_and_a_function_as_known():
    batch = Batch.of(swings(2, 12))
    half = hs.equations("dx = v", "dv = -k*x", k=8.0)
    spec = hs.HybridSDE(
        states=("x", "v"), physics=half, gate={"x": 1.0, "v": 0.5}, learned="library"
    )
    model = spec.init(batch, key=jr.key(0))
    found = discover(spec, model, batch, key=jr.key(1))
    assert found.equations() == ["dx = v", "dv = 0.5*(-k*x)"]
    python = replace(spec, physics=hs.known_drift(lambda v: {"x": v}), gate=None)
    found = discover(python, python.init(batch, key=jr.key(0)), batch, key=jr.key(1))
    assert "dx = known + 0" in str(found)
    with pytest.raises(hs.InputError, match="'x' is a Python function"):
        found.equations()


@pytest.mark.slow
def test_a_learned_parameter_is_moved_rather_than_a_term_added():
    physics = hs.equations("dx = v", "dv = -k*x", k=hs.Bounded.of(2.0, 0.5, 9.0))
    spec = hs.HybridSDE(states=("x", "v"), physics=physics, learned="library", degree=2)
    data = swings()
    run = hs.fit(spec, data)
    found = run.equations(data)
    assert [text(one.term) for one in found.likely("v")] == ["v"]
    assert run.metadata.parameters is not None
    value, error, *_ = run.metadata.parameters["k"].values()
    assert value is not None
    assert error is not None
    assert abs(value - 4.0) < 5 * error
    assert not found.corrections


@pytest.mark.slow
def test_terms_that_an_equation_may_not_see_stay_out():
    spec = hs.HybridSDE(
        states=("x", "v"),
        physics=hs.equations("dx = v"),
        exact=("x",),
        sees={"v": ["v"]},
        learned=("library", "process"),
        degree=1,
        functions=(),
    )
    batch = Batch.of(swings(3, 20))
    model = spec.init(batch, key=jr.key(0))
    found = fit_sparse(model, EulerMaruyama(), batch).model.network
    chosen = np.any(np.asarray(found.chosen.value), axis=0)
    names = found.basis.value.names
    assert not chosen[:, 0].any()
    assert not chosen[names.index("x"), 1]


@pytest.mark.slow
def test_a_state_that_is_not_measured_is_found_with_its_equation():
    data = swings(8, hidden=True)
    spec = hs.HybridSDE(
        states=("x", "v"), observed=("x",), physics=hs.equations("dx = v"), exact=("x",),
        learned="library", degree=2, functions=(),
    )  # fmt: skip
    run = hs.fit(spec, data)
    likely = {text(one.term): one for one in run.equations(data).likely("v")}
    assert {"x", "v"} <= set(likely)
    assert abs(likely["x"].value + 4.0) < 5 * likely["x"].error
    smoothed = run.smooth(data).states.mean("draw").values[..., 1]
    assert np.corrcoef(smoothed.ravel(), swings(8).values[..., 1].ravel())[0, 1] > 0.98


@pytest.mark.long
@pytest.mark.slow
def test_a_process_learns_what_no_term_of_the_library_says():
    """dv = −4x − 1.5 x|x|…: an odd cubic is left out of a linear library."""
    data, new = swings(12, cubic=4.0), swings(6, seed=9, cubic=4.0)
    spec = hs.HybridSDE(states=("x", "v"), learned="library", degree=1, functions=())
    line = hs.fit(spec, data)
    both = hs.fit(replace(spec, learned=("library", "process")), data)
    scores = [run.score(new).loc["overall", "crps"] for run in (line, both)]
    assert scores[1] < 0.8 * scores[0]
    assert both.equations(data).explained < 0.999


def test_a_process_alone_has_no_terms_and_shares_its_scale():
    batch = Batch.of(swings(3, 20))
    spec = hs.HybridSDE(states=("x", "v"), learned="process")
    found = fit_sparse(spec.init(batch, key=jr.key(0)), EulerMaruyama(), batch)
    network = found.model.network
    assert network.basis.value.names == ()
    assert np.asarray(network.chosen.value[0]).all()
    assert (np.ptp(np.asarray(network.slab.value), 0) == 0).all()
    assert found.log_likelihoods[-1] > found.log_likelihoods[0]


def test_where_a_library_would_be_too_large_networks_are_taken():
    many = hs.HybridSDE(states=tuple(f"x{k}" for k in range(40)))
    assert many.library_degree == 1
    assert not many.undecided
    assert hs.HybridSDE(states=("x", "v")).undecided


def test_innovations_of_a_right_model_are_white_and_steps_without_rows_are_left_out(swung):
    run, data = swung
    model, solver = run.forecaster.model, run.forecaster.solver
    _, about, _, _ = about_fitted(model, solver, run.spec.batch(data))
    z = row_innovations(about)
    assert z.shape == (6, 49, 2)
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)


@pytest.mark.slow
def test_a_library_can_go_on_by_an_objective(swung):
    run, data = swung
    objective = hs.EmpiricalPACBayes(samples=2)
    on = hs.fit(run.spec, data, objective=objective, training=hs.Training(epochs=2))
    assert on.metadata.objective == "EmpiricalPACBayes"
    ours, theirs = (np.asarray(one.forecaster.model.network.means) for one in (run, on))
    assert np.isfinite(theirs).all()
    assert (ours != theirs).any()
    nowhere = ~np.asarray(on.forecaster.model.network.chosen.value).any(0)
    drawn = np.asarray(on.forecaster.model.network.sample(key=jr.key(0)).coefficients)
    assert (drawn[nowhere] == 0).all()
    assert np.isfinite(on.forecaster.kl_to_prior())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learned": "forest"}, "`learned` must be auto, library, process, ensemble or network"),
        ({"learned": ("network", "process")}, "cannot be learned together"),
        ({"learned": ("library", "ensemble")}, "cannot be learned together"),
        ({"learned": ("library", "library")}, "cannot be learned together"),
        ({"learned": ("library", "network"), "weights": "local"}, "held along a path"),
        ({"terms": ("x*w",)}, "names 'w', but it may depend on x, v"),
        ({"terms": ("sin(t)",)}, "depend on x, v. The time .* say `autonomous = false`"),
        ({"functions": ("sinus",)}, "`functions` names 'sinus'"),
        ({"degree": 0}, "`degree` must be a whole number"),
        ({"learned": "library", "degree": 60}, "has 3782 coefficients here, more than 1500"),
    ],
)
def test_mistakes_in_a_library_are_told_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        hs.HybridSDE(states=("x", "v"), **settings)


def test_terms_that_say_more_are_less_likely_and_few_are_expected():
    terms = tuple(parse_formula(one) for one in ("1", "x", "x*v", "sin(x)", "x^3", "x/(1 + x)"))
    assert [complexity(one) for one in terms] == [0, 1, 2, 2, 3, 4]
    chances = inclusion_prior(terms)
    assert (np.diff(chances) <= 1e-12).all()
    many = inclusion_prior(polynomials(("a", "b", "c", "d"), 3))
    np.testing.assert_allclose(many[1] / many[5], np.exp(PARSIMONY), rtol=1e-6)
    assert many.sum() == pytest.approx(2.0)


def test_choices_far_from_the_best_are_found_and_sampled():
    """Two equations, six columns each that are nearly the same: 36 pairs, and no one stands out.

    Exchanges of single terms reach eleven of them.
    """
    random = np.random.default_rng(0)
    count, groups = 12, np.repeat([0, 1], 6)
    truth = random.normal(size=(2, 40))
    columns = truth[groups] + 0.02 * random.normal(size=(count, 40))
    h = columns @ columns.T * (groups[:, None] == groups)  # each explains its own equation
    b = np.sum(columns * truth[groups], 1)
    surrogate = Surrogate(b, h, (b, h), np.ones(count), np.full(count, -2.0))
    every, none = np.ones(count, bool), np.zeros(count, bool)
    found = select(surrogate, (), every, none, groups, 4)
    logs = {(i, j): surrogate.log_evidence((i, j)) for i in range(6) for j in range(6, 12)}
    shares = np.exp(np.array(list(logs.values())) - max(logs.values()))
    first = [sum(s for (i, _), s in zip(logs, shares, strict=True) if i == k) for k in range(6)]
    expected = np.array(first) / sum(first)
    np.testing.assert_allclose(found.inclusion[:6] / found.inclusion[:6].sum(), expected, atol=0.02)
    assert found.choices[0] == max(logs, key=logs.__getitem__)
    assert len(found.choices) == 4
    np.testing.assert_allclose(found.shares.sum(), 1)
    assert select(surrogate, (), every, none, groups, 4).choices == found.choices


@pytest.mark.slow
def test_networks_learn_what_a_library_leaves(tmp_path):
    """A library without the term that matters: what it leaves is learned beside it, and said."""
    data = swings(count=16, cubic=3.0)
    order = np.argsort([np.abs(one[:, 0]).max() for one in data.values])
    test = data.take(order[6:12:2])  # within what was recorded: nothing is learned outside
    train = data.take(np.setdiff1d(order, order[6:12:2]))
    physics = hs.equations("dx = v")
    same = {"states": ("x", "v"), "physics": physics, "degree": 1, "functions": ()}
    both = hs.fit(hs.HybridSDE(learned=("library", "network"), hidden=(24, 24), **same), train)
    terms = hs.fit(hs.HybridSDE(learned="library", **same), train)
    scores = [run.score(test).loc["overall", "crps"] for run in (both, terms)]
    assert scores[0] < 0.25 * scores[1]
    found = both.equations(train)
    assert 0.2 < found.explained < 0.99
    assert found.terms[0].term == terms.equations(train).terms[0].term
    both.save(tmp_path / "run")
    again = hs.Run.load(tmp_path / "run")
    assert again.score(test).equals(both.score(test))
