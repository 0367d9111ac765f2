"""A run on disk: everything needed to forecast again, and nothing that can be executed."""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pandas as pd
from safetensors.numpy import save

from hybridsde._errors import InputError
from hybridsde._files import make_folder, write_whole
from hybridsde.fit.checkpoint import fill, named_arrays, read_arrays
from hybridsde.model import BayesianSDE, HybridSDE, SampledNetworks
from hybridsde.run.declaration import PHYSICS_FILE, blank_batch, declare, physics_source, rebuild
from hybridsde.simulate import AbstractSolver, EulerMaruyama, Heun

FORMAT = 1
NETWORKS = "networks"
"""How many networks a sampler kept, where one did."""
RUN, WEIGHTS, HISTORY = "run.json", "weights.safetensors", "history.csv"
CHECKPOINT, UNFINISHED = "checkpoint", "unfinished"
NEEDED = ("model", "solver", "weights_sha256", "diverged", "seed", "versions")
VERSIONS = ("hybridsde", "jax", "equinox", "optax", "numpy")


def fingerprint(*parts: Any) -> str:
    """One hash of anything that can be written as JSON."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def save_run(
    folder: Path,
    declared: HybridSDE,
    model: BayesianSDE,
    history: pd.DataFrame,
    facts: Mapping[str, Any],
) -> None:
    """Write a run; `run.json` comes last, so a folder that has it is complete."""
    declaration = declare(declared)
    make_folder(folder)
    source = physics_source(declared)
    if source and source.resolve() != (folder / PHYSICS_FILE).resolve():
        write_whole(folder / PHYSICS_FILE, source.read_bytes())
    weights = save(named_arrays(model))
    write_whole(folder / WEIGHTS, weights)
    write_whole(folder / HISTORY, history.to_csv())
    content = {
        "format": FORMAT,
        **_kept_networks(model),
        "model": declaration,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "versions": {name: version(name) for name in VERSIONS}
        | {"python": platform.python_version()},
        **facts,
    }
    write_whole(folder / RUN, json.dumps(content, indent=1) + "\n")


def read_facts(folder: Path) -> dict[str, Any]:
    """What `run.json` says; an `InputError` where it is not a complete run of this format."""
    path = folder / RUN
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}. `hybridsde fit` writes one.")
    if not path.exists():
        begun = any((folder / name).exists() for name in (CHECKPOINT, UNFINISHED))
        remedy = (
            "The fit was not finished: repeat `hybridsde fit` with --resume."
            if begun
            else "It is not the folder of a run."
        )
        raise InputError(f"{folder} has no {RUN}. {remedy}")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        written = facts["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}). Fit again.") from None
    if written != FORMAT:
        raise InputError(
            f"{folder} has format {written}, this version of hybridsde reads format {FORMAT}. It "
            f"was written by version {facts.get('versions', {}).get('hybridsde', 'unknown')}."
        )
    return facts


def load_run(
    folder: Path, *, trust: bool
) -> tuple[HybridSDE, BayesianSDE, pd.DataFrame, dict[str, Any]]:
    """Read a run back: the declared model, the trained one, the history and all other facts."""
    facts = read_facts(folder)
    lacking = [name for name in NEEDED if name not in facts]
    if lacking:
        raise InputError(f"{folder / RUN} is damaged: it lacks {lacking[0]!r}. Fit again.")
    path = folder / WEIGHTS
    if not path.exists():
        raise InputError(f"{folder} has no {WEIGHTS}. Fit again.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != facts["weights_sha256"]:
        raise InputError(f"{path} was changed or cut short after it was written. Fit again.")
    try:
        declared = rebuild(facts["model"], folder, trust=trust)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{folder / RUN} is damaged ({error}). Fit again.") from None
    arrays, _ = read_arrays(path)
    networks = facts.get(NETWORKS, 0)
    whole = isinstance(networks, int) and not isinstance(networks, bool) and networks >= 0
    if not whole or (networks and declared.hidden is None):
        raise InputError(f"{folder / RUN} is damaged: {NETWORKS!r} is {networks!r}. Fit again.")
    model = fill(_untrained(declared, networks), arrays, path)
    try:
        history = pd.read_csv(folder / HISTORY, index_col="epoch")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / HISTORY} cannot be read: {error}.") from None
    return declared, model, history, facts


def _kept_networks(model: BayesianSDE) -> dict[str, int]:
    network = model.network
    return {NETWORKS: network.count} if isinstance(network, SampledNetworks) else {}


def _untrained(declared: HybridSDE, networks: int) -> BayesianSDE:
    """A model of the right structure; its numbers are of no account."""
    batch = blank_batch(declared)

    def build(key) -> BayesianSDE:
        model = declared.init(batch, key=key)
        if not networks:
            return model
        samples = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (networks, *leaf.shape)), model.network.mean()
        )
        return model.with_networks(SampledNetworks(samples))

    return eqx.filter_eval_shape(build, jr.key(0))


SOLVERS = {solver.__name__: solver for solver in (EulerMaruyama, Heun)}


def solver_facts(solver: AbstractSolver) -> dict[str, Any]:
    """A solver as plain data."""
    if type(solver).__name__ not in SOLVERS:
        raise InputError(f"A run with the solver {type(solver).__name__} cannot be saved.")
    return {"name": type(solver).__name__, "substeps": solver.substeps}


def rebuild_solver(facts: Mapping[str, Any]) -> AbstractSolver:
    """The inverse of `solver_facts`."""
    if facts["name"] not in SOLVERS:
        raise InputError(
            f"The run uses the solver {facts['name']!r}, which this version does not know."
        )
    return SOLVERS[facts["name"]](substeps=facts["substeps"])
