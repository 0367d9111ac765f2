"""The build of the documentation runs what it shows, and ends where that fails."""

import importlib.util
from pathlib import Path

import pytest

from hybridsde import InputError

PATH = Path(__file__).parents[2] / "docs/site/execute.py"


@pytest.fixture(scope="module")
def execute():
    spec = importlib.util.spec_from_file_location("execute", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def block(kind, code):
    return f"```{kind}\n{code}\n```\n"


def test_blocks_run_in_order_in_one_namespace(execute):
    draws = "import matplotlib.pyplot as plt\nplt.figure()\nprint(x + 1)"
    page = f"# A page\n\n{block('python', 'x = 2')}\nWords.\n\n{block('python', draws)}"
    first, second = execute.execute(page)
    assert first == {"said": "", "pictures": []}
    assert second["said"] == "3\n"
    assert second["pictures"][0].startswith("<svg")


def test_shells_and_settings_count_too(execute):
    settings = block("toml", '[data]\nfiles = "a.csv"\nstates = ["x"]')
    said, nothing = execute.execute(block("bash", "echo one\necho two") + settings)
    assert said["said"] == "one\ntwo\n"
    assert nothing["said"] == ""


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (block("python", "1 / 0"), ZeroDivisionError),
        (block("bash", "false\necho later"), Exception),
        (block("toml", "[train]\nepoch = 3"), InputError),
        ("    hybridsde fits mine.toml --out run\n", Exception),
        ("Say `hybridsde fit mine.toml --outt run`.\n", Exception),
    ],
)
def test_what_fails_ends_the_build(execute, page, error):
    expected = execute.Failed if error is Exception else error
    with pytest.raises(expected):
        execute.execute(page)


def test_commands_that_are_shown_exist(execute):
    execute.check_command("hybridsde fit mine.toml --out run --resume   # goes on")
    execute.check_command("hybridsde reproduce lorenz --quick")
