"""The commands for one's own data, as a user runs them."""

import json
import re
import shutil
import sys
from dataclasses import replace
from typing import get_type_hints

import jax
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from hybridsde import InputError, Run
from hybridsde.__main__ import app
from hybridsde._errors import FitFailed
from hybridsde.baselines import Climatology
from hybridsde.project import comparison_folder
from hybridsde.project.compare import others
from hybridsde.project.project import Project

SHORT = (
    '[train]\nepochs = 3\n[model]\nlearned = "network"\nhidden = [8]\n'
    "[forecast]\ndraws = 20\nhorizon = 6\n"
)


def call(*command):
    return CliRunner().invoke(app, [str(word) for word in command])


def refused(*command):
    """The one line (and the equation, where one is shown) that a command ends with."""
    result = call(*command)
    assert result.exit_code == 2, result.output
    assert result.output.startswith("error: ")
    return result.output


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    assert call("init", "--example", "--out", folder).exit_code == 0
    settings, table = folder / "settings.toml", folder / "recordings.csv"
    text, changed = re.subn(r"^test = .*$", "test = 0.2", settings.read_text(), flags=re.MULTILINE)
    assert changed == 1
    settings.write_text(text + SHORT)
    few = pd.read_csv(table).groupby("run").head(12)
    few[few["run"] < "run08"].to_csv(table, index=False)
    return folder


@pytest.fixture(scope="module")
def fitted(project):
    result = call("fit", project / "settings.toml", "--out", project / "run")
    assert result.exit_code == 0, result.output
    assert "coverage90" in result.output
    return project / "run"


def test_check_says_what_a_fit_would_do(project):
    result = call("check", project / "settings.toml")
    assert result.exit_code == 0
    assert "dx/dt = growth*x - eaten*x*y + learned" in result.output
    assert "dy/dt = learned" in result.output
    assert "8 trajectories" in result.output
    assert re.search(r"\d for test \(run0\d", result.output)


def test_check_says_where_states_without_an_equation_begin(project, tmp_path):
    """Nobody measured `z`, and nothing is known of it."""
    text = (project / "settings.toml").read_text()
    text = re.sub(r"(?ms)^\[floor.*?(?=^\[(?!floor)|\Z)", "", text)
    text = text.replace("[data]", '[data]\nhidden_states = ["z"]', 1)
    (tmp_path / "settings.toml").write_text(text)
    shutil.copy(project / "recordings.csv", tmp_path)
    result = call("check", tmp_path / "settings.toml")
    assert result.exit_code == 0, result.output
    assert "z: start learned" in result.output


def test_check_names_the_scheme_of_a_step_that_is_given(project, tmp_path):
    (tmp_path / "recordings.csv").write_text((project / "recordings.csv").read_text())
    text = (project / "settings.toml").read_text().replace("[train]", "[train]\nsubsteps = 4", 1)
    (tmp_path / "settings.toml").write_text(text)
    result = call("check", tmp_path / "settings.toml")
    assert result.exit_code == 0, result.output
    assert re.search(r"Heun steps of at most [\d.]+ \w+, by train.substeps", plain(result.output))


def test_init_says_what_it_guessed_and_names_the_file_it_wrote(tmp_path):
    rows = [f"{k};{k % 7},5;{'-' if k == 9 else k % 5};{4 if k == 3 else ''}" for k in range(60)]
    (tmp_path / "b.csv").write_text("\n".join(["t;x;y;amt", *rows]))
    result = call("init", tmp_path / "b.csv", "--out", tmp_path / "a.toml")
    assert result.exit_code == 0, result.output
    said = plain(result.output)
    assert "Guessed: columns are separated by semicolons, and numbers have a decimal comma." in said
    assert 'Cells that say "-" are read as missing' in said
    assert "Left open: column 'amt' is positive in some rows" in said
    assert "hybridsde check a.toml" in (tmp_path / "a.toml").read_text().splitlines()[0]


def plain(output: str) -> str:
    """Without the ends of lines that a terminal adds."""
    return " ".join(output.split())


def test_check_says_of_zeros_in_one_line(project, tmp_path):
    """And not with a line of the source."""
    table = pd.read_csv(project / "recordings.csv")
    table.loc[table.groupby("run").cumcount() == 3, "x"] = 0.0
    table.to_csv(tmp_path / "recordings.csv", index=False)
    text = (project / "settings.toml").read_text()
    text = re.sub(r"(?m)^positive = .*$", "", text).replace("[data]", '[data]\npositive = ["x"]', 1)
    (tmp_path / "settings.toml").write_text(text)
    result = call("check", tmp_path / "settings.toml")
    assert result.exit_code == 0, result.output
    assert re.search(r"note: \d values of 'x' are zero or less", result.output)
    assert ".py:" not in result.output


def test_a_fit_that_never_was_finite_ends_with_three(project, tmp_path, monkeypatch):
    def lost(*args, **kwargs):
        raise FitFailed("x is not finite at t = 1")

    monkeypatch.setattr(Project, "fit_into", lost)
    result = call("fit", project / "settings.toml", "--out", tmp_path / "run")
    assert result.exit_code == 3
    assert "failed: x is not finite at t = 1" in result.output


def test_simple_systems_are_told_of_inputs(project, tmp_path):
    """None of them is left out where recordings are driven."""
    table = pd.read_csv(project / "recordings.csv")
    table.assign(u=table["t"] > 0.5).astype({"u": float}).to_csv(tmp_path / "recordings.csv")
    text = (project / "settings.toml").read_text()
    (tmp_path / "settings.toml").write_text(text.replace("[data]", '[data]\ninputs = ["u"]', 1))
    opened = Project.open(str(tmp_path / "settings.toml"))
    found = {one.method: one.spec for one in others(opened, "persistence,climatology,analogues")}
    assert [tuple(spec.inputs) for spec in found.values()] == [("u",)] * 3


def test_init_guesses_columns(project, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text((project / "recordings.csv").read_text())
    assert call("init", table).exit_code == 0
    text = (tmp_path / "mine.toml").read_text()
    assert 'id = "run"' in text
    assert 'time = "t"' in text
    assert 'states = ["x", "y"]' in text
    assert call("check", tmp_path / "mine.toml").exit_code == 0
    assert "exists" in refused("init", table)


def test_score_as_json(fitted):
    result = call("score", fitted, "--json")
    scores = json.loads(result.stdout)
    assert set(scores["states"]) == {"x", "y"}
    assert {"mse", "rmse", "nll", "crps", "coverage90"} <= set(scores["overall"])
    assert np.isfinite(scores["overall"]["crps"])


@pytest.mark.slow
def test_score_and_forecast_other_data(fitted, project, tmp_path):
    table = pd.read_csv(project / "recordings.csv")
    table[table["run"] == "run03"].to_csv(tmp_path / "one.csv", index=False)
    assert call("score", fitted, "--data", tmp_path / "one.csv").exit_code == 0
    out = tmp_path / "forecast.csv"
    command = ("forecast", fitted, "--data", tmp_path / "one.csv", "--steps", 4, "--out", out)
    assert call(*command).exit_code == 0
    frame = pd.read_csv(out)
    assert len(frame) == 4 * 2
    assert np.all(frame["q05"].to_numpy() < frame["q95"].to_numpy())


def test_a_forecast_starts_from_a_single_row(fitted, project, tmp_path):
    table = pd.read_csv(project / "recordings.csv")
    table[table["run"] == "run03"].head(1).to_csv(tmp_path / "now.csv", index=False)
    command = ("forecast", fitted, "--data", tmp_path / "now.csv", "--out", tmp_path / "f.csv")
    assert call(*command, "--steps", 3).exit_code == 0
    usual = np.median(np.diff(table["t"][table["run"] == "run03"]))
    elapsed = pd.read_csv(tmp_path / "f.csv")["elapsed"].to_numpy()
    np.testing.assert_allclose(elapsed.max(), 3 * usual, rtol=0.2)
    assert "no rows after" in refused(*command)
    assert "nothing to score" in refused("score", fitted, "--data", tmp_path / "now.csv")


def test_a_forecast_goes_on_after_the_last_measured_row(fitted, project, tmp_path):
    table = pd.read_csv(project / "recordings.csv")
    one = table[table["run"] == "run03"].copy()
    one.loc[one.index[-3:], ["x", "y"]] = np.nan
    one.to_csv(tmp_path / "now.csv", index=False)
    out = tmp_path / "f.csv"
    command = ("forecast", fitted, "--data", tmp_path / "now.csv", "--out", out)
    assert call(*command).exit_code == 0
    frame = pd.read_csv(out)
    np.testing.assert_allclose(np.unique(frame["time"]), one["t"].to_numpy()[-3:])
    assert np.all(frame["elapsed"].to_numpy() > 0)
    assert call(*command, "--from", "first").exit_code == 0
    assert len(pd.read_csv(out)) == 2 * (len(one) - 1)
    assert "first or the last" in refused(*command, "--from", "middle")


def test_states_of_a_record(fitted, project, tmp_path):
    table = pd.read_csv(project / "recordings.csv")
    one = table[table["run"] == "run03"]
    one.to_csv(tmp_path / "one.csv", index=False)
    out = tmp_path / "states.csv"
    assert call("states", fitted, "--data", tmp_path / "one.csv", "--out", out).exit_code == 0
    frame = pd.read_csv(out)
    assert len(frame) == 2 * len(one)
    assert set(frame["state"]) == {"x", "y"}
    assert np.all(frame["q05"].to_numpy() <= frame["q95"].to_numpy())


@pytest.mark.slow
def test_rolling_origins(fitted):
    result = call("score", fitted, "--origins", 2, "--horizon", 3, "--json")
    rows = json.loads(result.stdout)
    assert {row["lead"] for row in rows} == {0, 1, 2, 3}
    assert all(np.isfinite(row["crps"]) for row in rows)


@pytest.mark.slow
def test_forecast_at_given_times_with_all_draws(fitted, tmp_path):
    (tmp_path / "times.txt").write_text("0.1\n0.5\n")
    out = tmp_path / "forecast.nc"
    command = ("forecast", fitted, "--times", tmp_path / "times.txt", "--draws", 8, "--out", out)
    assert call(*command).exit_code == 0
    with xr.open_dataset(out) as draws:
        assert draws["observations"].sizes["draw"] == 8
        np.testing.assert_allclose(draws["time"], [0.1, 0.5])


@pytest.mark.slow
def test_the_report_is_one_page_without_a_network(fitted):
    assert call("report", fitted).exit_code == 0
    page = (fitted / "report.html").read_text()
    assert page.count("<svg") >= 10
    assert "<math" in page
    assert "default-src 'none'" in page  # a browser fetches nothing, whatever the page says
    own = page.split("<script>")[0]
    assert "src=" not in own
    assert "growth" in page
    live = json.loads(page.split('id="live">')[1].split("</script>")[0])
    assert {one["kind"] for one in live["whatif"]["levers"]} == {"start", "parameter"}
    assert live["series"][0]["id"] == "run01[0:7]"
    assert [one["id"] for one in live["rolling"]] == ["run01", "run07"]
    assert live["drift"][0]["states"] == ["x", "y"]
    assert len(page) < 3_000_000


@pytest.mark.slow
def test_certify_uses_what_the_fit_has_not_seen(fitted, project):
    result = call("certify", fitted, "--loss", "interval", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["kind"] == "hold-out, betting"
    assert found["n"] == 2
    wanted = {"bound", "kind", "loss", "delta", "n", "vacuous", "statement", "assumptions", "terms"}
    assert wanted <= set(found)
    assert "Vacuous" in call("certify", fitted, "--bound", "paper").output
    assert call("certify", fitted, "--loss", "band").exit_code == 0
    assert call("report", fitted).exit_code == 0
    page = (fitted / "report.html").read_text()
    assert "Certificates" in page
    assert "not a promise" in page
    told = refused("certify", fitted, "--data", project / "recordings.csv")
    assert "was seen before" in told
    told = refused("certify", fitted, "--windows", 3)
    assert "windows of one recording" in told
    assert "say --dependence sequential" in told
    assert "at least 9 are needed" in refused("certify", fitted, "--bound", "conformal")
    assert "must be one of auto" in refused("certify", fitted, "--bound", "magic")


@pytest.mark.slow
def test_a_fit_with_a_part_set_apart_can_be_certified_on_it(project):
    settings = project / "apart.toml"
    text = (project / "settings.toml").read_text()
    settings.write_text(text.replace("[train]", "[train]\nprior_fraction = 0.5"))
    assert call("fit", settings, "--out", project / "apart").exit_code == 0
    found = json.loads(call("certify", project / "apart", "--draws", 200, "--json").stdout)
    assert found["kind"].startswith("PAC-Bayes")
    assert found["n"] == 5
    assert (
        json.loads(call("certify", project / "apart", "--bound", "holdout", "--json").stdout)["n"]
        == 2
    )


def test_a_comparison_has_the_ensemble_that_fit_tries(tmp_path):
    """Where a state is not measured, settled and ready, beside library and networks."""
    from hybridsde.project.compare import variants

    rows = [f"{k},{t},{np.cos(t + k)}" for k in range(4) for t in np.arange(30) / 5]
    (tmp_path / "a.csv").write_text("\n".join(["id,t,x", *rows]))
    (tmp_path / "s.toml").write_text(
        '[data]\nfiles = "a.csv"\nid = "id"\ntime = "t"\nstates = ["x"]\nhidden_states = ["v"]\n'
        'test = 0.25\n[physics]\nequations = ["dx = v", "dv = -k*x"]\n'
        "[physics.parameters]\nk = { value = 1.5, learn = true, low = 0.1, high = 5 }\n"
    )
    found = {one.name: one.spec for one in variants(Project.open(tmp_path / "s.toml"))}
    ensemble = found["hybrid, ensemble"]
    assert ensemble.learned == "ensemble"
    assert "v" in ensemble.numerics.typical
    assert {"black box, ensemble", "hybrid, evidence", "hybrid, pac-bayes"} <= set(found)


def test_variants_of_a_comparison(project):
    from hybridsde.project.compare import variants

    found = variants(Project.open(project / "settings.toml"))
    assert [one.name for one in found] == [
        "black box, bayes",
        "black box, pac-bayes",
        "physics alone, bayes",
        "hybrid, bayes",
        "hybrid, pac-bayes",
        "true equations",
    ]
    known = [one.spec.physics.known(("x", "y"), ()) for one in found]
    assert known == [(), (), ("x",), ("x",), ("x",), ("x", "y")]
    assert [one.spec.hidden for one in found] == [(8,), (8,), None, (8,), (8,), None]


def test_what_is_known_beside_equations_has_rows_without_it(project):
    from hybridsde.project.compare import variants

    told = project / "told.toml"
    known = '[knowledge]\neffects = { y = { x = "+" } }\ndecays = ["y"]\n'
    told.write_text((project / "settings.toml").read_text() + known)
    found = {one.name: one.spec.knowledge.kinds for one in variants(Project.open(told))}
    assert found["hybrid, bayes"] == ("effects", "decays")
    assert found["hybrid without effects, bayes"] == ("decays",)
    assert found["hybrid without decays, bayes"] == ("effects",)
    said = " ".join(call("check", told).output.split())
    assert "x drives y up; y decays without input" in said


def test_the_floor_is_printed_beside_the_scores(fitted):
    known = Run.load(fitted).metadata
    assert known.floor is not None
    assert known.test_scores is not None
    own, best = known.test_scores.overall["crps"], known.floor.overall["crps"]
    assert 0 < (best or 0) < (own or 0)


def test_a_floor_must_be_complete_and_is_checked_before_a_fit(project):
    text = (project / "settings.toml").read_text()
    wrong = project / "floor.toml"
    wrong.write_text(text.replace(', "dy = -4*y + x*y"]', "]"))
    assert "[floor] has no equation for 'y'" in refused("check", wrong)
    wrong.write_text(text.replace("dy = -4*y + x*y", "dy = -4*y + x*w"))
    assert "'w'" in refused("check", wrong)


@pytest.mark.slow
def test_compare_writes_a_table_and_a_figure_and_goes_on_after_a_stop(
    project, tmp_path, monkeypatch
):
    from hybridsde.project import compare

    every, repeat = compare.variants, compare.repeat

    def stop_at(method):
        def stop(project, candidate, *rest):
            if candidate.method == method:
                raise KeyboardInterrupt
            return repeat(project, candidate, *rest)

        monkeypatch.setattr(compare, "repeat", stop)

    stand_in = Climatology(observed=("x", "y"))
    monkeypatch.setattr(
        compare, "variants", lambda project: [replace(every(project)[2], spec=stand_in, loss=None)]
    )
    out = tmp_path / "comparison"
    asked = ("compare", project / "settings.toml", "--out", out, "--seeds", 2)
    assert "no system to compare with" in refused(*asked, "--methods", "persistence, arima")
    assert "equal steps of time" in refused(*asked, "--methods", "dtsbn-s")
    assert "not an empty folder" in refused(*asked[:3], project, "--resume")

    stop_at("climatology")
    stopped = call(*asked, "--methods", "climatology")
    assert stopped.exit_code == 130
    assert "--methods climatology --resume" in " ".join(stopped.output.split())
    kept = (out / "scores.csv").read_text()
    assert set(pd.read_csv(out / "scores.csv")["method"]) == {"physics alone"}

    stop_at("physics alone")
    for methods in ("climatology", "persistence"):
        resumed = call(*asked, "--methods", methods, "--resume")
        assert resumed.exit_code == 0, resumed.output
    scores = (out / "scores.csv").read_text()
    assert scores.startswith(kept)
    assert len(scores.splitlines()) == 7
    table = pd.read_csv(out / "comparison.csv")
    assert list(table["method"]) == ["physics alone", "persistence", "climatology"]
    assert np.isfinite(table["crps"]).all()
    assert (out / "comparison.png").stat().st_size > 10_000
    assert "Say --resume" in refused(*asked)
    assert "other settings, recordings or seeds" in refused(*asked[:-1], 3, "--resume")

    assert call("report", out).exit_code == 0
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "physics alone" in page
    run = Run.load(out / "runs" / "climatology-1")
    own = pd.read_csv(out / "scores.csv").query("method == 'climatology' and seed == 1")
    assert run.metadata.test_scores is not None
    assert run.metadata.test_scores.overall["crps"] == pytest.approx(own["crps"].item())
    verified = call("verify", out / "runs" / "climatology-1")
    assert "the scores come out again" in " ".join(verified.output.split())
    assert "goes with --origins" in refused(*asked, "--horizon", 3)
    backtest = call(*asked, "--methods", "persistence", "--resume", "--origins", 2, "--horizon", 3)
    assert backtest.exit_code == 0, backtest.output
    leads = pd.read_csv(out / "backtest.csv").query("obs == 'overall'")
    assert len(leads) == 3 * 2 * 4
    assert set(leads["lead"]) == {0, 1, 2, 3}
    assert (out / "backtest.svg").exists()
    assert call("report", out).exit_code == 0
    assert (out / "report.html").read_text().count("<svg") == 3
    shutil.rmtree(out / "runs" / "persistence-0")  # a fit that was lost is made again
    cut = "\n".join(scores.splitlines()[:-1])
    (out / "scores.csv").write_text(cut)
    again = call(*asked, "--methods", "persistence", "--resume")
    assert again.exit_code == 0, again.output
    assert sorted((out / "scores.csv").read_text().splitlines()) == sorted(scores.splitlines())
    assert (out / "runs" / "persistence-0" / "run.json").exists()
    elsewhere = project / "kept"
    (out / "runs").rename(elsewhere)
    (out / "runs").symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a link"):
        comparison_folder._keep(out / "runs" / "other-0", run, Project.open(asked[1]))
    (out / "runs").unlink()
    elsewhere.rename(out / "runs")
    header = scores.splitlines()[0]
    for damaged in ("nonsense", header, scores.replace("climatology", "arima"), "x" + cut):
        (out / "scores.csv").write_text(damaged)
        assert "is damaged. Remove it" in refused("report", out)
    (out / "scores.csv").write_text(scores.replace("0.", "zero"))
    result = call(*asked, "--resume")
    assert result.exit_code == 2
    assert "is damaged. Remove it" in " ".join(result.output.split())


def test_systems_that_cannot_be_run_are_left_out_with_the_reason(project, monkeypatch):
    from hybridsde import InputNotice
    from hybridsde.project.compare import others

    monkeypatch.setitem(sys.modules, "diffrax", None)
    opened = Project.open(project / "settings.toml")
    with pytest.warns(InputNotice, match="Left out: ") as said:
        found = others(opened, "all")
    assert [one.method for one in found] == [
        "npsde",
        "persistence",
        "climatology",
        "analogues",
        "mean-curve",
    ]
    assert sum("needs diffrax" in str(one.message) for one in said) == 4
    assert sum("equal steps of time" in str(one.message) for one in said) >= 3


def test_help_names_every_system_to_compare_with():
    from hybridsde.cli.compare import compare
    from hybridsde.paper.commands import reproduce_mocap
    from hybridsde.paper.mocap_others import OTHERS
    from hybridsde.registry import SYSTEMS

    for command, known in ((compare, SYSTEMS), (reproduce_mocap, OTHERS)):
        said = get_type_hints(command, include_extras=True)["methods"].__metadata__[0].help
        assert set(said.rsplit(": ", 1)[1].rstrip(".").split(", ")) == set(known)


@pytest.mark.slow
def test_a_fit_from_one_seed_is_that_of_the_comparison(project, fitted):
    from hybridsde.project.compare import repeat, variants

    opened = Project.open(project / "settings.toml")
    found = repeat(opened, variants(opened)[-2], 2)
    run = Run.load(fitted)
    ours, theirs = found.runs[0].forecaster.model, run.forecaster.model
    one = ours.network.posterior.mean.layers[0].weight
    np.testing.assert_allclose(one, theirs.network.posterior.mean.layers[0].weight, atol=1e-4)
    np.testing.assert_allclose(ours.diffusion.sd.value, theirs.diffusion.sd.value, rtol=1e-3)
    assert found.runs[0].metadata.calibration == run.metadata.calibration
    kept = run.metadata.test_scores
    assert kept is not None
    assert found.scores["crps"].iloc[0] == pytest.approx(kept.overall["crps"], rel=1e-3)


def test_python_fits_the_model_that_the_command_line_fits(project, fitted):
    """One set of defaults: the same data and equations give the same numbers."""
    import hybridsde as hs

    parts = Project.open(project / "settings.toml").split
    run = hs.fit(
        hs.HybridSDE(
            states=("x", "y"),
            physics=hs.equations("dx = growth*x - eaten*x*y", growth=2.0, eaten=1.0),
            hidden=(8,),
            learned="network",
        ),
        parts.train,
        training=hs.Training(epochs=3),
        validation=parts.validation,
        horizon=6,
    )
    theirs = hs.Run.load(fitted)
    assert theirs.forecaster.solver == run.forecaster.solver
    for one, two in zip(
        jax.tree.leaves(run.forecaster), jax.tree.leaves(theirs.forecaster), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    kept, test = theirs.metadata.test_scores, parts.test
    assert kept is not None
    assert test is not None
    crps = run.score(test.windows(7, 6, least=2), draws=20).loc["overall", "crps"]
    assert crps == pytest.approx(kept.overall["crps"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('states = ["x", "y"]', 'states = ["x", "z"]', "no column 'z'"),
        ('states = ["x", "y"]', 'states = ["x", "x"]', "'x' is named twice"),
        ("recordings.csv", "recording.csv", "Did you mean 'recordings.csv'"),
        ("eaten*x*y", "eaten*x*q", "'q' is not a state"),
        ("eaten*x*y", "__import__('os').system('id')", "no meaning in an equation"),
        ("dx = ", "dq = ", "'q' is not a state"),
        ("eaten*x*y", "9^9^9", "not a number"),
        ("[data]", "[data]\ncolour = 1", "no key 'colour'"),
    ],
)
def test_wrong_settings_end_with_one_line(old, new, message, project, tmp_path):
    (tmp_path / "recordings.csv").write_text((project / "recordings.csv").read_text())
    text = (project / "settings.toml").read_text()
    assert old in text
    (tmp_path / "settings.toml").write_text(text.replace(old, new))
    assert message in refused("fit", tmp_path / "settings.toml", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_folders_that_cannot_be_used(fitted, project, tmp_path):
    settings = project / "settings.toml"
    assert "holds a finished run" in refused("fit", settings, "--out", fitted)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    assert "not empty" in refused("fit", settings, "--out", tmp_path / "mine")
    assert "is a file" in refused("fit", settings, "--out", settings)
    assert "no folder" in refused("score", tmp_path / "gone")
    wrong = ("forecast", fitted, "--steps", 2, "--out", tmp_path / "f.xlsx")
    assert ".csv, .parquet or .nc" in refused(*wrong)


def test_an_interrupted_fit_says_how_to_go_on(project, tmp_path, monkeypatch):
    from hybridsde.fit import checkpoint

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "run"
    with monkeypatch.context() as patched:
        keep = checkpoint.Checkpoint.keep
        patched.setattr(
            checkpoint.Checkpoint,
            "keep",
            lambda self, *a, now=False: keep(self, *a, now=True) if now else interrupt(),
        )
        stopped = call("fit", project / "settings.toml", "--out", out)
    assert stopped.exit_code == 130
    assert "--resume" in stopped.output
    assert "--resume" in refused("fit", project / "settings.toml", "--out", out)
    resumed = call("fit", project / "settings.toml", "--out", out, "--resume")
    assert resumed.exit_code == 0, resumed.output
    ours = (out / "weights.safetensors").read_bytes()
    assert ours == (project / "run" / "weights.safetensors").read_bytes()
