"""Where many fits are done, and a bar that shows how far they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from hybridsde._errors import InputError
from hybridsde.engine import AbstractExecutor, LocalExecutor, Progress, RayExecutor
from hybridsde.engine.executor import Report
from hybridsde.engine.ledger import devices_of

LOCAL, RAY = "local", "ray"


def settle_devices(out: Path) -> int:
    """As many CPU devices as the job of a folder was begun with, or those that there are.

    Must come before the first computation: fits are spread over devices, and the last digits
    depend on how many share one.
    """
    import jax

    begun, here = devices_of(out), max(1, getattr(jax.config, "jax_num_cpu_devices", 1))
    if begun is None or begun == here:
        return here
    try:
        jax.config.update("jax_num_cpu_devices", begun)
    except RuntimeError:  # something was computed already
        return here
    return begun


@contextmanager
def executor_of(
    engine: str, address: str | None, workers: int | None, devices: int
) -> Iterator[AbstractExecutor]:
    """The engine that was asked for, closed in the end."""
    if engine not in (LOCAL, RAY):
        raise InputError(f"There is no engine {engine!r}. Choose {LOCAL} or {RAY}.")
    if engine == LOCAL and (address or workers):
        raise InputError("--address and --workers go with --engine ray.")
    found = LocalExecutor() if engine == LOCAL else RayExecutor(address, workers, devices)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def job_progress(console: Console, name: str) -> Iterator[Report]:
    """One bar: tasks, fits per second, failures and the time that is left."""
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Bars(*columns, console=console) as bars:
        bar = bars.add_task(name, total=None, told="")
        said: set[str] = set()

        def report(progress: Progress) -> None:
            for line in progress.news:
                if line not in said:
                    console.print(line, soft_wrap=True, highlight=False, markup=False)
                said.add(line)
            done = progress.done + progress.lost
            bars.update(bar, completed=done, total=progress.of, told=told(progress))

        yield report


def told(progress: Progress) -> str:
    """Rate, failures and the time that is left."""
    parts = [f"{progress.rate:.3g} fits/s"] if progress.fits else []
    parts += [f"{progress.failures} failed"] if progress.failures else []
    parts += [f"{progress.lost} tasks lost"] if progress.lost else []
    if progress.left is not None:
        minutes, seconds = divmod(round(progress.left), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    return ", ".join(parts)
