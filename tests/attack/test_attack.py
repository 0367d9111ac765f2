"""Hostile input, a little of everything; `make attack` goes on for longer."""

import attacks
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**63)
QUICK = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(SEEDS)
@settings(QUICK, max_examples=500)
def test_equations_are_read_or_refused(seed):
    attacks.equation(seed)


@given(SEEDS)
@settings(QUICK, max_examples=120)
def test_tables_are_read_or_refused(tmp_path, seed):
    attacks.table(seed, tmp_path)


@pytest.mark.parametrize("seed", [109, 14664, 1000631])
def test_tables_that_once_went_wrong(tmp_path, seed):
    attacks.table(seed, tmp_path)


@given(SEEDS)
@settings(QUICK, max_examples=200)
def test_settings_make_a_model_or_are_refused(tmp_path, seed):
    attacks.settings(seed, tmp_path)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    return attacks.write_run(tmp_path_factory.mktemp("attacked") / "run")


@given(SEEDS)
@settings(QUICK, max_examples=30)
def test_tampered_folders_are_loaded_or_refused(run_folder, tmp_path, seed):
    attacks.folder(seed, run_folder, tmp_path)
