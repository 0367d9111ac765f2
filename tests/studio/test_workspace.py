"""What the page can reach, and what it cannot."""

from threading import Lock

import pytest
from typer.testing import CliRunner

from helpers import untrained_run
from hybridsde import InputError
from hybridsde.__main__ import app
from hybridsde.store.folder import RUN
from hybridsde.studio.actions import ProjectActions
from hybridsde.studio.jobs import Jobs
from hybridsde.studio.workspace import MARK, SNAPSHOT, Workspace, about_run, slug

TABLE = b"run,t,x\na,0,1\na,1,2.5\na,2,3\nb,0,2\nb,1,3.5\nb,2,1\n"


@pytest.mark.parametrize(
    "label",
    [
        "../../etc/passwd.csv",
        "/elsewhere/x.csv",
        "..",
        "a\x00b.csv",
        "C:\\x.csv",
        "",
        "ü.csv",
        "." * 300,
    ],
)
def test_a_table_stays_in_the_folder_whatever_it_is_called(tmp_path, label):
    root = tmp_path / "inside"
    root.mkdir()
    name = Workspace(root).add_table(label, TABLE)
    assert (root / name).resolve().is_relative_to(root)
    assert (root / name).parent.parent == root
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_names_keep_what_can_be_read():
    assert slug("My Tank, 2024 (final)") == "my-tank-2024-final"
    assert slug("…") == "table"


def test_two_tables_of_one_name_are_two_projects(tmp_path):
    found = Workspace(tmp_path)
    first, second = found.add_table("a.csv", TABLE), found.add_table("a.csv", TABLE)
    assert sorted(found.settings()) == sorted([first, second])


def test_what_is_no_table_leaves_nothing(tmp_path):
    with pytest.raises(InputError):
        Workspace(tmp_path).add_table("a.csv", b"\x00\xff nothing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../outside.toml", "/etc/passwd", "outside.toml", "a/../x.toml"])
def test_names_that_were_not_found_here_are_refused(tmp_path, name):
    root = tmp_path / "inside"
    root.mkdir()
    (tmp_path / "outside.toml").write_text('[data]\nfiles = "x.csv"\nstates = ["x"]\n')
    (root / "link.toml").symlink_to(tmp_path / "outside.toml")
    found = Workspace(root)
    assert found.settings() == []
    with pytest.raises(InputError, match="There is no"):
        found.settings_path(name)
    with pytest.raises(InputError, match="There is no"):
        found.run_path(name)


def test_what_the_command_line_wrote_is_seen(tmp_path):
    assert (
        CliRunner().invoke(app, ["init", "--example", "--out", str(tmp_path / "a")]).exit_code == 0
    )
    untrained_run().save(tmp_path / "a" / "run")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    found = Workspace(tmp_path)
    assert found.settings() == ["a/settings.toml"]
    assert found.runs() == ["a/run"]
    assert about_run(tmp_path / "a" / "run")["states"] == ["x", "y"]


def test_settings_of_a_run_are_no_project(tmp_path):
    found = Workspace(tmp_path)
    name = found.add_example()
    text = (tmp_path / name).read_text()
    assert text.startswith(MARK)
    (tmp_path / "predators" / "run-1.toml").write_text(SNAPSHOT + text)
    run = tmp_path / "predators" / "run-3"
    run.mkdir()
    (run / "settings.toml").write_text(text)  # as a fit leaves them
    (run / RUN).write_text("{}")
    assert found.settings() == [name]
    assert found.next_run(tmp_path / name).name == "run-2"


def test_parquet_is_kept_as_text(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"t": [0.0, 1, 2], "x": [1.0, 2.5, 3]}).to_parquet(tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    root = tmp_path / "inside"
    root.mkdir()
    found = Workspace(root)
    jobs = Jobs()
    actions = ProjectActions(found, jobs, Lock())
    name = actions.upload("a.parquet", content)["project"]
    assert (root / name).with_name("recordings.csv").read_text().startswith("t,x\n")
    with pytest.raises(InputError, match="no Parquet file"):
        actions.upload("b.parquet", content[:40])
    jobs.close()
