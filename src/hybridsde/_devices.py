"""Spread repetitions, samples and series over all devices of this machine."""

import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.sharding import Mesh, PartitionSpec

from hybridsde._types import Array, Key, PyTree, UInt32


def use_all_cores() -> None:
    """Let JAX see every CPU core as a device, so that repetitions are spread over them.

    Must be called before the first computation; later, and where the number of devices has been
    set already, nothing changes. A GPU is not affected.
    """
    forced = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if forced or getattr(jax.config, "jax_num_cpu_devices", -1) > 0:
        return
    try:
        jax.config.update("jax_num_cpu_devices", _cores())
    except RuntimeError:
        return


def _cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def on_processor() -> bool:
    """Whether computations run on the processor, and not on a GPU."""
    return jax.default_backend() == "cpu"


def join_processes(coordinator: str, count: int, number: int) -> None:
    """Let `count` processes, here or on other machines, share the work of one fit.

    All of them run the same program on the same data; `number` is which of them this one is, from
    0 on, and 0 listens at `coordinator`, as host:port. Must come before the first computation.
    """
    jax.distributed.initialize(coordinator, count, number)


AXIS = "device"
PATHS_PER_DEVICE = 128
"""Fewer paths than this for each device are simulated on one: moving them would cost more."""

_inside = ContextVar("inside", default=False)
"""Whether the code being traced already runs as one share of several."""


def over_paths(
    function: Callable,
    model: PyTree,
    batch: PyTree,
    weight_keys: Key[Array, " sample"],
    calls: UInt32[Array, "sample series"],
    numbers: UInt32[Array, "sample path series"],
) -> PyTree:
    """Split samples over all devices, or else series, where there are paths enough.

    The devices are those of all processes that `join_processes` has brought together.
    Only what is being compiled is split, and only where the number of devices divides that of
    samples or series. `function` maps its share to arrays that begin with the axes sample × path
    and series. Results do not depend on the number of devices.
    """
    samples, _, series = numbers.shape
    devices = jax.device_count()
    compiled = isinstance(weight_keys, Tracer)
    enough = devices > 1 and numbers.size >= devices * PATHS_PER_DEVICE
    spread = enough and compiled and not _inside.get()
    whole = PartitionSpec()
    first, second, third = (PartitionSpec(*(None,) * axis, AXIS) for axis in range(3))
    if spread and samples % devices == 0:
        specs, out = (whole, whole, first, first, first), first
    elif spread and series % devices == 0:
        specs, out = (whole, first, whole, second, third), second
    else:
        return function(model, batch, weight_keys, calls, numbers)
    arrays, static = eqx.partition(model, eqx.is_array)

    def share(arrays: PyTree, *rest: PyTree) -> PyTree:
        return function(eqx.combine(arrays, static), *rest)

    found = jax.devices()
    return _shard(share, specs, out, found)(arrays, batch, weight_keys, calls, numbers)


def _shard(function: Callable, specs: Any, out: PartitionSpec, devices: list) -> Callable:
    mesh = Mesh(np.array(devices), (AXIS,))

    def share(*args: PyTree) -> PyTree:
        token = _inside.set(True)
        try:
            return function(*args)
        finally:
            _inside.reset(token)

    return jax.shard_map(share, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False)


def same_for_seeds(tree: PyTree, count: int) -> PyTree:
    """The same arrays for each of `count` repetitions."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), tree)


def repetitions(tree: PyTree) -> int:
    """The length of the leading axis that all arrays share."""
    return len(jax.tree.leaves(eqx.filter(tree, eqx.is_array))[0])


def over_seeds(function: Callable, *args: PyTree, one_by_one: bool = False) -> PyTree:
    """Map a function over the leading axis of every array in its arguments, on all devices.

    A device takes its share side by side, or `one_by_one` where a single repetition fills it.
    To be compiled by the caller. Results do not depend on the number of devices.
    """
    arrays, static = eqx.partition(args, eqx.is_array)
    count = repetitions(arrays)
    devices = jax.local_device_count() if count > 1 else 1
    fill = np.minimum(np.arange(-(-count // devices) * devices), count - 1)

    def one(arrays: PyTree) -> PyTree:
        return function(*eqx.combine(arrays, static))

    def share(arrays: PyTree) -> PyTree:
        return lax.map(one, arrays) if one_by_one else jax.vmap(one)(arrays)

    if devices == 1:
        return share(arrays)
    if len(fill) != count:
        arrays = jax.tree.map(lambda leaf: leaf[fill], arrays)
    spec = PartitionSpec(AXIS)
    result = _shard(share, spec, spec, jax.local_devices())(arrays)
    return result if len(fill) == count else jax.tree.map(lambda leaf: leaf[:count], result)
