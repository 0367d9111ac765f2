"""Training: one compilation, repeatable, mapped over seeds, guarded."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from helpers import bayes, pac, tiny_model, tree_allclose, wiggles
from hybridsde import (
    AbstractObjective,
    FitDiverged,
    Training,
    train,
    train_many,
)
from hybridsde.data import Batch
from hybridsde.fit.config import Schedule
from hybridsde.fit.epoch import EXPLODED

SHORT = Training(epochs=4, batch_size=2, learning_rate=1e-2)


class Counting(AbstractObjective):
    """An objective that counts how often it is traced."""

    count: list = eqx.field(static=True)

    def __call__(self, model, batch, total, *, key):
        self.count.append(1)
        return pac()(model, batch, total, key=key)


class Exploding(AbstractObjective):
    """Losses that fall at every step, and then are none."""

    def __call__(self, model, batch, total, *, key):
        terms = bayes()(model, batch, total, key=key)
        log_sd = model.network.posterior.log_sd.layers[0].bias
        moved = jnp.abs(log_sd - jnp.log(0.01)).max()
        return terms._replace(loss=jnp.where(moved > 0.025, jnp.nan, -log_sd.sum()))


class Passing(AbstractObjective):
    """A loss that falls at every step, and a likelihood that is highest on the way."""

    def __call__(self, model, batch, total, *, key):
        terms = bayes()(model, batch, total, key=key)
        moved = (model.network.posterior.log_sd.layers[0].bias - jnp.log(0.01)).mean()
        return terms._replace(loss=-moved, log_likelihood=-((moved - 0.1) ** 2))


class Steady(AbstractObjective):
    """A loss with one slope, perhaps noisy, until it is at a peak, where there is no slope."""

    noise: float = 0.0
    cliff: float = np.inf
    peak: float = 0.0

    def __call__(self, model, batch, total, *, key):
        terms = bayes()(model, batch, total, key=key)
        moved = moved_of(model)
        loss = self.noise * jr.normal(key) - 100 * moved
        return terms._replace(loss=jnp.where(moved > self.cliff, self.peak, loss))


def moved_of(model):
    return (model.network.posterior.log_sd.layers[0].bias - jnp.log(0.01)).mean()


def untrained(key, data=None, **settings):
    batch = Batch.of(wiggles() if data is None else data)
    return tiny_model(**settings).init(batch, key=key), batch


@pytest.mark.slow
def test_training_lowers_the_loss(getkey):
    model, batch = untrained(getkey())
    training = Training(epochs=60, batch_size=3, learning_rate=1e-2)
    fitted = train(model, batch, pac(), training=training, key=getkey())
    loss = fitted.history["loss"]
    assert loss[-10:].mean() < 0.5 * loss[:3].mean()
    assert set(fitted.history) == {
        "loss",
        "log_likelihood",
        "path_kl",
        "weight_kl",
        "complexity",
    }
    assert not fitted.diverged
    assert fitted.epochs == 60


def test_the_same_key_gives_the_same_numbers(getkey):
    model, batch = untrained(getkey())
    key = getkey()
    one, two = (train(model, batch, bayes(), training=SHORT, key=key) for _ in range(2))
    assert tree_allclose(one.model, two.model, rtol=0, atol=0)


def test_one_compilation_per_fit_and_none_for_the_next(getkey):
    model, batch = untrained(getkey())
    objective = Counting([])
    seen = []
    look = [lambda progress: seen.append(len(objective.count))]
    train(model, batch, objective, training=SHORT, callbacks=look, key=getkey())
    assert len(seen) == SHORT.epochs
    assert seen[0] == seen[-1] > 0
    other, _ = untrained(getkey())
    train(other, batch, objective, training=SHORT, key=getkey())
    assert len(objective.count) == seen[0]


def test_epochs_rates_and_limits_are_data_to_the_compiled_program(getkey):
    model, batch = untrained(getkey())
    objective = Counting([])
    train(model, batch, objective, training=SHORT, key=getkey())
    compiled = len(objective.count)
    others = (
        {"epochs": 7},
        {"learning_rate": 2e-3, "schedule": "constant"},
        {"clip": None, "patience": 3, "bad_steps": 2},
    )
    for change in others:
        train(model, batch, objective, training=replace(SHORT, **change), key=getkey())
    assert len(objective.count) == compiled


def test_the_schedule_is_that_of_optax():
    """A half cosine to a hundredth of the rate, or a constant one."""
    steps = np.arange(0, 130, 10)
    for name, oracle in (
        ("cosine", optax.cosine_decay_schedule(0.02, 100, alpha=0.01)),
        ("constant", optax.constant_schedule(0.02)),
    ):
        schedule = Schedule.of(Training(learning_rate=0.02, schedule=name), 100)
        ours = [float(schedule.rate(step)) for step in steps]
        np.testing.assert_allclose(ours, [float(oracle(step)) for step in steps], rtol=1e-5)


@pytest.mark.slow
def test_mapped_repetitions_equal_one_by_one(getkey):
    """Different weights, data and physical parameters in one program, in chunks."""
    count = 5
    keys = jr.split(getkey(), count)
    datas = [wiggles(seed=i) for i in range(count)]
    singles = [untrained(key, data) for key, data in zip(keys, datas, strict=True)]
    for i, (model, _) in enumerate(singles):
        k = model.known.physics.parameters["k"].frozen
        singles[i] = (
            eqx.tree_at(lambda m: m.known.physics.parameters["k"].frozen, model, k + 0.1 * i),
            singles[i][1],
        )
    models, batches = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(pair[j] for pair in singles))
        for j in (0, 1)
    )
    many = train_many(models, batches, pac(), training=SHORT, chunk=2, keys=keys)
    assert many.history["loss"].shape == (SHORT.epochs, count)
    for i, (model, batch) in enumerate(singles):
        one = train(model, batch, pac(), training=SHORT, key=keys[i])
        mapped = jax.tree.map(lambda leaf, i=i: leaf[i], many.model)
        assert tree_allclose(mapped, one.model, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(many.history["loss"][:, i], one.history["loss"], rtol=1e-3)


def test_validation_keeps_the_best_epoch_and_stops_early(getkey):
    """A learning rate that overshoots: the best epoch is not the last."""
    model, batch = untrained(getkey())
    held_out = Batch.of(wiggles(seed=9))
    training = Training(
        epochs=60, batch_size=2, learning_rate=0.01, schedule="constant", patience=5
    )
    fitted = train(model, batch, Passing(), training=training, validation=held_out, key=getkey())
    loss = fitted.history["validation_loss"]
    assert len(loss) < 60
    assert len(loss) == int(np.argmin(loss)) + 1 + training.patience


def test_without_validation_the_last_epoch_is_kept(getkey):
    model, batch = untrained(getkey())
    key = getkey()
    long, short = (
        train(
            model,
            batch,
            bayes(),
            training=Training(epochs=n, batch_size=2, schedule="constant"),
            key=key,
        )
        for n in (3, 2)
    )
    np.testing.assert_allclose(long.history["loss"][:2], short.history["loss"], rtol=1e-5)
    assert not tree_allclose(long.model, short.model)


def test_best_state_is_the_state_of_the_best_epoch(getkey):
    """Replaying the fit up to its best epoch gives the restored weights."""
    model, batch = untrained(getkey())
    held_out = Batch.of(wiggles(seed=9))
    key = getkey()

    def run(epochs):
        training = Training(epochs=epochs, batch_size=2, learning_rate=0.01, schedule="constant")
        return train(model, batch, Passing(), training=training, validation=held_out, key=key)

    whole = run(12)
    best = int(np.argmin(whole.history["validation_loss"]))
    assert 0 < best < 11
    assert tree_allclose(whole.model, run(best + 1).model)


@pytest.mark.slow
def test_validation_draws_are_the_same_in_every_epoch(getkey):
    """A model that does not move has one validation loss, not a new one per epoch."""
    model, batch = untrained(getkey())
    training = Training(epochs=3, learning_rate=1e-12, schedule="constant")
    held_out = Batch.of(wiggles(seed=9))
    fitted = train(model, batch, bayes(), training=training, validation=held_out, key=getkey())
    np.testing.assert_allclose(np.ptp(fitted.history["validation_loss"]), 0, atol=1e-3)
    loss, mll = fitted.history["loss"], fitted.history["log_likelihood"]
    np.testing.assert_allclose(loss, -mll, rtol=1e-6)


@pytest.mark.slow
def test_a_diverging_fit_stops_keeps_a_good_state_and_says_what_to_try(getkey):
    model, batch = untrained(getkey())
    training = Training(epochs=50, batch_size=2, schedule="constant", bad_steps=3)
    with pytest.warns(FitDiverged, match="smaller `learning_rate`"):
        fitted = train(model, batch, Exploding(), training=training, key=getkey())
    assert fitted.diverged
    assert fitted.epochs < 50
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(fitted.model))
    assert not tree_allclose(fitted.model, model)
    kept = Exploding()(fitted.model, batch, 6, key=getkey())
    assert jnp.isfinite(kept.loss)


def test_a_first_step_into_nonsense_is_taken_back(getkey):
    """One huge step per epoch: the state that entered it is the good one."""
    model, batch = untrained(getkey())
    training = Training(epochs=80, batch_size=6, learning_rate=3e4, schedule="constant", clip=None)
    with pytest.warns(FitDiverged):
        fitted = train(model, batch, bayes(), training=training, key=getkey())
    terms = bayes()(fitted.model, batch, 6, key=getkey())
    assert jnp.isfinite(terms.loss)
    assert tree_allclose(fitted.model, model)


def test_a_fit_that_explodes_goes_on_from_its_best_state_with_shorter_steps(getkey):
    model, batch = untrained(getkey())
    training = Training(epochs=60, batch_size=6, learning_rate=3.0, schedule="constant", clip=None)
    fitted = train(model, batch, bayes(), training=training, key=getkey())
    loss = fitted.history["loss"]
    assert not fitted.diverged
    assert np.nanmax(loss) > loss[0] + EXPLODED * (1 + abs(loss[0]))
    keys = jr.split(getkey(), 16)
    before, after = (
        jnp.mean(jax.vmap(lambda key, m=m: bayes()(m, batch, 6, key=key).loss)(keys))
        for m in (model, fitted.model)
    )
    assert after < before


@pytest.mark.parametrize("epochs", [60, 32])  # in the middle, and in the last epoch
def test_a_fit_that_slips_off_a_cliff_goes_back(getkey, epochs):
    model, batch = untrained(getkey())
    training = Training(epochs=epochs, batch_size=6, learning_rate=1e-2, schedule="constant")
    over = Steady(cliff=0.3, peak=50.0)
    fitted = train(model, batch, over, training=training, key=getkey())
    assert fitted.history["loss"].max() == 50
    assert not fitted.diverged
    assert over(fitted.model, batch, 6, key=getkey()).loss < -28


def test_a_noisy_loss_is_no_slip(getkey):
    """Adam goes equally far at every step of one slope; a fit that went back would be behind."""
    model, batch = untrained(getkey())
    training = Training(epochs=40, batch_size=1, learning_rate=1e-3, schedule="constant")
    fitted = train(model, batch, Steady(noise=20.0), training=training, key=getkey())
    loss = fitted.history["loss"]
    assert loss.max() > 0.5 * (loss[0] + loss.min())  # it did look like a slip
    np.testing.assert_allclose(moved_of(fitted.model), 40 * 6 * 1e-3, rtol=1e-3)
    assert fitted.kept == 40


def test_a_last_epoch_that_ends_over_a_cliff_is_not_kept(getkey):
    """Two of six steps are over it, so that most of the epoch was good."""
    model, batch = untrained(getkey())
    training = Training(epochs=30, batch_size=1, learning_rate=1e-2, schedule="constant")
    over = Steady(cliff=1.775, peak=800.0)
    fitted = train(model, batch, over, training=training, key=getkey())
    loss = fitted.history["loss"]
    assert 100 < loss[-1] < loss[0] + EXPLODED * (1 + abs(loss[0]))
    assert fitted.kept < 30
    assert 1.5 < moved_of(fitted.model) < over.cliff


def test_a_fit_without_any_finite_loss_says_so(getkey):
    model, batch = untrained(getkey())
    lost = eqx.tree_at(lambda m: m.known.physics.parameters["k"].frozen, model, jnp.array(jnp.nan))
    with pytest.warns(FitDiverged, match="no epoch had a finite loss") as said:
        fitted = train(lost, batch, bayes(), training=Training(epochs=2), key=getkey())
    assert fitted.diverged
    assert "is kept" not in str(said[0].message)


def test_an_exploding_loss_is_noticed_while_it_is_finite(getkey):
    model, batch = untrained(getkey(), hidden=(8, 8))
    training = Training(epochs=200, batch_size=2, learning_rate=1e4, schedule="constant", clip=None)
    with pytest.warns(FitDiverged):
        fitted = train(model, batch, bayes(), training=training, key=getkey())
    assert fitted.diverged


@pytest.mark.slow
def test_one_diverging_repetition_leaves_the_others_alone(getkey):
    pair = [untrained(getkey()) for _ in range(2)]
    bad = eqx.tree_at(
        lambda m: m.known.physics.parameters["k"].frozen, pair[0][0], jnp.array(jnp.nan)
    )
    models = jax.tree.map(lambda a, b: jnp.stack([a, b]), bad, pair[1][0])
    batches = jax.tree.map(lambda a: jnp.stack([a, a]), pair[0][1])
    keys = jr.split(getkey(), 2)
    with pytest.warns(FitDiverged, match="1 of 2 fits"):
        many = train_many(
            models, batches, bayes(), training=Training(epochs=8, bad_steps=2), keys=keys
        )
    assert many.diverged.tolist() == [True, False]
    alone = train(
        pair[1][0],
        pair[0][1],
        bayes(),
        training=Training(epochs=8, bad_steps=2),
        key=keys[1],
    )
    mapped = jax.tree.map(lambda leaf: leaf[1], many.model)
    assert tree_allclose(mapped.network, alone.model.network, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_windows_grow_and_cover_the_series(getkey):
    training = Training(batch_size=3, windows=((2, 4), (3, 6)), learning_rate=1e-2)
    assert training.epochs == 5
    assert [training.length_at(epoch) for epoch in range(6)] == [4, 4, 6, 6, 6, None]
    assert training.batches(6, 12, 4) == 6  # 6 series of 3 windows, 3 at a time
    assert training.steps(6, 12) == 2 * 6 + 3 * 4
    data = Batch.of(wiggles())
    model = tiny_model().init(data, key=getkey())
    fitted = train(model, data, bayes(), training=training, key=getkey())
    losses = fitted.history["log_likelihood"]
    assert len(losses) == 5
    assert np.isfinite(losses).all()
    assert fitted.epochs == 5


def test_batches_larger_than_the_data_are_the_data(getkey):
    model, batch = untrained(getkey())
    assert Training(batch_size=100).batches(6) == 1
    assert Training(batch_size=4).batches(6) == 2
    train(
        model,
        batch,
        bayes(),
        training=Training(epochs=1, batch_size=100),
        key=getkey(),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "`epochs`"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"learning_rate": 0.0}, "`learning_rate`"),
        ({"clip": -1.0}, "`clip`"),
        ({"patience": 0}, "`patience`"),
        ({"schedule": "linear"}, "`schedule`"),
        ({"windows": ()}, "`windows` is empty"),
        ({"windows": ((0, 5),)}, "`windows`"),
        ({"longest": 1}, "`longest`"),
    ],
)
def test_bad_training(settings, message):
    with pytest.raises(ValueError, match=message):
        Training(**settings)
