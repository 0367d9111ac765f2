import gc
import itertools
import os
from pathlib import Path

import jax
import jax.random as jr
import matplotlib as mpl
import pytest

mpl.use("agg")

# Compilation takes most of the time here; what is computed does not change.
FLAGS = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
if jax.__version_info__[:2] == (0, 10):  # a flag that a version does not know ends the process
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))

# Tests leave the user's cache alone.
os.environ["HYBRIDSDE_CACHE"] = "off"

# Two devices, as on a machine with two cores, so that the tests take the paths users take.
jax.config.update("jax_num_cpu_devices", 2)

LONGEST = (
    "baselines", "paper", "test_objective.py", "test_langevin.py", "test_langevin_runs.py",
    "test_latent.py", "test_rollout.py", "test_weight_gradient.py", "test_bayesian.py",
    "test_devices.py",
)  # fmt: skip
"""Folders and modules whose slow tests are in the longest lane: they change rarely, and take
minutes."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Before lanes are chosen."""
    for item in items:
        if item.get_closest_marker("slow") and not set(LONGEST).isdisjoint(item.path.parts):
            item.add_marker(pytest.mark.long)


OWN = {"data", "physics", "model", "simulate", "objective", "forecast"}
"""Folders whose tests run no code of optax, which relies on implicit promotion."""


@pytest.fixture(autouse=True)
def strict_promotion(request):
    """No implicit change of type in our own arithmetic."""
    mode = "strict" if request.path.parent.name in OWN else "standard"
    with jax.numpy_dtype_promotion(mode):
        yield


MOST_MAPS = 25_000
"""Memory maps of a process after which its compiled programs are forgotten; 65530 are allowed."""
gc.set_threshold(50_000, 20, 100)  # traced programs are many small objects that live long


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs go before they take all the memory maps that a process may have.

    Each holds some; a worker that keeps the programs of all modules runs out of them, and the
    compiler crashes.
    """
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_text().count("\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def getkey():
    """Keys that differ within a test and repeat from run to run."""
    counter = itertools.count()
    return lambda: jr.fold_in(jr.key(2021), next(counter))
