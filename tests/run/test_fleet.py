"""Many members as one program."""

import numpy as np
import pytest

import hybridsde as hs
from helpers import tree_allclose
from hybridsde._parameters import Bounded
from hybridsde.data import Batch, Clock
from hybridsde.datasets import machines
from hybridsde.run import fit_each
from hybridsde.run.padding import alike, common, round_up, stacked


def test_sizes_are_few_and_never_smaller():
    sizes = np.array([round_up(size) for size in range(1, 2000)])
    assert (sizes >= np.arange(1, 2000)).all()
    assert (sizes <= 1.13 * np.arange(1, 2000) + 1).all()
    assert len(set(sizes)) < 80
    assert common([57, 57]) == 57
    assert common([57, 41]) == round_up(57)


def test_padding_is_what_a_longer_table_would_have():
    """A short series padded to a long one is as `Trajectories` would have padded it."""
    both = machines.load(seed=0, count=2, rows=21)
    short = both.cut([(0, 0, 13)])
    clock = Clock(step=0.1, interpolation="linear")
    beside = Batch.of(short.join(both.take([1])), clock)
    padded = alike([Batch.of(short, clock), Batch.of(both.take([1]), clock)])
    assert padded[0].fine is not None
    assert beside.fine is not None
    rows, steps = padded[0].times.shape[1], padded[0].fine.dt.shape[1]
    assert (rows, steps) == (round_up(21), round_up(beside.fine.dt.shape[1]))
    for name in ("times", "values", "observed", "inputs", "recorded"):
        longer = getattr(padded[0], name)[:, :21]
        assert np.array_equal(longer, getattr(beside, name)[:1]), name
    assert not padded[0].steps[:, 12:].any()
    here = beside.fine.dt.shape[1]
    for name in ("t", "dt", "u", "row"):
        longer = getattr(padded[0].fine, name)[:, :here]
        assert np.array_equal(longer, getattr(beside.fine, name)[:1]), name
    assert stacked(padded).times.shape == (2, 1, rows)


def rate_of(run):
    """The learned rate and its error."""
    one = (run.metadata.parameters or {})["k"]
    return float(one["value"]), float(one["error"])


def machine_model(data):
    physics = hs.equations(machines.EQUATION, k=Bounded.of(0.6, 0.05, 5.0))
    model = hs.HybridSDE(states=["x"], inputs=["u"], physics=physics, exact=("x",), hidden=None)
    return model.settled(data)


@pytest.mark.slow
def test_each_member_is_the_fit_of_its_own_data():
    data = machines.load(seed=3, count=5)
    model, training = machine_model(data), hs.Training(epochs=20)
    each = [*data.take([0, 1, 2]), data.cut([(3, 0, 30)]), data.take([3, 4])]
    runs = fit_each(model, each, seeds=[0, 1, 2, 3, 4], training=training)
    for number in (0, 4):  # side by side with others, and alone in its shape
        alone = hs.fit(model, each[number], training=training, seed=number)
        assert tree_allclose(runs[number].forecaster, alone.forecaster)
        one, other = rate_of(runs[number]), rate_of(alone)
        np.testing.assert_allclose(one, other, rtol=1e-3)
        assert runs[number].history.shape == alone.history.shape
        assert runs[number].seed == alone.seed
        assert runs[number].metadata.used == alone.metadata.used
    assert rate_of(runs[3])[0] != rate_of(runs[0])[0]


@pytest.mark.long
def test_true_rates_are_found_within_their_errors():
    """z = (k̂ − k)/e over 40 machines has a mean square near one: χ²/n within five errors."""
    count = 40
    data = machines.load(seed=5, count=count)
    runs = fit_each(
        machine_model(data.take(range(8))),
        list(data),
        seeds=[0] * count,
        training=hs.Training(epochs=100),
    )
    found = np.array([rate_of(run) for run in runs])
    z = (found[:, 0] - machines.rates(count, seed=5)) / found[:, 1]
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / count)


@pytest.mark.long
def test_validation_calibrates_every_member():
    data = machines.load(seed=1, count=6, rows=31)
    model, training = machine_model(data), hs.Training(epochs=10)
    each, later = [data.take([0]), data.take([1])], [data.take([2, 3]), data.take([4, 5])]
    runs = fit_each(model, each, seeds=[0, 1], training=training, validations=later, horizon=10)
    for number in (0, 1):
        alone = hs.fit(
            model,
            each[number],
            training=training,
            validation=later[number],
            horizon=10,
            seed=number,
        )
        assert runs[number].metadata.calibration == pytest.approx(alone.metadata.calibration)
        assert runs[number].metadata.kept_epoch == alone.metadata.kept_epoch
        assert runs[number].metadata.used == alone.metadata.used


def test_what_is_learned_must_be_decided():
    data = machines.load(seed=0, count=2)
    model = hs.HybridSDE(states=["x"], inputs=["u"])
    with pytest.raises(hs.InputError, match="Decide"):
        fit_each(model, list(data), seeds=[0, 1])
