"""Every system to compare with keeps the same promises."""

import sys
import warnings
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import lognorm, norm

import hybridsde as hs
from helpers import tree_allclose
from hybridsde import baselines
from hybridsde._devices import same_for_seeds
from hybridsde._streams import Stream, stream
from hybridsde.data import Batch, Clock
from hybridsde.forecast import SCORES, ClosedForm, GradientDescent, evaluate, evaluate_many
from hybridsde.forecast.future import future
from hybridsde.forecast.inputs import Driven
from hybridsde.forecast.spec import structure_of
from hybridsde.run.calibrate import scaled

NAMES = ("x", "v")
CONTEXT, SERIES, ROWS, DRAWS, STEP = 2, 4, 7, 4, 0.25
LENGTHS = (ROWS, ROWS, ROWS - 1, ROWS - 2)
PLAIN = hs.Latent(CONTEXT, (), ())
LATENT = replace(PLAIN, spread=0.1)
TRAINING = hs.Training(epochs=1, batch_size=2)
"""Two gradient steps."""

pytestmark = pytest.mark.filterwarnings("ignore:.*left every plausible range")

SYSTEMS = {
    "Neural ODE": (baselines.NeuralODE, {"states": 2, "latent": PLAIN, "hidden": ()}),
    "npODE": (baselines.NpODE, {"inducing": 5, "given": CONTEXT}),
    "npSDE": (
        baselines.NpODE,
        {"inducing": 5, "given": CONTEXT, "components": 1, "diffusion": True, "samples": 2},
    ),
    "ODE²VAE": (baselines.ODE2VAE, {"positions": 1, "latent": LATENT, "hidden": ()}),
    "ODE²VAE-KL": (
        baselines.ODE2VAE,
        {"positions": 1, "latent": LATENT, "hidden": (), "penalty": 0.5},
    ),
    "DTSBN-S": (baselines.DTSBN, {"middle": 2, "top": 2, "baseline": 3, "given": CONTEXT}),
    "linear-Gaussian": (baselines.LinearGaussian, {"states": 2, "iterations": 2, "given": CONTEXT}),
    "persistence": (baselines.Persistence, {"given": CONTEXT}),
    "climatology": (baselines.Climatology, {"given": CONTEXT}),
    "analogues": (baselines.Analogues, {"given": CONTEXT, "neighbours": 3}),
    "log-VAR": (baselines.VectorAutoregression, {"given": CONTEXT, "order": 2}),
}
LONG = ("npODE", "npSDE", "ODE²VAE", "ODE²VAE-KL")
"""In the longest lane but where a test names them: they share most code with others."""
DISCRETE = ("DTSBN-S", "linear-Gaussian", "log-VAR")
TRAINED = tuple(SYSTEMS)[:6]
WITHOUT_CHANCE = ("persistence", "climatology")
"""Their paths are the same for every seed; measurement noise is not."""
AT_ONCE = ("analogues", "log-VAR", *WITHOUT_CHANCE)
"""Estimated without iterations, so that there is no history."""
WITH_INPUTS = ("analogues", "log-VAR", "linear-Gaussian", *WITHOUT_CHANCE)
WITHOUT_NOISE = ("DTSBN-S", "linear-Gaussian", "analogues", "log-VAR", *WITHOUT_CHANCE)
"""Noise is estimated with everything else, and cannot be declared."""
WITH_NOISE = tuple(name for name in SYSTEMS if name not in WITHOUT_NOISE)
MAPPED = ("Neural ODE", "linear-Gaussian")
"""One that is trained and one that is estimated: the others share their code."""
BY_DIFFRAX = ("Neural ODE", "npODE", "ODE²VAE", "ODE²VAE-KL")


def declare(name: str, **settings):
    kind, own = SYSTEMS[name]
    return kind(**{"observed": NAMES, "positive": ("x",), **own, **settings})


def recordings(seed: int = 0, *, irregular: bool = False, gaps: bool = False) -> hs.Trajectories:
    """Noisy oscillations, x far from normal: all of one shape, so few programs are compiled."""
    rng = np.random.default_rng(seed)
    times, values, seen = [], [], []
    for rows, phase in zip(LENGTHS, rng.uniform(0, 2 * np.pi, SERIES), strict=True):
        steps = rng.uniform(0.1, 0.5, rows) if irregular else np.full(rows, STEP)
        t = np.cumsum(steps)
        y = np.stack([np.exp(1.5 * np.sin(2 * t + phase)), 20 + 8 * np.cos(2 * t + phase)], 1)
        missing = rng.uniform(size=y.shape) < 0.15
        missing[0] = False
        times.append(t)
        values.append(y * np.exp(0.05 * rng.normal(size=y.shape)))
        seen.append(~missing if gaps else np.ones(y.shape, bool))
    return hs.Trajectories.from_arrays(times, values, states=NAMES, observed=seen)


def allowed(name: str, seed: int = 0) -> hs.Trajectories:
    """Recordings as untidy as a system takes them."""
    return recordings(seed, irregular=name not in DISCRETE, gaps=name != "DTSBN-S")


def later_times(data: hs.Trajectories) -> np.ndarray:
    """Three times after the given rows, on a grid where there is one."""
    return data.times[:, CONTEXT - 1 : CONTEXT] + STEP * np.arange(1, 4)


@eqx.filter_jit
def asked(forecaster, batch: Batch, trained: bool, key):
    """Forecasts of every row, and the loss where there is one."""
    loss = forecaster.loss(batch, SERIES, key=key).loss if trained else jnp.zeros(())
    return forecaster.predict(batch, DRAWS, key=key), loss


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in SYSTEMS],
)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def run(name):
    return hs.fit(declare(name), allowed(name), training=TRAINING)


@pytest.fixture(scope="module")
def forecast(name, run):
    data = allowed(name, 1)
    return run.forecast(data.start(CONTEXT), later_times(data), draws=DRAWS)


def test_it_goes_by_the_name_of_its_paper(name, run):
    assert run.spec.name == name


def test_recordings_as_untidy_as_it_takes_them_give_a_finite_loss(name, run):
    assert not run.diverged
    assert run.history.empty == (name in AT_ONCE)
    assert np.isfinite(run.history.to_numpy()).all()


def test_forecasts_are_labelled_and_finite(name, run, forecast):
    data = allowed(name, 1)
    for draws, axis in ((forecast.states, "state"), (forecast.observations, "obs")):
        assert draws.dims == ("draw", "trajectory", "time", axis)
        assert draws.shape == (DRAWS, SERIES, 3, 2)
        assert tuple(draws[axis].to_numpy()) == NAMES
        assert tuple(draws["trajectory"].to_numpy()) == data.ids
        np.testing.assert_array_equal(draws["clock"], later_times(data))
        assert np.isfinite(draws).all()
    assert not np.array_equal(forecast.states, forecast.observations)


def test_positive_columns_are_forecast_above_zero(forecast):
    for draws, axis in ((forecast.states, "state"), (forecast.observations, "obs")):
        assert (draws.sel({axis: "x"}) > 0).all()


@pytest.mark.slow
def test_scores_are_those_of_a_run(name, run):
    table = run.score(allowed(name, 1), draws=DRAWS)
    assert tuple(table.columns) == SCORES
    assert tuple(table.index) == (*NAMES, "overall")
    assert np.isfinite(table.to_numpy()).all()


@pytest.mark.slow
def test_scores_are_in_the_units_of_the_data(name, run):
    """x is modelled by its logarithm, so its density is a mixture of lognormal ones."""
    data = allowed(name, 1)
    table = run.score(data, draws=DRAWS, seed=8)
    path_key, _ = jr.split(stream(8, Stream.FORECAST))
    found, _ = asked(run.forecaster, run.spec.batch(data), name in TRAINED, path_key)
    means = np.asarray(found.means, float)[:, :, CONTEXT:]
    sd = np.broadcast_to(np.asarray(found.sd, float), found.means.shape)[:, :, CONTEXT:]
    y, seen = data.values[:, CONTEXT:], data.observed[:, CONTEXT:]
    y = np.where(seen, y, 1.0)
    logs = np.stack(
        [
            lognorm.logpdf(y[..., 0], sd[..., 0], scale=np.exp(means[..., 0])),
            norm.logpdf(y[..., 1], means[..., 1], sd[..., 1]),
        ],
        -1,
    )
    lognormal = np.exp(means[..., 0] + sd[..., 0] ** 2 / 2)
    centre = np.stack([lognormal, means[..., 1]], -1).mean(0)
    centre = np.clip(centre, *np.array(run.metadata.plausible).T)
    wanted = {"nll": np.log(DRAWS) - logsumexp(logs, 0), "mse": (centre - y) ** 2}
    for score, each in wanted.items():
        columns = [*np.mean(each, (0, 1), where=seen), np.mean(each, where=seen)]
        np.testing.assert_allclose(table[score], columns, rtol=1e-3)


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(name, run, forecast):
    data = allowed(name, 1)
    tables, futures = [], []
    for seed in (0, 1):
        again = hs.fit(declare(name), allowed(name), training=TRAINING, seed=seed)
        tables.append(again.score(data, draws=DRAWS))
        futures.append(again.forecast(data.start(CONTEXT), later_times(data), draws=DRAWS))
        assert tree_allclose(again.forecaster, run.forecaster, rtol=0, atol=0) == (
            seed == 0 or name not in TRAINED
        )
    assert tables[0].equals(run.score(data, draws=DRAWS))
    assert not tables[1].equals(tables[0])
    np.testing.assert_array_equal(futures[0].states, forecast.states)
    np.testing.assert_array_equal(futures[0].observations, forecast.observations)
    assert not np.array_equal(futures[1].observations, forecast.observations)
    assert np.array_equal(futures[1].states, forecast.states) == (name in WITHOUT_CHANCE)


def test_forecasts_depend_on_the_given_rows_alone(name, run):
    batch = run.spec.batch(allowed(name, 1))
    later = (jnp.arange(ROWS) >= CONTEXT)[:, None]
    other = replace(batch, values=jnp.where(later, 7.0 - 3 * batch.values, batch.values))
    missing = replace(batch, observed=batch.observed & ~later)
    found, changed, unseen = (
        asked(run.forecaster, one, name in TRAINED, jr.key(3))[0] for one in (batch, other, missing)
    )
    assert tree_allclose(found, changed, rtol=0, atol=0)
    assert tree_allclose(found, unseen, rtol=0, atol=0)


def test_forecasts_depend_on_the_given_rows(name, run):
    batch = run.spec.batch(allowed(name, 1))
    other = replace(batch, values=batch.values + jnp.where(batch.observed, 0.5, 0.0))
    found, changed = (
        np.asarray(asked(run.forecaster, one, name in TRAINED, jr.key(3))[0].means)[:, :, CONTEXT:]
        for one in (batch, other)
    )
    assert np.array_equal(found, changed) == (name == "climatology")


def padded(batch: Batch, rows: int = 2) -> Batch:
    """The same recordings followed by rows that nobody recorded."""
    end = [(0, 0), (0, rows)]
    return Batch(
        times=jnp.pad(batch.times, end, mode="edge"),
        steps=jnp.pad(batch.steps, end),
        values=jnp.pad(batch.values, [*end, (0, 0)]),
        observed=jnp.pad(batch.observed, [*end, (0, 0)]),
        inputs=jnp.pad(batch.inputs, [*end, (0, 0)], mode="edge"),
        recorded=jnp.pad(batch.recorded, end),
    )


@pytest.mark.slow
def test_padding_changes_neither_loss_nor_forecast(name, run):
    batch = run.spec.batch(allowed(name, 1))
    short, loss = asked(run.forecaster, batch, name in TRAINED, jr.key(3))
    long, same = asked(run.forecaster, padded(batch), name in TRAINED, jr.key(3))
    kept = np.asarray(batch.recorded)
    np.testing.assert_allclose(
        np.asarray(long.means)[:, :, :ROWS][:, kept], np.asarray(short.means)[:, kept], rtol=1e-5
    )
    np.testing.assert_allclose(same, loss, rtol=1e-5)


def test_padding_changes_nothing_that_is_measured_on_the_recordings(name):
    declared, batch = declare(name), declare(name).batch(allowed(name))
    short, long = (declared.init(one, key=jr.key(0)) for one in (batch, padded(batch)))
    if name in ("npODE", "npSDE"):  # the first inducing point is drawn, row by row
        short, long = ((one.observation, one.rate) for one in (short, long))
    assert tree_allclose(short, long, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MAPPED, indirect=True)
@pytest.mark.slow
def test_many_fits_at_once_equal_single_ones(name):
    declared, keys = declare(name), jr.split(jr.key(5), 2)
    batch, test = (declared.batch(allowed(name, seed)) for seed in (0, 1))
    inference = declared.inference(batch, training=TRAINING)
    assert isinstance(inference, GradientDescent if name in TRAINED else ClosedForm)
    many = inference.fit_many(batch, keys=keys)
    scores = evaluate_many(many.model, same_for_seeds(test, 2), DRAWS, keys)
    assert all(scores[score].shape == (2, 3) for score in SCORES)
    assert scores["mse_all"].shape == (2, 1)
    for index, key in enumerate(keys):
        single = inference.fit(batch, key=key)
        arrays, static = eqx.partition(many.model, eqx.is_array)
        one = eqx.combine(jax.tree.map(lambda leaf, i=index: leaf[i], arrays), static)
        found, alone = (asked(model, test, name in TRAINED, key) for model in (one, single.model))
        assert tree_allclose(found, alone, rtol=1e-3, atol=1e-4)
        for column, rows in single.history.items():
            np.testing.assert_allclose(many.history[column][:, index], rows, rtol=1e-3, atol=1e-4)
        table = evaluate(single.model, test, DRAWS, key=key)
        for score in SCORES:
            np.testing.assert_allclose(scores[score][index], table[score], rtol=1e-2, atol=1e-3)


def test_steps_of_length_zero_do_not_move_the_clock():
    """A forecast may ask for one time twice, or for that of the last given row."""
    start = recordings().take([0]).start()
    clock = np.add(start.times, [0.0, 0.5, 0.5, 1.0])
    batch = future(start, Driven(clock, np.zeros((*clock.shape, 0))), 1, Clock())
    np.testing.assert_allclose(batch.elapsed, [[0.0, 0.0, 0.5, 0.5, 1.0]], rtol=1e-6)


@pytest.mark.parametrize("name", ["linear-Gaussian", "npSDE"], indirect=True)
def test_a_second_forecast_compiles_nothing(name, run, forecast, caplog):
    data = allowed(name, 1)
    again = data.start(CONTEXT), later_times(data)
    run.forecast(*again, draws=DRAWS)
    with jax.log_compiles(), caplog.at_level("WARNING", "jax"):
        run.forecast(*again, draws=DRAWS)
    assert not [line for line in caplog.messages if line.startswith("Compiling")]


@pytest.mark.parametrize("name", ["climatology"], indirect=True)
def test_the_density_of_climatology_is_lognormal_where_a_column_is_positive(name, run):
    train, test = allowed(name), allowed(name, 1)
    logs = np.log(train.values[..., 0][train.observed[..., 0]])
    later = test.values[:, CONTEXT:, 0][test.observed[:, CONTEXT:, 0]]
    wanted = -lognorm.logpdf(later, logs.std(), scale=np.exp(logs.mean())).mean()
    np.testing.assert_allclose(run.score(test, draws=DRAWS).loc["x", "nll"], wanted, rtol=1e-4)


def test_a_saved_run_is_the_same_after_loading(name, run, forecast, tmp_path):
    run.save(tmp_path / "run")
    loaded = hs.Run.load(tmp_path / "run")
    assert type(loaded.spec) is type(run.spec)
    assert loaded.spec.name == name
    assert (loaded.diverged, loaded.seed) == (run.diverged, run.seed)
    assert loaded.metadata == run.metadata
    assert list(loaded.history) == list(run.history)
    np.testing.assert_allclose(loaded.history.to_numpy(), run.history.to_numpy(), rtol=1e-6)
    assert tree_allclose(loaded.forecaster, run.forecaster, rtol=0, atol=0)
    data = allowed(name, 1)
    assert loaded.score(data, draws=DRAWS).equals(run.score(data, draws=DRAWS))
    again = loaded.forecast(data.start(CONTEXT), later_times(data), draws=DRAWS)
    np.testing.assert_array_equal(again.states, forecast.states)
    np.testing.assert_array_equal(again.observations, forecast.observations)


@pytest.mark.slow
def test_fresh_recordings_certify_it(name, run):
    fresh = allowed(name, 1)
    found = run.certify(fresh, loss="interval", delta=0.3)
    assert (found.kind, found.loss, found.n) == ("hold-out, betting", "interval", SERIES)
    assert 0 <= found.terms["empirical risk"] <= found.bound <= 1
    assert found.details["forecasts"] == run.forecaster.describe()
    assert run.certify(fresh, loss="interval", delta=0.3) == found
    other = run.certify(fresh, loss="interval", delta=0.2)
    assert found.vacuous or other.bound > found.bound


@pytest.mark.slow
def test_fresh_recordings_give_a_conformal_band(name, run):
    data = allowed(name, 1)
    band = run.conformal(data, alpha=0.2, draws=DRAWS)
    assert (band.n, band.rank, band.times) == (SERIES, SERIES, min(LENGTHS) - CONTEXT)
    assert np.isfinite(band.radius)
    assert band.radius > 0


@pytest.mark.parametrize("name", MAPPED, indirect=True)
def test_a_band_lies_around_forecasts(name, run):
    data = allowed(name, 1)
    band = run.conformal(data, alpha=0.2, draws=DRAWS)
    times = later_times(data)
    ends = band.around(run.forecast(data.start(CONTEXT), times, draws=DRAWS, paths_per_weight=1))
    assert (ends["lower"] < ends["upper"]).all()
    assert (ends["lower"].sel(obs="x") > 0).all()


@pytest.mark.slow
def test_calibration_makes_forecasts_better_or_leaves_them(name, run):
    assert list(run.forecaster.spreads()) == ["noise"]
    wide = replace(run, forecaster=scaled(run.forecaster, {"noise": jnp.asarray(4.0)}))
    data = allowed(name, 2)
    found = hs.calibrate(wide, data)
    factor = (found.metadata.calibration or {})["noise"]
    before, after = (one.score(data).loc["overall", "crps"] for one in (wide, found))
    assert after == before if factor == 1 else after < before
    np.testing.assert_allclose(
        found.forecaster.observation.sd.value,
        4 * factor * run.forecaster.observation.sd.value,
        rtol=1e-5,
    )
    with pytest.raises(hs.InputError, match=r"was seen before \(it set the spread"):
        found.certify(data, loss="interval")


@pytest.mark.parametrize("name", WITH_NOISE, indirect=True)
def test_a_noise_that_was_declared_is_not_calibrated(name, run):
    spec = declare(name, noise=(0.1, 0.2))
    blank = structure_of(spec, spec.init)
    assert not blank.spreads()
    with pytest.raises(hs.InputError, match="Only a learned diffusion or noise"):
        hs.calibrate(replace(run, spec=spec, forecaster=blank), allowed(name, 2))


@pytest.mark.parametrize("name", ["npSDE"], indirect=True)
def test_a_fit_that_was_stopped_goes_on_from_its_checkpoint(name, tmp_path):
    training = replace(TRAINING, epochs=3)

    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    def fit(**settings):
        return hs.fit(declare(name), allowed(name), training=training, **settings)

    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=tmp_path / "fit", callbacks=[stop])
    seen = []
    resumed = fit(checkpoint=tmp_path / "fit", callbacks=[lambda p: seen.append(p.epoch)])
    assert seen == [3]
    assert tree_allclose(resumed.forecaster, fit().forecaster, rtol=0, atol=0)


# What is refused, and how.


@pytest.mark.parametrize("name", DISCRETE, indirect=True)
def test_irregular_times_are_refused_where_time_comes_in_steps(name):
    with pytest.raises(ValueError, match=f"{name} moves in equal steps of time"):
        hs.fit(declare(name), recordings(irregular=True), training=TRAINING)


@pytest.mark.parametrize("factor", [0.5, 1.5])
@pytest.mark.parametrize("name", DISCRETE, indirect=True)
def test_forecast_times_off_the_grid_are_refused(name, run, factor):
    data = recordings(1)
    times = data.times[:, CONTEXT - 1 : CONTEXT] + factor * np.array([0.25, 0.5])
    with pytest.raises(ValueError, match=rf"{name} moves in steps of 0\.25"):
        run.forecast(data.start(CONTEXT), times, draws=DRAWS)


@pytest.mark.parametrize("name", DISCRETE, indirect=True)
def test_recordings_at_another_step_are_not_scored(name, run):
    data = recordings(1)
    slower = replace(data, times=2 * data.times)
    with pytest.raises(ValueError, match=r"steps of time, here of 0\.25, .* but .* is 0\.5"):
        run.score(slower, draws=DRAWS)


@pytest.mark.parametrize("name", ["DTSBN-S"], indirect=True)
def test_missing_values_are_refused_where_every_value_is_needed(name, run):
    data = recordings(gaps=True)
    with pytest.raises(ValueError, match=r"DTSBN-S needs every value of every row, but '[xv]' is"):
        hs.fit(declare(name), data, training=TRAINING)
    with pytest.raises(ValueError, match="DTSBN-S needs every value"):
        run.score(data, draws=DRAWS)


@pytest.mark.parametrize("name", ["DTSBN-S"], indirect=True)
def test_a_zero_of_a_positive_column_is_refused_where_every_value_is_needed(name):
    """It counts as missing, because it has no logarithm."""
    data = recordings()
    data.values[0, 3, 0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.InputNotice)
        with pytest.raises(ValueError, match="DTSBN-S needs every value"):
            hs.fit(declare(name), data, training=TRAINING)


def test_inputs_are_refused(name):
    if name in WITH_INPUTS:
        return
    times = [0.25 * np.arange(4)] * 2
    data = hs.Trajectories.from_arrays(
        times,
        [np.ones((4, 2))] * 2,
        states=NAMES,
        inputs=[np.zeros((4, 1))] * 2,
        input_names=["u"],
    )
    with pytest.raises(ValueError, match=f"{name} takes no inputs, but the data hold u"):
        hs.fit(declare(name), data)


def test_other_columns_are_refused(name, run):
    data = replace(recordings(1), states=("x", "w"))
    with pytest.raises(ValueError, match="observes x, v, but the data hold x, w"):
        hs.fit(declare(name), data)
    with pytest.raises(ValueError, match="observes x, v, but the data hold x, w"):
        run.score(data, draws=DRAWS)
    with pytest.raises(ValueError, match="observes x, v, but the data hold x, w"):
        run.forecast(data.start(CONTEXT), later_times(data), draws=DRAWS)


def test_the_given_rows_must_be_there(name, run):
    data = recordings(1)
    with pytest.raises(ValueError, match="looks back at 2 rows, but a series has fewer"):
        run.forecast(data.start(1), later_times(data), draws=DRAWS)
    with pytest.raises(ValueError, match="nothing to predict"):
        run.score(data.start(CONTEXT), draws=DRAWS)


@pytest.mark.parametrize(
    "given",
    [{"objective": hs.ELBO()}, {"langevin": hs.Langevin()}],
    ids=lambda given: next(iter(given)),
)
def test_what_belongs_to_other_models_is_refused(name, given):
    with pytest.raises(ValueError, match=f"{name} takes no `{next(iter(given))}`"):
        hs.fit(declare(name), recordings(), **given)


def test_the_solver_and_the_beginning_of_other_models_are_refused(name, run):
    with pytest.raises(TypeError, match="unexpected keyword argument 'solver'"):
        hs.fit(declare(name), recordings(), solver=1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(hs.InputError, match="`start_from` must be a run of a latent model"):
        hs.fit(declare(name), recordings(), start_from=run)


def test_recordings_of_the_fit_certify_nothing(name, run):
    used = allowed(name)
    for certificate in (
        lambda: run.certify(used, loss="interval"),
        lambda: run.certify(used, loss="interval", bound="holdout"),
        lambda: run.conformal(used, alpha=0.2),
    ):
        with pytest.raises(hs.InputError, match=r"was seen before \(the model was fitted to it\)"):
            certificate()
    with pytest.raises(
        hs.InputError, match=r"used all of these trajectories. Certify on others\.$"
    ):
        run.certifiable(used)


def test_a_bound_about_the_distribution_of_weights_is_refused_without_one(name, run):
    with pytest.raises(hs.InputError, match=f"which {name} does not have"):
        run.certify(allowed(name, 1), bound="paper")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"observed": (), "positive": ()}, "`observed` is empty"),
        ({"observed": ("x", "x")}, "names 'x' twice"),
        ({"positive": ("w",)}, "`positive` names 'w', which is not observed"),
    ],
)
def test_wrong_declarations_are_refused(name, settings, message):
    with pytest.raises(ValueError, match=message):
        declare(name, **settings)


def test_a_spread_that_would_not_be_used_is_refused():
    with pytest.raises(ValueError, match="starts where its encoder says"):
        declare("Neural ODE", latent=LATENT)
    with pytest.raises(ValueError, match="no use for the `jitter`"):
        declare("ODE²VAE-KL", latent=replace(LATENT, jitter=0.1))


@pytest.mark.parametrize("noise", [-0.1, (0.1, 0.1, 0.1)])
@pytest.mark.parametrize("name", WITH_NOISE, indirect=True)
def test_a_wrong_noise_is_refused(name, noise):
    with pytest.raises(ValueError, match="`noise`"):
        declare(name, noise=noise)


@pytest.mark.parametrize("name", WITHOUT_NOISE, indirect=True)
def test_noise_is_refused_where_it_would_not_be_used(name):
    with pytest.raises(TypeError, match="unexpected keyword argument 'noise'"):
        declare(name, noise=0.1)


@pytest.mark.parametrize("name", BY_DIFFRAX, indirect=True)
def test_a_missing_diffrax_is_named_with_its_remedy(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "diffrax", None)
    with pytest.raises(hs.InputError, match=r"diffrax.* pip install 'hybridsde\[baselines\]'"):
        hs.fit(declare(name), recordings(), training=hs.Training(epochs=3))


@pytest.mark.parametrize("name", ["linear-Gaussian"], indirect=True)
def test_a_missing_statsmodels_is_named_with_its_remedy(name, monkeypatch):
    for module in [module for module in sys.modules if module.startswith("statsmodels.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(hs.InputError, match=r"statsmodels.* pip install 'hybridsde\[baselines\]'"):
        hs.fit(declare(name), recordings())
