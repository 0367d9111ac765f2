"""Tasks on Ray: a local one that is started for the job, or a cluster by its address."""

import os
import pickle
import platform
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax

from hybridsde._cache import compile_quickly, keep_compiled
from hybridsde._errors import InputError
from hybridsde.engine.executor import AbstractExecutor, Done, perform
from hybridsde.engine.ledger import Ledger
from hybridsde.engine.local import devices
from hybridsde.engine.task import AbstractJob, Perform, Task

RETRIES = 4
"""How often a task is begun again whose worker died or ran out of memory."""
AHEAD = 2
"""Tasks in flight for each place: the next one is there when one ends."""
STORE = 80 * 2**20
"""Bytes of the object store of a local Ray. Nothing large travels: workers read data themselves."""
QUIET = {"RAY_DISABLE_DOCKER_CPU_WARNING": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class RayExecutor(AbstractExecutor):
    """Ray workers, one task on each core; a task that loses its worker is begun again.

    Workers read the data and write the ledger themselves. The driver holds names and counts.
    """

    def __init__(self, address: str | None = None, workers: int | None = None, devices: int = 1):
        """`devices` are those that a worker without accelerators makes of its core.

        They are those of the job, so that fits are spread as they were elsewhere.
        """
        self._ray = _ray()
        self._devices = devices
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address is None:
            local = {"num_cpus": workers or cores(), "object_store_memory": STORE}
            with warnings.catch_warnings():
                # Processes are started, not forked to go on here: threads of JAX do no harm.
                warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
                context = self._ray.init(address="local", include_dashboard=None, **local, **quiet)
        else:
            context = _connected(self._ray, address, quiet)
        self._dashboard = context.dashboard_url or None
        places = int(self._ray.cluster_resources().get("CPU", 1))
        self._places = min(places, workers) if workers else places

    @property
    def description(self) -> str:
        """With its places and the dashboard, where there is one."""
        where = f", dashboard at http://{self._dashboard}" if self._dashboard else ""
        return f"Ray with {self._places} workers{where}"

    def do(self, job: AbstractJob, tasks: Sequence[Task], ledger: Ledger) -> Iterator[Done]:
        """As many at a time as there are places, and a few more that wait for one."""
        ray = self._ray
        # A worker that dies takes its task with it; Ray begins it again elsewhere.
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
        # As bytes: what the job needs is imported after JAX is set up in the worker.
        packed = pickle.dumps(job)
        shared = ray.put((packed, str(ledger.folder.resolve()), ledger.mark, self._devices))
        waiting, running = iter(tasks), {}
        limit = AHEAD * self._places
        while True:
            while len(running) < limit and (task := next(waiting, None)) is not None:
                running[remote.remote(shared, task)] = task
            if not running:
                return
            ready, _ = ray.wait(list(running), num_returns=1)
            for one in ready:
                yield _done(ray, one, running.pop(one))

    def close(self) -> None:
        """Stop a local Ray, or leave the cluster."""
        self._ray.shutdown()


def _done(ray: Any, reference: Any, task: Task) -> Done:
    """What became of a task. An exception that it raised, or too many dead workers, lose it."""
    try:
        fits, failures, worker = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        return Done(task, lost=f"{type(cause).__name__}: {cause}")
    except ray.exceptions.RayError as error:
        line = str(error).strip().splitlines()[0]
        return Done(task, lost=f"{type(error).__name__}: {line[:200]}")
    return Done(task, fits, failures, worker=worker)


_opened: dict[str, Perform] = {}
"""The job that this worker has read, by its mark."""


def work(shared: tuple[bytes, str, str, int], task: Task) -> tuple[int, int, str]:
    """One task in a worker: how many fits, how many came to nothing, and who it was."""
    packed, folder, mark, count = shared
    if mark not in _opened:
        prepare_worker(count)
        _opened.clear()
        _opened[mark] = pickle.loads(packed).open()
    ledger = Ledger.join(Path(folder), mark)
    outcome = perform(_opened[mark], task, ledger)
    who = f"worker {os.getpid()} on {platform.node()}: {devices()}"
    return len(outcome.rows), outcome.failures, who


def prepare_worker(count: int) -> None:
    """Settings of JAX that must come before its first computation.

    One thread, since workers share the cores; as many CPU devices as the job was begun with; and
    the folder of compiled programs that all processes share.
    """
    os.environ.setdefault("NPROC", "1")  # read by XLA for its pools of threads
    compile_quickly()
    keep_compiled()
    if getattr(jax.config, "jax_num_cpu_devices", -1) < 1:
        jax.config.update("jax_num_cpu_devices", count)


def cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InputError(
            "The engine 'ray' needs Ray. Install it with: pip install 'hybridsde[ray]'"
        ) from None
    return ray


def _connected(ray: Any, address: str, quiet: dict[str, Any]) -> Any:
    try:
        return ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        line = str(error).strip().splitlines()[0]
        raise InputError(f"There is no Ray at {address!r}: {line[:200]}") from None
