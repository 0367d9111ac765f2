"""Every way in which version 0.1 was broken on purpose, by its number in that list.

17 to 19 are about killed fits: see `test_kills`, and `test_resumed_equals_uninterrupted` in
`tests/fit/test_checkpoint.py`.
"""

import functools
import json
import os
import sys
import time
from dataclasses import replace
from importlib import _bootstrap_external

import numpy as np
import pandas as pd
import pytest
from attacks import write_run
from typer.testing import CliRunner

import hybridsde as hs
from helpers import wiggles
from hybridsde import _files
from hybridsde._files import read_whole, write_whole
from hybridsde.cli import app
from hybridsde.data import Columns, from_frame, read_table
from hybridsde.forecast.sanity import say_nonsense
from hybridsde.forecast.spec import offsets_of
from hybridsde.hybrid.offsets import centred
from hybridsde.physics import FunctionPhysics
from hybridsde.physics.expression import mathml
from hybridsde.physics.grammar import parse
from hybridsde.physics.python_file import python_physics
from hybridsde.project.project import DATA, SETTINGS, Project
from hybridsde.project.verification import verify
from hybridsde.report.certificates import read_certificates
from hybridsde.store.folder import kept_file

TOML = '[data]\nfiles = "d.csv"\nid = "id"\nstates = ["x", "v"]\n'


def swings(series=8, rows=30, seed=0):
    """Recordings of an oscillator."""
    rng = np.random.default_rng(seed)
    parts = []
    for name in range(series):
        t = 0.1 * np.arange(rows)
        size, phase = rng.uniform(0.5, 1.5), rng.uniform(0, 6)
        x, v = size * np.cos(2 * t + phase), -2 * size * np.sin(2 * t + phase)
        noise = 0.02 * rng.normal(size=(2, rows))
        parts.append(pd.DataFrame({"id": name, "t": t, "x": x + noise[0], "v": v + noise[1]}))
    return pd.concat(parts, ignore_index=True)


def project_of(folder, frame, toml=TOML):
    frame.to_csv(folder / "d.csv", index=False, float_format="%.17g")
    (folder / "s.toml").write_text(toml)
    return folder / "s.toml"


def refused(folder, frame, message, toml=TOML):
    with pytest.raises(hs.InputError, match=message):
        Project.open(project_of(folder, frame, toml))


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run")


def test_1_nothing_is_written_through_a_link(tmp_path, monkeypatch):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.write_text("precious")
    inside.mkdir()
    (inside / "report.html").symlink_to(outside)
    write_whole(inside / "report.html", "page")
    assert outside.read_text() == "precious"
    assert not (inside / "report.html").is_symlink()
    monkeypatch.setattr(_files.secrets, "token_hex", lambda _: "guessed")
    (inside / ".a.guessed.part").symlink_to(outside)
    with pytest.raises(hs.InputError, match="cannot be written"):
        write_whole(inside / "a", "page")
    assert outside.read_text() == "precious"


def test_2_typesetting_is_linear():
    def size(terms):
        return len(mathml(parse("dx = " + "+".join(["x*y"] * terms)).rate))

    began = time.monotonic()
    assert size(60) < 2.2 * size(30)
    deep = parse("dx = " + "-(" * 50 + "x" + ")" * 50)
    assert len(mathml(deep.rate)) < 10_000
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("scale", "message"),
    [(1e-20, "changes by .* only"), (1e20, "line 2, column 'x'.*beyond")],
)
def test_3_9_10_values_in_absurd_units_are_refused_and_named(tmp_path, scale, message):
    frame = swings()
    frame[["x", "v"]] *= scale
    refused(tmp_path, frame, message)


def test_4_times_of_today_keep_their_digits(tmp_path):
    frame = swings()
    frame["t"] += 1.7e9
    found = Project.open(project_of(tmp_path, frame)).model
    assert found.numerics.origin == frame["t"].min()


def test_5_values_far_from_zero_keep_their_digits():
    frame = swings()
    frame[["x", "v"]] += 1e9
    data = from_frame(frame, Columns(("x", "v"), "t", "id"))
    assert offsets_of(data) == {"x": 1e9, "v": 1e9}
    near = from_frame(swings(), Columns(("x", "v"), "t", "id"))
    spec = hs.HybridSDE(states=("x", "v"), learned="network").settled(data)
    batch = spec.batch(data)
    np.testing.assert_allclose(batch.values[near.observed], near.values[near.observed], atol=1e-6)
    back = spec.raw_states(np.asarray(batch.values))
    np.testing.assert_allclose(back[data.observed], data.values[data.observed], rtol=1e-15)


def test_5_equations_of_values_far_from_zero_are_refused(tmp_path):
    frame = swings()
    frame["v"] += 1e9
    toml = TOML + '[physics]\nequations = ["dx = v"]\n'
    refused(tmp_path, frame, "'v' lies about 1e.09 and changes by .* Subtract a constant", toml)


def test_6_data_and_settings_of_a_run_cannot_be_exchanged(folder):
    for name in (DATA, SETTINGS, "history.csv", "weights.safetensors"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        with pytest.raises(hs.InputError, match=f"{name} was changed or cut short"):
            verify(folder)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("physics", "message"),
    [
        ('equations = ["dx = k*v"]\nparameters = { k = 1e39 }', "physics.parameters.k"),
        (
            'equations = ["dx = k*v"]\nparameters = { k = { value = 1, low = -1e39, high = 2 } }',
            "low",
        ),
        ('equations = ["dx = log(x - 100)"]', "is not finite at x"),
        ('equations = ["dx = 1e300*v"]', "not a number that a computer can hold"),
    ],
)
def test_7_physics_that_is_not_finite_is_refused(tmp_path, physics, message):
    refused(tmp_path, swings(), message, TOML + f"[physics]\n{physics}\n")


def test_8_held_out_values_that_are_all_missing(tmp_path):
    frame = swings()
    frame.loc[frame["id"] == 3, ["x", "v"]] = np.nan
    toml = TOML + 'test = ["3"]\n'
    refused(tmp_path, frame, "nothing to score", toml)


def test_9_a_cell_that_does_not_fit_is_named(tmp_path):
    frame = swings()
    frame.loc[40, "v"] = 1e39
    refused(tmp_path, frame, r"line 42, column 'v': \S+ is infinite, or beyond 1e\+17")
    frame = swings()
    frame["t"] *= 1e-40
    refused(tmp_path, frame, "span .* only")


def test_11_long_and_short_gaps_get_steps_by_time(tmp_path):
    frame = swings()
    frame["t"] = np.where(frame["t"] > 1.45, frame["t"] + 1e5, frame["t"])
    model = Project.open(project_of(tmp_path, frame)).model
    assert model.numerics.step is not None
    assert model.numerics.step < 1


def test_12_what_is_worse_than_climatology_says_so():
    data = wiggles(series=20)
    rows = {"rmse": 50.0, "coverage90": 0.0}
    scores = pd.DataFrame(dict.fromkeys((*data.states, "overall"), rows)).T
    with pytest.warns(hs.InputNotice, match="far worse than the mean"):
        say_nonsense(scores, 0.0, data, 1)


DATES = {
    "ambiguous": (["01/02/2020", "02/02/2020"], "may be 1 February 2020 or 2 January 2020"),
    "mixed": (["2020-01-01", "1 Feb 2020"], "Write all times alike"),
    "zones": (["2020-01-01 10:00Z", "2020-01-01 11:00"], "some times have a time zone"),
    "now": (["now", "today"], "neither a number nor a timestamp"),
    "compact, no unit": (["20200131", "20200201"], "are timestamps, but no unit"),
    "a typing error": (["13/02/2026", "115/02/2026"], "Write all times alike"),
    "no date": (["10:30 UTC", "11:30 UTC"], "neither a number nor a timestamp"),
    "no year": (["12 May", "13 May"], "neither a number nor a timestamp"),
    "compact zones": (["20200101T1000Z", "20200101T1100"], "some times have a time zone"),
    "impossible": (["2020-02-30", "2020-03-01"], "neither a number nor a timestamp"),
}


@pytest.mark.parametrize(("cells", "message"), DATES.values(), ids=DATES)
@pytest.mark.filterwarnings("ignore::hybridsde.InputNotice")
def test_13_doubtful_dates_are_refused(cells, message):
    unit = None if "no unit" in message else "day"
    frame = pd.DataFrame({"t": cells, "x": [1.0, 2.0]})
    with pytest.raises(hs.InputError, match=message):
        from_frame(frame, Columns(("x",), unit=unit))


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["20200131", "20200201"], 1),
        (["13/01/2020", "01/02/2020"], 19),
        (["01/13/2020", "02/01/2020"], 19),
        (["2020-01-31", "2020-02-02 12:00"], 2.5),
        (["2020-01-01T00:00+02:00", "2020-01-01T12:00Z"], 14 / 24),
        (["1 Jan 2020", "3 Jan 2020"], 2),
        (["2020/01/02", "2020/01/05"], 3),
        (["3/14/2026 2:30 PM", "3/15/2026 2:30 PM"], 1),
    ],
)
@pytest.mark.filterwarnings("ignore::hybridsde.InputNotice")
def test_13_dates_that_can_be_read_in_one_way_are(cells, days):
    frame = pd.DataFrame({"t": cells, "x": [1.0, 2.0]})
    found = from_frame(frame, Columns(("x",), unit="day"))
    assert found.times[0, 1] == pytest.approx(days)
    later = from_frame(frame, Columns(("x",), unit="day", epoch="2019-12-31T00:00:00+00:00"))
    assert later.times[0, 1] - later.times[0, 0] == pytest.approx(days)
    assert later.times[0, 0] > 0


def test_14_links_in_a_run_folder_are_not_read(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("precious")
    for name in (SETTINGS, "run.json", DATA):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / name).symlink_to(secret)
        with pytest.raises(hs.InputError, match=f"{name} is a link"):
            kept_file(folder, name)
        (folder / name).unlink()
        (folder / name).write_bytes(kept)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('files = "d.csv"\nid = ""\nstates = ["x"]', "data.id"),
        (f'files = "d.csv"\nstates = ["{"x" * 256}"]', "data.states"),
        (f'files = "d.csv"\nstates = ["x"]\ntest = {"9" * 5000}', "is not TOML"),
    ],
)
def test_15_settings_of_absurd_size_get_one_line(tmp_path, text, message):
    refused(tmp_path, swings(), message, f"[data]\n{text}\n")


def test_15_cells_of_absurd_size_get_one_line(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(f"t,x\n0,1\n1,{'2' * 131_073}\n")
    with pytest.raises(hs.InputError, match=r"line 3: .*not a row of a table"):
        read_table(path, Columns(("x",)))


@pytest.mark.parametrize("content", ["[" * 100_000, '{"format": 4}', "{}", "[]", "null", ""])
def test_16_damaged_facts_of_a_run_get_one_line(folder, content):
    (folder / "run.json").write_text(content)
    with pytest.raises(hs.InputError, match=r"run\.json is damaged"):
        hs.Run.load(folder)


def test_16_a_folder_in_place_of_a_file(folder):
    (folder / "run.json").unlink()
    (folder / "run.json").mkdir()
    with pytest.raises(hs.InputError, match="is a folder, not a file"):
        hs.Run.load(folder)


def test_16_absurd_draws_are_refused(folder):
    answer = CliRunner().invoke(app, ["score", str(folder), "--draws", "1000000000000"])
    assert answer.exit_code == 2
    run = hs.Run.load(folder)
    with pytest.raises(hs.InputError, match=r"would take about .* GiB"):
        run.forecast(wiggles(series=8).start(), [0.1, 0.2], draws=10**12)
    with pytest.raises(hs.InputError, match=r"would take about .* GiB"):
        run.score(wiggles(series=8, seed=4).named([f"n{i}" for i in range(8)]), draws=10**12)


def test_20_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "d.csv")
    with pytest.raises(hs.InputError, match="a pipe or a device"):
        read_table(tmp_path / "d.csv", Columns(("x",)))
    with pytest.raises(hs.InputError, match="a pipe or a device"):
        read_whole(tmp_path / "d.csv")
    (tmp_path / "e").write_bytes(b"12345")
    with pytest.raises(hs.InputError, match=r"more than 0\. Split"):
        read_whole(tmp_path / "e", most=4)


def test_20_a_hundred_thousand_columns_are_refused_at_once(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(",".join(f"c{n}" for n in range(100_000)) + "\n")
    began = time.monotonic()
    with pytest.raises(hs.InputError, match="100000 columns, more than 4096"):
        read_table(path, Columns(("x",)))
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "absurd",
    ["[forecast]\ndraws = 1000000000000", "[model]\nhidden = [1000000, 1000000]",
     "[train]\nlearning_rate = inf", "[model]\nmembers = 100000"],
)  # fmt: skip
def test_21_absurd_settings_are_refused(tmp_path, absurd):
    refused(tmp_path, swings(), "should be less than or equal to", f"{TOML}{absurd}\n")


def test_22_messages_say_what_is_meant(tmp_path):
    refused(
        tmp_path,
        swings(),
        "diffusion: it should be greater than or equal to 0",
        f"{TOML}[model]\ndiffusion = -1\n",
    )
    path = tmp_path / "d.csv"
    path.write_text('note,t,x\n"a\nb",0,1\n"a\nb",1,z\n')
    with pytest.raises(hs.InputError, match="line 4, column 'x'"):
        read_table(path, Columns(("x",)))
    path.write_text("t,\x1b[31mx\n0,1\n1,2\n")
    with pytest.raises(hs.InputError, match="cannot be printed") as caught:
        read_table(path, Columns(("x",)))
    assert "\x1b" not in str(caught.value)


def test_22_a_byte_order_mark_is_no_part_of_the_settings(tmp_path):
    path = project_of(tmp_path, swings())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert Project.open(path).settings.data.id == "id"


def test_verify_finds_the_scores_again_and_what_was_changed(folder):
    facts = json.loads((folder / "run.json").read_text())
    assert set(facts["sha256"]) == {DATA, SETTINGS, "history.csv", "weights.safetensors"}
    assert facts["machine"]["processor"]
    answer = CliRunner().invoke(app, ["verify", str(folder)])
    assert answer.exit_code == 0, answer.output
    assert "as they were written" in answer.output
    (folder / DATA).write_text("x")
    answer = CliRunner().invoke(app, ["verify", str(folder)])
    assert answer.exit_code == 2
    assert "was changed" in answer.output


CASES = {
    "scale 1e-12": {"scale": 1e-12},
    "scale 1e12": {"scale": 1e12},
    "offset 1e9": {"offset": 1e9},
    "times at 1.7e9": {"begin": 1.7e9},
    "times in 1e9": {"clock": 1e9},
}
MORE = {"offset 1e6": {"offset": 1e6}, "times in 1e-9": {"clock": 1e-9}}


@functools.cache
def score_of(scale=1.0, offset=0.0, begin=0.0, clock=1.0):
    """RMSE and CRPS in units of the scale; an equation in t where times may be moved."""
    frame = swings(seed=1)
    frame[["x", "v"]] = scale * frame[["x", "v"]] + offset
    frame["t"] = clock * frame["t"] + begin
    data = from_frame(frame, Columns(("x", "v"), "t", "id"))
    train, test = data.split(0.75, seed=0)
    moved = scale == clock == 1.0 and offset == 0.0
    physics = {"physics": hs.equations("dx = v + 0.01*sin(3*t)")} if moved else {}
    model = hs.HybridSDE(states=("x", "v"), learned="library", functions=(), **physics)
    found = hs.fit(model, train).score(test).loc["overall"]
    return np.array([found["rmse"], found["crps"]]) / scale


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name) for name, case in CASES.items()),
        *(pytest.param(case, id=name, marks=pytest.mark.long) for name, case in MORE.items()),
    ],
)
def test_scores_do_not_depend_on_units_and_offsets(case):
    plain = {} if "begin" in case else {"clock": 1.0 + 1e-9}
    np.testing.assert_allclose(score_of(**case), score_of(**plain), rtol=0.01)


@pytest.mark.slow
def test_21_a_fit_that_does_not_fit_into_memory_is_refused(tmp_path):
    absurd = "[model]\nlearned = 'network'\nhidden = [4096, 4096]\n[train]\nsamples = 1000000\n"
    refused(tmp_path, swings(), "A gradient step would take about .* GiB", TOML + absurd)


def test_13_numbers_are_no_moments_of_a_run_with_timestamps():
    epoch = "2026-01-01T00:00:00+00:00"
    columns = Columns(("x",), unit="day", epoch=epoch)
    with pytest.raises(hs.InputError, match="was fitted to timestamps"):
        from_frame(pd.DataFrame({"t": [3.0], "x": [1.0]}), columns, strict=False)
    with pytest.warns(hs.InputNotice, match="were read as dates"):
        one = from_frame(pd.DataFrame({"t": ["20260301"], "x": [1.0]}), columns, strict=False)
    assert one.times[0, 0] == 59


PYTHON = "def f(t, states, inputs):\n    return {}\n"


@pytest.mark.parametrize("source", ["../x.py:f", "/tmp/x.py:f", "other.py:f", "physics.py:f()"])
def test_only_the_python_file_of_a_folder_is_run(folder, source):
    facts = json.loads((folder / "run.json").read_text())
    facts["spec"]["physics"] = {"kind": "python", "source": source, "parameters": {}}
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(hs.InputError, match=r"lies in physics\.py"):
        hs.Run.load(folder, trust=True)


def test_python_that_a_run_does_not_name_is_not_run(folder):
    (folder / "physics.py").write_text("raise SystemExit\n")
    facts = json.loads((folder / "run.json").read_text())
    facts["spec"]["physics"] = {"kind": "python", "source": "physics.py:f", "parameters": {}}
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(hs.InputError, match="does not belong to this run"):
        hs.Run.load(folder, trust=True)


def test_what_is_run_is_the_text_and_nothing_compiled_beside_it(tmp_path):
    (tmp_path / "known.py").write_text(PYTHON)
    code = compile(PYTHON.replace("{}", "{'x': 1 / 0}"), "known.py", "exec")
    cache = tmp_path / "__pycache__" / f"known.{sys.implementation.cache_tag}.pyc"
    cache.parent.mkdir()
    cache.write_bytes(_bootstrap_external._code_to_hash_pyc(code, b"0" * 8, False))
    found = python_physics("known.py:f", tmp_path, {}, trust=True)
    assert isinstance(found, FunctionPhysics)
    assert found.function(0.0, {}, {}) == {}


def test_files_of_a_run_are_in_its_folder(folder):
    with pytest.raises(hs.InputError, match="is no file of this folder"):
        kept_file(folder, "../outside")


def test_a_finished_run_of_another_project_is_not_taken_over(tmp_path, folder):
    (folder / "unfinished").write_text("")
    project = Project.open(project_of(tmp_path, swings()))
    with pytest.raises(hs.InputError, match="a run of other settings or data"):
        project.fit_into(folder, resume=True)
    assert (folder / "unfinished").exists()


def test_a_linked_folder_of_certificates_is_not_read(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "certificates").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(hs.InputError, match="is a link"):
        read_certificates(folder)


def test_raw_numbers_stay_raw_where_they_are_needed():
    frame = swings()
    frame["x"] = 300 + 0.05 * frame["x"]
    data = from_frame(frame, Columns(("x", "v"), "t", "id"))
    plain = hs.HybridSDE(states=("x", "v"))
    assert centred(plain, data).offsets == {"x": 300.0}
    assert centred(replace(plain, terms=("sqrt(x)",)), data).offsets == {}
    assert centred(replace(plain, diffusion=lambda h, t: h), data).offsets == {}
