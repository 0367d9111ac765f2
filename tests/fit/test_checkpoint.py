"""A fit that was stopped goes on, and ends with the same numbers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import pac, plain_fit, tiny_model, tree_allclose, wiggles
from hybridsde.fit.checkpoint import Checkpoint, arrays_of, fingerprint

TRAINING = hs.Training(epochs=8, batch_size=3, learning_rate=1e-2)


class Killed(Exception):
    pass


def kill_after(epochs):
    def callback(progress):
        if progress.epoch > epochs:
            raise Killed

    return callback


def fit(path=None, callbacks=(), **changes):
    given = {"training": TRAINING, "validation": wiggles(seed=9), "seed": 1, **changes}
    return plain_fit(tiny_model(), wiggles(), checkpoint=path, callbacks=callbacks, **given)


@pytest.fixture(scope="module")
def uninterrupted():
    return fit()


def begun(path, epochs, monkeypatch):
    """A checkpoint after some epochs of a fit that died in the next one."""
    keep = Checkpoint.keep
    monkeypatch.setattr(
        Checkpoint, "keep", lambda self, state, rows, now=False: keep(self, state, rows, now=True)
    )
    with pytest.raises(Killed):
        fit(path, [kill_after(epochs)])
    assert path.exists()


@pytest.mark.parametrize("epochs", [1, 5])
def test_resumed_equals_uninterrupted(epochs, uninterrupted, tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    begun(path, epochs, monkeypatch)
    seen = []
    resumed = fit(path, [lambda progress: seen.append(progress.epoch)])
    assert seen == list(range(epochs + 1, TRAINING.epochs + 1))
    assert tree_allclose(resumed.forecaster.model, uninterrupted.forecaster.model, rtol=0, atol=0)
    np.testing.assert_array_equal(resumed.history, uninterrupted.history)
    assert list(resumed.history.columns) == list(uninterrupted.history.columns)


def test_ctrl_c_keeps_the_last_epoch(tmp_path, uninterrupted):
    def interrupt(progress):
        if progress.epoch == 3:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fit(path, [interrupt])
    arrays, _ = arrays_of(path.read_bytes(), path)
    assert len(arrays["history/loss"]) == 3
    assert tree_allclose(fit(path).forecaster.model, uninterrupted.forecaster.model, rtol=0, atol=0)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    begun(path, 1, monkeypatch)
    others = (
        {"seed": 2},
        {"objective": pac(strength=0.5)},
        {"objective": pac(strength=jnp.array(0.5))},
        {"objective": pac(delta=0.1)},
        {"training": replace(TRAINING, epochs=9)},
    )
    for change in others:
        with pytest.raises(hs.InputError, match="other settings or data"):
            fit(path, **change)


def test_a_fingerprint_sees_arrays_and_settings():
    """Arrays print as their shapes; their numbers must count all the same."""
    one, two = (fingerprint(pac(strength=jnp.array(s))) for s in (0.5, 0.7))
    assert one != two
    assert fingerprint(pac(strength=jnp.array(0.5))) == one
    assert fingerprint(pac(delta=0.1)) != fingerprint(pac(delta=0.2))
    assert fingerprint({"a": 1}) != fingerprint({"a": 2}) != fingerprint({"b": 2})


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"x" + c[1:]])
def test_a_damaged_checkpoint_is_named(damage, tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    begun(path, 1, monkeypatch)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(hs.InputError, match="is damaged or cut short"):
        fit(path)


def test_a_checkpoint_is_a_whole_file_or_none(tmp_path, monkeypatch):
    """A full disk while it is written leaves the one before it."""
    path = tmp_path / "checkpoint"
    begun(path, 1, monkeypatch)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hybridsde._files.os.replace", full)
    with pytest.raises(hs.InputError, match="No space left on device"):
        fit(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


def test_keys_survive(tmp_path):
    from hybridsde.fit.checkpoint import fill, named_arrays

    tree = {"key": jax.random.key(3), "number": jax.numpy.ones(2)}
    back = fill(jax.eval_shape(lambda: tree), named_arrays(tree), tmp_path)
    assert (jax.random.key_data(back["key"]) == jax.random.key_data(tree["key"])).all()
