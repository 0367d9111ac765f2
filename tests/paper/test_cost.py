"""The cost table: what is timed, and what is made of the times."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hybridsde.__main__ import app
from hybridsde.paper import cost
from hybridsde.paper.cost import METHOD_SETTINGS, SWEEPS, Setting, gradient, slope


@pytest.mark.parametrize("power", [1.0, 2.5])
def test_the_slope_of_a_power_is_its_exponent(power):
    sizes = np.array([2, 4, 8, 16, 32])
    times = pd.Series(3e-3 * sizes**power, index=sizes)
    np.testing.assert_allclose(slope(times), power)


def test_the_slope_is_that_of_the_large_sizes():
    sizes = np.array([1, 10, 1000, 10_000, 100_000])
    times = pd.Series(5.0 + sizes**2.0, index=sizes)
    np.testing.assert_allclose(slope(times), 2.0, atol=1e-3)
    assert np.isnan(slope(times.iloc[:1]))


@pytest.mark.slow
@pytest.mark.parametrize("diffusion", ["diagonal", "constant", "function"])
def test_what_is_timed_is_a_gradient(diffusion):
    setting = Setting(samples=2, length=3, width=4, states=5, diffusion=diffusion)
    run, parameters = gradient(setting, seed=0)
    leaves = jax.tree.leaves(run(parameters, jr.key(0)))
    assert all(jnp.isfinite(leaf).all() for leaf in leaves)
    assert any(jnp.abs(leaf).max() > 0 for leaf in leaves)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["D-BNN (SGLD)", "D-BNN (VI)"])
def test_the_learners_that_the_paper_compares_with_are_timed(method):
    """The sampler moves its weights alone, variational inference their spreads too."""
    setting = replace(METHOD_SETTINGS[method][0], samples=2, length=3, width=4)
    run, parameters = gradient(setting, seed=0)
    posterior = run(parameters, jr.key(0)).network.posterior
    moved = [
        any((leaf != 0).any() for leaf in jax.tree.leaves(part))
        for part in (posterior.mean, posterior.log_sd)
    ]
    assert moved == [True, method == "D-BNN (VI)"]


def test_every_row_of_the_paper_is_timed():
    assert set(METHOD_SETTINGS) >= {
        "D-BNN (SGLD)",
        "D-BNN (VI)",
        "E-Bayes",
        "E-PAC-Bayes",
        "E-Bayes-Hybrid",
        "E-PAC-Bayes-Hybrid",
    }
    assert METHOD_SETTINGS["E-PAC-Bayes-Hybrid"][0].known == "all"
    assert len(cost.settings(quick=False)) == 5 * len(SWEEPS) + len(METHOD_SETTINGS)


def test_reproduce_cost_writes_slopes_and_reuses_rows(tmp_path, monkeypatch):
    """Made-up times: a power of each size, so the slopes are known."""

    def made_up(settings: dict[str, Setting], **rest) -> dict[str, float]:
        sizes = {
            name: one.samples * one.length * one.width**2 * one.states
            for name, one in settings.items()
        }
        return {name: 1e-6 * size for name, size in sizes.items()}

    monkeypatch.setattr(cost, "shortest", made_up)
    command = ["reproduce", "cost", "--quick", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert len(rows) == len(cost.settings(quick=True))
    assert {"known", "method", "preset", "protocol", "mse_mean", "published_mse"} <= set(rows[0])
    assert rows[0]["mse_mean"] is None
    table = (tmp_path / "results.md").read_text()
    assert "| width (width) | 50, 100 |" in table
    assert "| 2.00 | 2 |" in table
    assert (tmp_path / "cost.png").stat().st_size > 10_000
    monkeypatch.setattr(cost, "shortest", None)
    assert CliRunner().invoke(app, command).exit_code == 0


@pytest.mark.parametrize("broken", ['{"rows": [', "[]", '{"rows": 3}', "{}"])
@pytest.mark.parametrize("command", ["lorenz", "lotka-volterra", "cost"])
def test_a_broken_table_is_named_and_left_alone(command, broken, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(broken)
    result = CliRunner().invoke(app, ["reproduce", command, "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output.startswith("error: ")
    assert str(path) in result.output
    assert result.output.count("\n") == 1
    assert path.read_text() == broken
