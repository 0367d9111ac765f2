"""What a fit and its scores look like in a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pandas as pd
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from hybridsde.fit import Callback
from hybridsde.fit import Progress as FitProgress


class FitProgressBars:
    """Hands out callbacks that draw one bar per fit, and one for the whole where it is known."""

    def __init__(self, bars: Progress, whole: TaskID | None):
        self._bars, self._whole = bars, whole

    def __call__(self, name: str) -> tuple[Callback, ...]:
        """The callbacks of the fit called `name`."""
        task = self._bars.add_task(name, total=None, loss="compiling")

        def report(progress: FitProgress) -> None:
            loss = f"loss {float(progress.terms['loss'].mean()):.4g}"
            self._bars.update(task, completed=progress.epoch, total=progress.epochs, loss=loss)
            if self._whole is not None:
                self._bars.advance(self._whole)

        return (report,)


def _bar() -> tuple[ProgressColumn, ...]:
    """How much is done, and the time that is left."""
    return (
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
    )


@contextmanager
def fit_progress(console: Console, epochs: int | None = None) -> Iterator[FitProgressBars]:
    """Bars with loss and the time that is left; `epochs` is the sum over all fits, if known."""
    columns = (
        TextColumn("[bold]{task.description}"),
        *_bar(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console) as bars:
        whole = None if epochs is None else bars.add_task("everything", total=epochs, loss="")
        yield FitProgressBars(bars, whole)


@contextmanager
def counted(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """One bar for a known number of tasks; call it with the name of each as it begins."""
    columns = (*_bar(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bars:
        task = bars.add_task("", total=total)
        begun = 0

        def tick(name: str) -> None:
            nonlocal begun
            bars.update(task, completed=begun, description=name)
            begun += 1

        yield tick
        bars.update(task, completed=total, description="")


def frame_table(frame: pd.DataFrame, title: str) -> Table:
    """Numbers with three significant digits; a dash where one does not apply; words as they are."""
    table = Table(title=title)
    table.add_column(str(frame.index.name or ""))
    for name in frame.columns:
        table.add_column(str(name), justify="right")
    for name, row in frame.iterrows():
        cells = [v if isinstance(v, str) else "–" if pd.isna(v) else f"{v:.3g}" for v in row]
        table.add_row(str(name), *cells)
    return table
