"""What simulations are judged on: parts left out, errors there, joint forecasts, starts."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.hybrid.climbing import Climber
from hybridsde.hybrid.comparing import Simulation
from hybridsde.hybrid.scoring import Local, LogLikelihood
from hybridsde.hybrid.simulations import PARTS, _joint_score, _parts, _size, _with_own_start
from hybridsde.simulate import Heun


def local(z, log=0.0, value=0.0):
    z = np.asarray(z, float).reshape(1, -1, 1)
    return Local(np.zeros(1), value, np.zeros(1), np.zeros((1, 1)), z, np.full(z.shape, log))


@pytest.mark.parametrize("told", [1, 2, 3, 4, 5, 9])
def test_every_part_has_measured_rows(told):
    """Recordings and rows that were set apart are there, but nothing is measured in them."""
    measured = np.zeros((told + 2, 60), bool)
    measured[:told, :40:2] = True
    parts = _parts(measured)
    assert parts.shape == (PARTS, *measured.shape)
    counts = (parts & measured).sum((1, 2))
    assert counts.min() > 0
    assert counts.max() <= 2 * counts.min() + 20
    assert ((parts & measured).sum(0) == measured).all()  # every row in one part


def test_the_size_of_errors_counts_what_was_measured():
    z = np.array([[[3.0, np.nan, 1.0], [np.nan, np.nan, -1.0]]])
    np.testing.assert_allclose(_size(z), [3.0, np.nan, 1.0])


def test_a_network_that_is_no_number_foretells_nothing():
    """Ln ½(e^−½ + 0) for every row that was compared; rows without a value add nothing."""
    good, lost = local([1.0, np.nan, 1.0]), local([np.nan] * 3, value=np.nan)
    assert _joint_score([good]) == pytest.approx(-1.0)
    assert _joint_score([good, lost]) == pytest.approx(-1.0 + 2 * np.log(0.5))
    assert _joint_score([lost, lost]) == -np.inf


def test_starts_follow_from_the_recordings_that_were_fitted():
    """m ← the mean of m + s ε over them: normals of others are left where they are."""
    data = hs.Trajectories.from_arrays([np.arange(6.0)] * 3, [np.ones((6, 1))] * 3, states=("x",))
    spec = hs.HybridSDE(states=("x", "y"), observed=("x",), learned="ensemble", hidden=(3,))
    batch = spec.batch(data)
    model = spec.init(batch, key=jr.key(0))
    likelihood = LogLikelihood(model, model.network.mean(), Heun(), batch, Simulation(jnp.ones(1)))
    at = likelihood.start
    at[-likelihood.normals :] = np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 50.0]]).ravel()
    one = Climber(Local(at, 0.0, at, np.eye(len(at)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1))))
    found = _with_own_start(likelihood, one, np.array([True, True, False])).about.at
    begun, before = (likelihood.model(x).start for x in (found, at))
    expected = before.default.value[1] + 2.0 * before.spread.value[1]
    np.testing.assert_allclose(begun.default.value[1], expected, rtol=1e-5)
    np.testing.assert_allclose(begun.default.value[0], before.default.value[0])
    np.testing.assert_array_equal(found[-likelihood.normals :], at[-likelihood.normals :])
