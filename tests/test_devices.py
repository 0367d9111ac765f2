"""Repetitions spread over devices: the same numbers as on one."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from helpers import pac, tiny_model, tree_allclose, wiggles
from hybridsde import Training, _devices, train_many, trainable
from hybridsde._devices import over_seeds, use_all_cores
from hybridsde.data import Batch


def test_the_tests_run_on_two_devices():
    assert jax.local_device_count() == 2


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_every_repetition_is_mapped_and_none_is_added(count, one_by_one):
    values = jnp.arange(2.0 * count).reshape(count, 2)
    tree = {"values": values, "name": "a static leaf"}

    def one(tree):
        assert tree["name"] == "a static leaf"
        return tree["values"].sum(), tree["values"] ** 2

    sums, squares = jax.jit(lambda v: over_seeds(one, tree | {"values": v}, one_by_one=one_by_one))(
        values
    )
    np.testing.assert_allclose(sums, values.sum(1))
    np.testing.assert_allclose(squares, values**2)


def test_work_is_on_both_devices():
    spread = jax.jit(lambda v: over_seeds(jnp.sin, v))(jnp.arange(4.0))
    assert len(spread.sharding.device_set) == 2


@pytest.mark.slow
@pytest.mark.long
def test_three_fits_on_two_devices_equal_those_on_one(getkey, monkeypatch):
    """Also where every fit has paths enough to be spread itself: inside a share it is not."""
    monkeypatch.setattr(_devices, "PATHS_PER_DEVICE", 1)
    seen = []
    batch = Batch.of(wiggles())
    keys = jr.split(getkey(), 3)
    models = jax.vmap(lambda key: tiny_model().init(batch, key=key))(keys)
    data = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), batch)

    def fit():
        training = Training(epochs=3)
        return train_many(
            models,
            data,
            pac(),
            training=training,
            callbacks=[lambda progress: seen.append(progress.terms["loss"].shape)],
            keys=keys,
        )

    two = fit()
    assert set(seen) == {(3,)}
    jax.clear_caches()
    monkeypatch.setattr(_devices.jax, "local_device_count", lambda: 1)
    one = fit()
    assert tree_allclose(one.model, two.model)
    np.testing.assert_allclose(one.history["loss"], two.history["loss"], rtol=1e-5)


@pytest.mark.parametrize("weights", ["path", "local"])
@pytest.mark.parametrize("samples", [2, 3])
@pytest.mark.slow
def test_gradients_on_two_devices_equal_those_on_one(weights, samples, getkey, monkeypatch):
    """Two samples are split over devices; of three samples the series are."""
    batch = Batch.of(wiggles())
    assert batch.count % 2 == 0
    model = tiny_model(weights=weights).init(batch, key=getkey())
    parameters, frozen = eqx.partition(model, trainable(model))
    key = getkey()

    def gradient():
        def loss(parameters):
            whole = eqx.combine(parameters, frozen)
            objective = pac(samples=samples)
            return objective(whole, batch, batch.count, key=key).loss

        return jax.jit(jax.value_and_grad(loss))(parameters)

    one = gradient()
    monkeypatch.setattr(_devices, "PATHS_PER_DEVICE", 1)
    two = gradient()
    assert len(jax.tree.leaves(two)[0].sharding.device_set) == 2
    assert len(jax.tree.leaves(one)[0].sharding.device_set) == 1
    assert tree_allclose(one, two, rtol=1e-4)


def test_asking_for_cores_too_late_changes_nothing():
    before = jax.local_device_count()
    jnp.zeros(1).block_until_ready()
    use_all_cores()
    assert jax.local_device_count() == before


FOUR = """
import jax, jax.numpy as jnp, jax.random as jr, numpy as np
jax.config.update("jax_num_cpu_devices", 4)
from hybridsde import _devices
from hybridsde._devices import over_seeds, use_all_cores
use_all_cores()
assert jax.local_device_count() == 4
double = jax.jit(lambda values: over_seeds(lambda one: 2 * one, values))
two = double(jnp.arange(2.0))
eight = double(jnp.concatenate([two, two, two, two]))
np.testing.assert_allclose(eight, np.tile([0.0, 4.0], 4))
np.testing.assert_allclose(double(eight[:3]), [0, 8, 0])
np.testing.assert_allclose(double(eight[:1]), [0])
"""


@pytest.mark.slow
def test_fewer_repetitions_than_devices_can_be_used_further():
    done = subprocess.run([sys.executable, "-c", FOUR], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
