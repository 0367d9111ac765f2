"""What is certified, and every refusal."""

import dataclasses
import json
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import plain_certified, plain_fit, tiny_model, untrained_run, wiggles
from hybridsde.certify.loss_constants import band_radius
from hybridsde.certify.request import CertificateRequest
from hybridsde.certify.sampling import Hypothesis

TRAINING = hs.Training(epochs=20, batch_size=6, learning_rate=1e-2)


@pytest.fixture(scope="module")
def data():
    return wiggles(series=24)


@pytest.fixture(scope="module")
def fresh():
    """Recordings that no fit has seen, under names that one of them has."""
    return wiggles(series=12, seed=9)


@pytest.fixture(scope="module")
def plain(data):
    return plain_fit(tiny_model(), data, training=TRAINING)


@pytest.fixture(scope="module")
def run(data):
    return plain_certified(
        tiny_model(noise="learn"),
        data,
        training=TRAINING,
        posterior=hs.Training(epochs=5, batch_size=12),
    )


@pytest.mark.long
@pytest.mark.slow
def test_half_of_the_trajectories_can_be_certified_on(run, data):
    mine = run.certifiable(data)
    assert len(mine) == 12
    certificate = run.certify(mine)
    assert certificate.kind.startswith("PAC-Bayes, un-expected Bernstein")
    assert certificate.n == 12
    assert certificate.terms["KL of weights"] > 0
    interval = run.certify(mine, loss="interval")
    assert not interval.vacuous
    assert sum(interval.parts.values()) == pytest.approx(interval.bound)
    assert "With probability 0.95" in interval.statement


@pytest.mark.parametrize("loss", ["error", "interval", "band", "crps", "likelihood"])
@pytest.mark.parametrize("bound", ["kl", "ub", "catoni"])
@pytest.mark.slow
def test_bounds_lie_above_the_empirical_risk(loss, bound, run, data):
    found = run.certify(run.certifiable(data), loss=loss, bound=bound, draws=600)
    assert found.terms["empirical risk"] < found.bound <= 1
    assert all(part >= -1e-12 for part in found.parts.values())


def test_hold_out_on_unseen_trajectories(plain, fresh):
    found = plain.certify(fresh)
    assert found.kind == "hold-out, betting"
    looser = plain.certify(fresh, bound="holdout-kl")
    assert found.bound < looser.bound
    binary = plain.certify(fresh, loss=hs.BandMiss(3.0))
    assert binary.kind == "hold-out, Clopper–Pearson"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_certificate(run, data):
    mine = run.certifiable(data)
    seeds = (None, None, 5)
    one, two, other = (run.certify(mine, draws=300, seed=s).terms["empirical risk"] for s in seeds)
    assert one == two
    assert one != other


def test_choosing_among_models_costs_their_logarithm(plain, fresh):
    alone, chosen = (plain.certify(fresh, models_compared=m).bound for m in (1, 50))
    assert alone < chosen
    told = plain.certify(fresh)
    assert any("models_compared=M" in line for line in told.assumptions)
    assert not any(
        "models_compared=M" in line for line in plain.certify(fresh, models_compared=3).assumptions
    )


@pytest.mark.slow
def test_an_ensemble_pays_its_kl_once_per_network(run, data):
    mine = run.certifiable(data)
    one, many = (run.certify(mine, bound="kl", ensemble=m, draws=300) for m in (1, 19))
    assert many.terms["KL of weights"] == pytest.approx(19 * one.terms["KL of weights"])


def test_a_posterior_that_has_not_seen_the_data_is_its_own_prior(plain, fresh):
    assert plain.certify(fresh, bound="kl", draws=300).terms["KL of weights"] == 0


def test_training_data_are_refused(plain, data, fresh):
    with pytest.raises(hs.InputError, match=r"24 of 24 .*fitted to it\).*fit_certified"):
        plain.certify(data)
    renamed = dataclasses.replace(data, ids=tuple(f"new {i}" for i in data.ids))
    with pytest.raises(hs.InputError, match="'new 0' was seen before"):
        plain.certify(renamed)
    with pytest.raises(hs.InputError, match="was seen before"):
        plain.certify(data.windows(6).take([1]))
    mixed = fresh.join(dataclasses.replace(data.take([0]), ids=("old",), origins=("old",)))
    with pytest.raises(hs.InputError, match="1 of 13 trajectories"):
        plain.certify(mixed)
    with pytest.raises(hs.InputError, match="used all of these"):
        plain.certifiable(data)


def test_what_the_prior_has_seen_is_refused(run, data):
    with pytest.raises(hs.InputError, match=r"12 of 24 .*prior, the scales.*certifiable"):
        run.certify(data)


def test_what_trained_the_posterior_is_no_hold_out(run, data):
    with pytest.raises(hs.InputError, match="the weights were fitted to it"):
        run.certify(run.certifiable(data), bound="holdout")
    with pytest.raises(hs.InputError, match="the weights were fitted to it"):
        run.conformal(run.certifiable(data))
    with pytest.raises(hs.InputError, match="used all of these"):
        run.certifiable(data, bound="conformal")


@pytest.mark.long
@pytest.mark.slow
def test_what_chose_the_epoch_or_the_spread_is_refused(data, fresh):
    """And parts that were used add up."""
    run = plain_fit(
        tiny_model(noise="learn"),
        data,
        training=hs.Training(epochs=1, batch_size=6),
        validation=fresh,
    )
    assert run.metadata.calibration is not None
    with pytest.raises(hs.InputError, match="it chose the epoch"):
        run.certify(fresh)
    others = [wiggles(series=3, seed=seed) for seed in (11, 12)]
    for other in others:
        run = hs.calibrate(run, other)
    for other in others:
        with pytest.raises(hs.InputError, match="it set the spread"):
            run.certify(other)


@pytest.mark.slow
def test_gaps_do_not_hide_what_was_seen(data):
    """Every second row is empty, as where inputs are logged more often than states."""
    sparse = dataclasses.replace(data, observed=data.observed.copy())
    sparse.observed[:, 1::2] = False
    run = plain_fit(tiny_model(), sparse, training=hs.Training(epochs=1, batch_size=6))
    with pytest.raises(hs.InputError, match="24 of 24"):
        run.certify(sparse)


def test_spreads_stay_as_they_are_once_certified(run, fresh):
    with pytest.raises(hs.InputError, match="must stay as they are"):
        hs.calibrate(run, fresh)


def test_constants_come_from_the_prior(run, data):
    """The radius must not move with weights that the certified trajectories trained."""
    first = data.take(np.flatnonzero([i not in run.certifiable(data).ids for i in data.ids]))
    far = jax.tree.map(lambda leaf: leaf + 0.5, run.forecaster.model.network.posterior.mean)
    moved = dataclasses.replace(
        run,
        forecaster=eqx.tree_at(lambda f: f.model.network.posterior.mean, run.forecaster, far),
    )
    one, two = (band_radius(r.subject, first, Hypothesis(), key=jr.key(0)) for r in (run, moved))
    assert one == two


def test_copies_count_once(plain, fresh):
    again = dataclasses.replace(fresh, ids=tuple(f"copy {i}" for i in fresh.ids))
    again = dataclasses.replace(again, origins=again.ids)
    with pytest.raises(hs.InputError, match="'copy 0' and '0' share rows"):
        plain.certify(fresh.join(again))


@pytest.mark.slow
def test_windows_of_a_recording_that_was_used(fresh):
    long = wiggles(series=1, steps=40, seed=3)
    early, middle, late = long.windows(13)
    run = plain_fit(tiny_model(), middle, training=hs.Training(epochs=1))
    with pytest.raises(hs.InputError, match="other windows were used"):
        run.certify(late)
    with pytest.raises(hs.InputError, match="must come later"):
        run.certify(early, dependence="sequential")
    assert run.certify(late, dependence="sequential", draws=50).n == 1


def test_losses_of_ones_own_are_checked(plain, fresh):
    class Constant(hs.AbstractLoss):
        value: float
        name: ClassVar[str] = "constant"
        binary: ClassVar[bool] = True

        def __call__(self, means, draws, values, observed):
            return jnp.full((), self.value)

        def describe(self):
            return "constant"

    with pytest.raises(hs.InputError, match=r"gave 0\.05"):
        plain.certify(fresh, loss=Constant(0.05))
    assert plain.certify(fresh, loss=Constant(0.0)).kind == "hold-out, Clopper–Pearson"
    with pytest.raises(hs.InputError, match="does not fit the observations"):
        plain.certify(fresh, loss=hs.TruncatedError([1.0, 2.0, 3.0]))


def test_nothing_is_fitted_before_the_question_is_checked(data):
    for wrong in ({"loss": "interval"}, {"loss": "eror"}, {"prior_sd": -1.0}):
        with pytest.raises(ValueError, match=r"interval|eror|prior_sd"):
            plain_certified(tiny_model(), data, **wrong)
    with pytest.raises(hs.InputError, match="held"):
        plain_certified(dataclasses.replace(tiny_model(), weights="local"), data)


def test_numbers_in_sentences_are_rounded_up():
    question = CertificateRequest()
    assert "below 0.281," in question.statement(hs.IntervalMiss(), 10, 0.28049, "x")
    assert "below 0.280," in question.statement(hs.IntervalMiss(), 10, 0.28, "x")
    assert "divided by 4" in hs.TruncatedError(1.0, 2.0).describe()


def test_the_reference_is_refused(plain, fresh):
    with pytest.raises(hs.InputError, match="also the reference"):
        plain.certify(fresh, reference=fresh)


def test_windows_of_one_recording_are_not_independent(plain, fresh):
    other = dataclasses.replace(fresh.take([0]), ids=("new",), origins=("new",))
    cut = other.windows(4)
    with pytest.raises(hs.InputError, match=r"windows of one recording.*sequential"):
        plain.certify(cut)
    with pytest.raises(hs.InputError, match="windows of one recording"):
        plain.conformal(cut)
    with pytest.raises(hs.InputError, match="'kl' needs independent"):
        plain.certify(cut, dependence="sequential", bound="kl")
    with pytest.raises(hs.InputError, match="'holdout' needs independent"):
        plain.certify(cut, dependence="sequential", bound="holdout")
    with pytest.raises(hs.InputError, match="overlap"):
        plain.certify(other.windows(4, 2), dependence="sequential")
    found = plain.certify(cut, dependence="sequential", draws=300)
    assert "ub" in found.kind
    assert found.vacuous or "Nothing is said about other starts" in found.statement


@pytest.mark.long
@pytest.mark.slow
def test_windows_fitted_in_order(fresh):
    long = wiggles(series=1, steps=60, seed=3)
    windows = long.windows(5)
    run = plain_certified(
        tiny_model(),
        windows,
        dependence="sequential",
        training=hs.Training(epochs=2, batch_size=6),
        posterior=hs.Training(epochs=1, batch_size=6),
    )
    later = run.certifiable(windows)
    assert later.times.min() >= windows.times[len(windows) // 2 - 1, -1]
    assert run.certify(later, dependence="sequential", draws=200).n == len(later)
    with pytest.raises(hs.InputError, match="windows of one recording"):
        plain_certified(tiny_model(), windows)


def test_weights_that_are_redrawn_are_refused(data, fresh):
    model = dataclasses.replace(tiny_model(), weights="local")
    run = plain_fit(model, data, training=hs.Training(epochs=1, batch_size=6))
    with pytest.raises(hs.InputError, match="redraws its weights"):
        run.certify(fresh)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bound": "cl"}, "must be one of auto"),
        ({"loss": "eror"}, "Did you mean 'error'"),
        ({"loss": "band"}, "needs a radius"),
        ({"delta": 0.0}, "`delta` must lie"),
        ({"models_compared": 0}, "`models_compared`"),
        ({"dependence": "maybe"}, "iid or sequential"),
        ({"ensemble": 3}, "`ensemble` is for"),
        ({"loss": "interval", "bound": "kl", "ensemble": 4}, "rounder level"),
    ],
)
def test_wrong_questions(arguments, message, plain, fresh):
    with pytest.raises(ValueError, match=message):
        plain.certify(fresh, **arguments)


def test_the_papers_bound_is_a_diagnostic(plain, data):
    found = plain.certify(data, bound="paper", draws=200)
    assert found.vacuous
    assert found.bound == 1
    assert "not a promise" in found.statement
    assert found.terms["T1"] <= found.terms["T2"] <= found.terms["T3"]
    assert found.terms["KL of paths"] > 0


@pytest.mark.slow
def test_physics_alone_is_certified_without_kl(data, fresh):
    model = dataclasses.replace(tiny_model(), hidden=None)
    run = plain_certified(model, data, training=hs.Training(epochs=1, batch_size=6))
    found = run.certify(run.certifiable(data), bound="kl", draws=300)
    assert found.terms["KL of weights"] == 0
    assert run.certify(run.certifiable(data)).kind.startswith("hold-out")  # nothing was trained


@pytest.mark.slow
def test_conformal_bands(plain, fresh, tmp_path):
    band = plain.conformal(fresh, alpha=0.2)
    assert (band.rank, band.n) == (11, 12)
    start = fresh.start()
    forecast = plain.forecast(start, fresh.times[:, 1:], draws=200, paths_per_weight=1)
    ends = band.around(forecast)
    inside = (ends["lower"].values <= fresh.values[:, 1:]) & (
        fresh.values[:, 1:] <= ends["upper"].values
    )
    assert inside.all((1, 2)).sum() >= 9  # other draws than those that set the radius
    with pytest.raises(ValueError, match="draws=200"):
        band.around(plain.forecast(start, fresh.times[:, 1:], draws=8))
    with pytest.raises(hs.InputError, match="at least 14 are needed"):
        plain.conformal(fresh, alpha=0.2, delta=0.05)
    with pytest.raises(hs.InputError, match="at least 999 are needed"):
        plain.conformal(fresh, alpha=0.001)
    longer = plain.forecast(start, elapsed=3 * np.arange(1, 4), draws=200, paths_per_weight=1)
    with pytest.raises(ValueError, match="after the start, but the forecast"):
        band.around(longer)
    band.save(tmp_path / "band.json")
    assert hs.ConformalBand.load(tmp_path / "band.json") == band
    assert "standard deviations" in str(band)


def test_a_certificate_can_be_kept(plain, fresh, tmp_path):
    found = plain.certify(fresh)
    found.save(tmp_path / "certificate.json")
    content = json.loads((tmp_path / "certificate.json").read_text())
    wanted = {"bound", "kind", "loss", "delta", "n", "vacuous", "statement", "assumptions", "terms"}
    assert wanted <= set(content)
    assert hs.Certificate.load(tmp_path / "certificate.json") == found
    assert "empirical risk" in str(found)
    assert found.table().loc["n", "value"] == 12
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(hs.InputError, match="not a certificate"):
        hs.Certificate.load(tmp_path / "broken.json")


def test_a_certified_run_survives_its_folder(run, data, tmp_path):
    run.save(tmp_path / "run")
    back = hs.Run.load(tmp_path / "run", trust=True)
    mine = run.certifiable(data)
    one, two = (r.certify(mine, draws=300).terms for r in (run, back))
    assert one == pytest.approx(two, rel=1e-4)
    with pytest.raises(hs.InputError, match="prior, the scales"):
        back.certify(data)


def test_training_the_posterior_moves_nothing_but_weights(run, data):
    first = data.take(np.flatnonzero([i not in run.certifiable(data).ids for i in data.ids]))
    prior = plain_fit(tiny_model(noise="learn"), first, training=TRAINING)
    before, after = (
        prior.forecaster.model.network.posterior.mean,
        run.forecaster.model.network.posterior.mean,
    )
    np.testing.assert_allclose(
        run.forecaster.model.network.prior.value.mean.layers[0].weight,
        before.layers[0].weight,
        rtol=1e-5,
    )
    assert not np.allclose(before.layers[0].weight, after.layers[0].weight, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(
        run.forecaster.model.diffusion.sd.value, prior.forecaster.model.diffusion.sd.value
    )
    np.testing.assert_array_equal(
        run.forecaster.model.start.default.value, prior.forecaster.model.start.default.value
    )


def test_several_networks_are_not_trained_against_a_bound():
    data = wiggles(series=4)
    run = untrained_run(tiny_model(members=2), data)
    with pytest.raises(hs.InputError, match="several networks"):
        hs.run.certified(run, data.take([0, 1]), data.take([2, 3]))


def test_a_learned_gate_is_rounded_and_its_grid_counted(fresh):
    """γ = 0.65 is certified as the 0.6 that it is nearest to, one of eleven."""
    learned, given = (untrained_run(tiny_model(gate=gate)) for gate in ("learn", {"x": 0.6}))
    moved = jnp.array([np.log(0.64 / 0.36), 0.0], jnp.float32)
    forecaster = eqx.tree_at(lambda f: f.model.known.gate.strength.raw, learned.forecaster, moved)
    learned = dataclasses.replace(learned, forecaster=forecaster)
    asked = {"bound": "paper", "draws": 120}
    found = learned.certify(fresh, **asked)
    same = given.certify(fresh, **asked, gate_values=11)
    assert found.terms["ln gates"] == pytest.approx(np.log(11))
    assert found.terms == pytest.approx(same.terms, rel=1e-5)
    assert found.terms["T1"] > given.certify(fresh, **asked).terms["T1"]
    assert any("rounded to the nearest of 11 points" in line for line in found.assumptions)
    with pytest.raises(hs.InputError, match="it is 11, by its grid"):
        learned.certify(fresh, **asked, gate_values=1)
