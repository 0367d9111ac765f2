"""Words among numbers are listed as missing; cells of the studio's own copy can be emptied."""

import pytest

from hybridsde import InputError
from hybridsde.studio.cells import empty_cells, spoiled_cells
from hybridsde.studio.draft import read_draft, show_table
from hybridsde.studio.workspace import TABLE, Workspace

ROWS = [f"{k},{'oops' if k in (3, 7) else (k * 7) % 5},{k % 4 + 0.5}" for k in range(20)]
TEXT = "\n".join(["# A logger wrote this.", 't,"TI-1, left",y', *ROWS]) + "\n"


@pytest.fixture
def project(tmp_path):
    workspace = Workspace(tmp_path)
    return workspace.settings_path(workspace.add_table("mine.csv", TEXT.encode()))


def test_words_are_guessed_to_be_missing(project):
    settings, _ = read_draft(project)
    assert settings.data.missing == ["oops"]
    shown = show_table(project)
    assert shown["look"]["missing"] == "5 %"
    assert 'Cells that say "oops" are read as missing' in shown["look"]["findings"][0]
    assert [one["name"] for one in shown["columns"]] == ["t", "TI_1_left", "y"]
    assert shown["columns"][1]["column"] == "TI-1, left"


def test_words_that_are_not_listed_are_named_by_their_lines(project):
    project.write_text(project.read_text().replace('missing = ["oops"]', "missing = []"))
    settings, _ = read_draft(project)
    cells = [{"line": line, "column": "TI-1, left", "cell": "oops"} for line in (6, 10)]
    assert spoiled_cells(project, settings) == {"count": 2, "first": cells, "words": ["oops"]}
    said = show_table(project)["said"]
    assert said.startswith(f"{TABLE}, line 6, column 'TI-1, left': 'oops' is not a number")
    assert 'missing = ["oops"]' in said


def test_a_cell_is_emptied_and_all_other_lines_stay(project):
    settings, _ = read_draft(project)
    assert empty_cells(project, settings, "TI_1_left", [4]) == 1
    before, after = TEXT.splitlines(), (project.parent / TABLE).read_text().splitlines()
    assert after[3] == before[3].replace(",2,", ",,")
    assert [*after[:3], *after[4:]] == [*before[:3], *before[4:]]


def test_a_table_of_somebody_else_is_left_alone(project):
    settings, _ = read_draft(project)
    project.write_text("# My notes.\n" + project.read_text())
    assert not show_table(project)["own"]
    with pytest.raises(InputError, match="not the studio's own copy"):
        empty_cells(project, settings, "y", [4])
    assert (project.parent / TABLE).read_text() == TEXT
