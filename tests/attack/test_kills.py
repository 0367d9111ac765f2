"""Killed in the middle of any write, work goes on to the same end; two processes cannot mix."""

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from attacks import write_run
from kills import Killed, calls_of, fingerprint, kill_and_resume, reaped, write_project

import hybridsde as hs
from helpers import wiggles
from hybridsde._files import is_partial
from hybridsde.report.page import write_page
from hybridsde.store.certificates import keep_certificate
from hybridsde.store.lock import LOCK, locked


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("killed") / "project")


@pytest.fixture(scope="module")
def reference(project, tmp_path_factory):
    out = tmp_path_factory.mktemp("reference") / "run"
    calls = calls_of(lambda: project.fit_into(out))
    return calls, fingerprint(out)


@pytest.mark.slow
def test_a_fit_that_is_killed_at_any_call_ends_with_the_same_bytes(project, reference, tmp_path):
    calls, expected = reference
    assert calls > 40
    for place in range(calls):
        kill_and_resume(project, tmp_path / "run", [place], expected)


@pytest.mark.slow
def test_a_fit_that_is_killed_again_and_again_goes_on(project, reference, tmp_path):
    calls, expected = reference
    kill_and_resume(project, tmp_path / "run", list(range(3, calls, 11)), expected)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("reported") / "run")


@pytest.mark.slow
def test_a_killed_report_leaves_the_old_one(run_folder):
    page = run_folder / "report.html"
    page.write_text("the old one")
    for place in range(3):
        with pytest.raises(Killed), reaped(place):
            write_page(run_folder)
        assert page.read_text() == "the old one"
    write_page(run_folder)
    assert "</html>" in page.read_text()
    hs.Run.load(run_folder)


@pytest.mark.slow
def test_a_killed_certificate_is_there_in_full_or_not_at_all(run_folder, tmp_path):
    run = hs.Run.load(run_folder)
    data = wiggles(series=20, seed=9)
    names = tuple(f"n{i}" for i in range(20))
    found = run.certify(replace(data, ids=names, origins=names))
    shutil.copytree(run_folder, tmp_path / "run")
    calls = calls_of(lambda: keep_certificate(tmp_path / "run", "error", found))
    for place in range(calls - 1):  # at the last it is there already, and its folder is synced
        shutil.rmtree(tmp_path / "run" / "certificates")
        with pytest.raises(Killed), reaped(place):
            keep_certificate(tmp_path / "run", "error", found)
        for path in (tmp_path / "run" / "certificates").iterdir():
            assert is_partial(path) or hs.Certificate.load(path) == found


def test_a_folder_has_one_owner_at_a_time(tmp_path):
    with (
        locked(tmp_path),
        pytest.raises(hs.InputError, match=r"in use by process \d+ on"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass
    assert not (tmp_path / LOCK).exists()


def test_the_hold_of_a_killed_process_is_gone(tmp_path):
    """Its file stays, but the system has let go of it."""
    code = (
        "import sys, os, pathlib; from hybridsde.store.lock import locked\n"
        "with locked(pathlib.Path(sys.argv[1])): os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass


def test_another_fit_cannot_enter_a_folder_that_is_in_use(project, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "unfinished").write_text("")
    with locked(out), pytest.raises(hs.InputError, match="in use"):
        project.fit_into(out, resume=True)
    assert sorted(path.name for path in out.iterdir()) == ["unfinished"]
