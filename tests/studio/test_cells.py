"""Words among numbers: named by their place, and left out of the studio's copy alone."""

import pytest

from hybridsde import InputError
from hybridsde.studio.cells import blank_cells, spoiled_cells
from hybridsde.studio.draft import read_draft, show_table
from hybridsde.studio.workspace import TABLE, Workspace

ROWS = [f"{k},{'oops' if k in (3, 7) else (k * 7) % 5},{k % 4 + 0.5}" for k in range(20)]
TEXT = "\n".join(["t,x,y", *ROWS]) + "\n"


@pytest.fixture
def project(tmp_path):
    workspace = Workspace(tmp_path)
    return workspace.settings_path(workspace.add_table("mine.csv", TEXT.encode()))


def test_spoiled_cells_are_named_and_blanked(project):
    settings, _ = read_draft(project)
    assert spoiled_cells(project, settings) == {
        "count": 2,
        "first": [{"row": row, "column": "x", "cell": "oops"} for row in (4, 8)],
    }
    shown = show_table(project)
    assert shown["look"] is None
    assert shown["said"].startswith(f"{TABLE}, line 5, column 'x': 'oops' is not a number")
    assert blank_cells(project, settings) == 2
    assert show_table(project)["look"]["missing"] == "5 %"
    assert spoiled_cells(project, settings)["count"] == 0


def test_a_table_of_somebody_else_is_left_alone(project):
    settings, _ = read_draft(project)
    project.write_text("# My notes.\n" + project.read_text())
    assert spoiled_cells(project, settings)["count"] == 0
    with pytest.raises(InputError, match="not the studio's own copy"):
        blank_cells(project, settings)
    assert (project.parent / TABLE).read_text() == TEXT
