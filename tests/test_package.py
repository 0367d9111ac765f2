"""Promises about the package as a whole."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import hybridsde
from hybridsde.__main__ import app


@pytest.mark.slow
def test_importing_changes_no_jax_setting():
    code = (
        "import jax; before = dict(jax.config.values); import hybridsde; "
        "assert dict(jax.config.values) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_importing_loads_no_terminal_and_no_pictures():
    code = (
        "import sys, hybridsde; "
        "assert not {'matplotlib', 'typer', 'rich'} & set(sys.modules), 'edge imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version_is_the_packages():
    from importlib.metadata import version

    assert version("hybridsde") == hybridsde.__version__
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == hybridsde.__version__


def test_help_names_the_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
