"""One stream of random numbers for each purpose, and no key for two of them."""

import jax.random as jr
import numpy as np

from helpers import tiny_model, untrained_run, wiggles
from hybridsde import run as run_module
from hybridsde._streams import Beside, Stream, beside, stream


def test_purposes_have_numbers_of_their_own():
    assert len({int(one) for one in Stream}) == len(Stream.__members__)
    keys = {tuple(jr.key_data(stream(seed, one)).tolist()) for seed in (0, 1) for one in Stream}
    assert len(keys) == 2 * len(Stream)


def test_splitting_the_key_of_a_seed_gives_its_first_streams():
    """Why no other purpose may have the numbers 0 and 1: `fit` splits the key of its seed."""
    init, training = jr.split(jr.key(3))
    assert (jr.key_data(init) == jr.key_data(stream(3, Stream.INIT))).all()
    assert (jr.key_data(training) == jr.key_data(stream(3, Stream.TRAINING))).all()


def test_what_comes_beside_a_fit_is_none_of_its_epochs():
    """A fit folds the number of each epoch into its key, and splits it nowhere."""
    key = jr.key(0)
    epochs = {tuple(jr.key_data(jr.fold_in(key, n)).tolist()) for n in range(1000)}
    others = {tuple(jr.key_data(beside(key, one)).tolist()) for one in Beside}
    assert len(others) == len(Beside.__members__)
    assert not epochs & others


def test_forecasts_are_drawn_from_their_own_stream(monkeypatch):
    """Neither the key of the fit nor, for a neighbouring seed, its root."""
    asked = []
    original = run_module.run.stream
    monkeypatch.setattr(
        run_module.run, "stream", lambda *given: asked.append(given) or original(*given)
    )
    run, data = untrained_run(seed=4), wiggles()
    one = run.score(data, draws=8)
    two = run.score(data, draws=8, seed=5)
    assert asked == [(4, Stream.FORECAST), (5, Stream.FORECAST)]
    assert not np.allclose(one, two)
    assert one.equals(untrained_run(tiny_model(), seed=4).score(data, draws=8))
