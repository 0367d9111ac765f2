"""Where paths begin, learned from where recordings were found to begin."""

import jax.numpy as jnp
import numpy as np
import pytest

from hybridsde._parameters import Fixed, Free, Positive
from hybridsde.model.start import UncertainStart

HIDDEN = jnp.array([False, True])


def start(spread=(1.0, 0.5)):
    return UncertainStart(Free(jnp.array([0.0, 2.0])), Positive.of(np.array(spread), 0.01))


def test_mean_and_spread_of_a_hidden_state_are_those_of_the_recordings():
    """Starts 2 + 0.5 ε: 1, 2, 3, 4; s² = (0.25 + 5)/4."""
    normals = jnp.stack([jnp.full(4, 9.0), jnp.array([-2.0, 0.0, 2.0, 4.0])], 1)
    found = start().at_normals(normals, HIDDEN)
    np.testing.assert_allclose(found.default.value, [0.0, 2.5], rtol=1e-5)
    np.testing.assert_allclose(found.spread.value, [1.0, np.sqrt(5.25 / 4)], rtol=1e-5)


def test_one_recording_says_nothing_of_how_far_others_lie_apart():
    found = start().at_normals(jnp.array([[0.0, 3.0]]), HIDDEN)
    np.testing.assert_allclose(found.default.value, [0.0, 3.5], rtol=1e-5)
    np.testing.assert_allclose(found.spread.value, [1.0, 0.5], rtol=1e-5)


def test_recordings_that_begin_alike_leave_a_spread_above_its_floor():
    found = start((1.0, 0.011)).at_normals(jnp.zeros((50, 2)), HIDDEN)
    assert np.isfinite(np.asarray(found.spread.raw)).all()
    assert float(found.spread.value[1]) == pytest.approx(0.011, rel=1e-3)


def test_a_start_that_is_held_stays():
    held = UncertainStart(Fixed(jnp.zeros(2)), Fixed(jnp.ones(2)))
    assert held.at_normals(jnp.ones((3, 2)), HIDDEN) is held
