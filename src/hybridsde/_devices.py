"""Spread independent repetitions over all devices of this machine."""

import os
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from hybridsde._types import PyTree


def use_all_cores() -> None:
    """Let JAX see every CPU core as a device, so that repetitions are spread over them.

    Must be called before the first computation; later, and where the number of devices is set
    in the environment, nothing changes. A GPU is not affected.
    """
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    try:
        jax.config.update("jax_num_cpu_devices", _cores())
    except RuntimeError:
        return


def _cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shards(count: int) -> int:
    """Over how many devices `count` repetitions are spread."""
    return max(1, min(jax.local_device_count(), count))


def over_seeds(function: Callable, *args: PyTree, one_by_one: bool = False) -> PyTree:
    """Map a function over the leading axis of every array in its arguments, on all devices.

    A device takes its share side by side, or `one_by_one` where a single repetition fills it.
    To be compiled by the caller. Results do not depend on the number of devices.
    """
    arrays, static = eqx.partition(args, eqx.is_array)
    count = len(jax.tree.leaves(arrays)[0])
    devices = shards(count)
    fill = np.minimum(np.arange(-(-count // devices) * devices), count - 1)

    def one(arrays: PyTree) -> PyTree:
        return function(*eqx.combine(arrays, static))

    def share(arrays: PyTree) -> PyTree:
        return lax.map(one, arrays) if one_by_one else jax.vmap(one)(arrays)

    if devices == 1:
        return share(arrays)
    if len(fill) != count:
        arrays = jax.tree.map(lambda leaf: leaf[fill], arrays)
    mesh = Mesh(np.array(jax.local_devices()[:devices]), ("seed",))
    spec = PartitionSpec("seed")
    result = jax.shard_map(share, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(arrays)
    return result if len(fill) == count else jax.tree.map(lambda leaf: leaf[:count], result)
