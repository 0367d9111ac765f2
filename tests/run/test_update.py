"""Runs that learn from further recordings."""

import numpy as np
import pytest

import hybridsde as hs

ROWS, STEP = 60, 0.1


def spirals(count, seed, damping=0.5):
    """dx = v, dv = −4x − c v, with noise."""
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(count, 2))
    out = [h]
    for _ in range(ROWS - 1):
        for _ in range(10):
            drift = np.stack([h[:, 1], -4 * h[:, 0] - damping * h[:, 1]], 1)
            h = h + 0.01 * drift + np.array([0.02, 0.1]) * 0.1 * rng.normal(size=h.shape)
        out.append(h)
    values = np.stack(out, 1) + 0.02 * rng.normal(size=(count, ROWS, 2))
    times = [STEP * np.arange(ROWS)] * count
    names = [f"{seed}-{n}" for n in range(count)]
    return hs.Trajectories.from_arrays(times, list(values), states=("x", "v"), ids=names)


def declared(**settings):
    return hs.HybridSDE(
        states=("x", "v"),
        physics=hs.equations("dx = v", "dv = -k*x", k=hs.Free(3.0)),
        **settings,
    )


@pytest.fixture(scope="module")
def library():
    return hs.fit(declared(learned="library", degree=1, functions=()), spirals(2, 0))


@pytest.mark.slow
def test_a_library_comes_nearer_to_the_fit_of_everything(library):
    more = spirals(6, 1)
    updated = library.update(more)
    whole = hs.fit(library.spec, spirals(2, 0).join(more))
    assert updated.metadata.parameters == library.metadata.parameters
    assert len(updated.metadata.used.ids) == 8
    test = spirals(6, 2)
    before, after, best = (
        run.score(test).loc["overall", "crps"] for run in (library, updated, whole)
    )
    assert after < before
    assert after < 1.1 * best


@pytest.mark.slow
def test_nothing_counts_twice(library):
    more = spirals(1, 1)
    with pytest.raises(hs.InputError, match="count twice"):
        library.update(spirals(2, 0))
    updated = library.update(more)
    assert "Updated with 1 further recording." in updated.metadata.choice
    with pytest.raises(hs.InputError, match="count twice"):
        updated.update(more)
    with pytest.raises(hs.InputError, match="cannot be certified"):
        updated.certify(more, loss="error", bound="holdout")


@pytest.mark.slow
def test_networks_learn_from_recordings_of_a_changed_system():
    """After a change of the damping the update forecasts the new system better than before."""
    run = hs.fit(declared(learned="network", hidden=(16,), members=2), spirals(4, 0))
    updated = run.update(spirals(4, 1, damping=1.5))
    test = spirals(6, 2, damping=1.5)
    before, after = (one.score(test).loc["overall", "crps"] for one in (run, updated))
    assert after < 0.9 * before
    again = run.update(spirals(4, 1, damping=1.5))
    np.testing.assert_array_equal(updated.history["loss"], again.history["loss"])


def test_what_has_no_posterior_is_refused():
    run = hs.fit(hs.baselines.Persistence(observed=("x", "v")), spirals(2, 0))
    with pytest.raises(hs.InputError, match="Fit it again"):
        run.update(spirals(2, 1))
