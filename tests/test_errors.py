"""How users are spoken to: at their own line, in the words of where they are."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hybridsde as hs
from hybridsde.cli.app import as_options
from hybridsde.cli.certify import certify
from hybridsde.data import Columns


def test_notices_point_at_the_line_of_the_user():
    frame = pd.DataFrame({"run": "a", "t": [0.0, 2.0, 1.0], "x": np.arange(3.0)})
    with pytest.warns(hs.InputNotice, match="they were sorted") as said:
        hs.from_frame(frame, Columns(id="run", time="t", states=("x",)))
    line = Path(__file__).read_text().splitlines()[said[0].lineno - 1]
    assert said[0].filename == __file__
    assert "hs.from_frame" in line


def test_arguments_are_options_on_the_command_line():
    given = 'Say dependence="sequential" or models_compared=M. d=3 stays.'
    said = as_options(given, certify.__annotations__)
    assert said == "Say --dependence sequential or --models-compared M. d=3 stays."


def test_nobody_else_warns():
    """`notice` finds the user's line; a number of frames typed somewhere does not."""
    sources = Path(hs.__file__).parent.rglob("*.py")
    assert [one.name for one in sources if "warnings.warn(" in one.read_text()] == ["_errors.py"]
