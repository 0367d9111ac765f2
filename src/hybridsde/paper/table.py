"""Rows of a reproduced table, and the folder that remembers the finished ones."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student_t

from hybridsde._errors import InputError
from hybridsde._files import write_whole
from hybridsde._types import Array, Float


class RowKey(NamedTuple):
    """What must agree for a finished row to be used again."""

    known: str
    method: str
    preset: str
    protocol: str
    repetitions: int
    seed: int
    settings: str
    """A fingerprint of everything else, so that no row outlives a change of its preset."""


def fingerprint(*settings: object) -> str:
    """Eight hexadecimal digits that change with the settings."""
    return hashlib.sha256(repr(settings).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Row:
    """Scores of one method over its repetitions; NaN where it was timed and not scored."""

    known: str
    method: str
    preset: str
    protocol: str
    repetitions: int
    seed: int
    settings: str
    mse_mean: float = math.nan
    mse_se: float = math.nan
    mse_sd: float = math.nan
    mse_median: float = math.nan
    mse_low: float = math.nan
    mse_high: float = math.nan
    """Ends of the 95 % interval of the mean, by Student's t."""
    mse_sample_mean: float = math.nan
    """Of the MSE of single paths."""
    mse_all_mean: float = math.nan
    """With the rows that are given, where several are."""
    nll_mean: float = math.nan
    crps_mean: float = math.nan
    coverage90_mean: float = math.nan
    validation_mse: float = math.nan
    validation_coverage90: float = math.nan
    left_out_mse: float = math.nan
    left_out_coverage90: float = math.nan
    """Of training sequences that were left out of a fit one by one, where that was done."""
    mse_each: tuple[float, ...] = ()
    """Of every repetition."""
    published_mse: float | None = None
    published_sd: float | None = None
    published_se: float | None = None
    diverged: int = 0
    """Repetitions stopped early because they diverged; they are scored like the others."""
    seconds: float = math.nan

    @property
    def key(self) -> RowKey:
        """The first fields, which say what was computed."""
        return RowKey(*(getattr(self, name) for name in RowKey._fields))


def summarise(
    scores: Mapping[str, Float[Array, "seed column"]],
) -> dict[str, Any]:
    """Mean, spread, median and interval over repetitions, all states pooled."""
    overall = {name: np.asarray(column, float)[:, -1] for name, column in scores.items()}
    mse = overall["mse"]
    mean = float(mse.mean())
    sd = float(mse.std(ddof=1)) if len(mse) > 1 else math.nan
    se = sd / math.sqrt(len(mse))
    reach = se * float(student_t.ppf(0.975, max(1, len(mse) - 1)))
    return {
        "mse_mean": mean,
        "mse_se": se,
        "mse_sd": sd,
        "mse_median": float(np.median(mse)),
        "mse_low": mean - reach,
        "mse_high": mean + reach,
        "mse_sample_mean": float(overall["mse_sample"].mean()),
        "mse_each": tuple(float(one) for one in mse),
        "nll_mean": float(overall["nll"].mean()),
        "crps_mean": float(overall["crps"].mean()),
        "coverage90_mean": float(overall["coverage90"].mean()),
    }


class Results:
    """`results.json`, `results.csv` and `results.md` in a folder, rewritten after every row.

    Files are replaced whole, so an interrupted run loses at most the row it was working on.
    """

    def __init__(
        self,
        folder: Path,
        title: str,
        notes: str,
        table: Callable[[list[Row]], list[str]] | None = None,
    ):
        self._folder = folder
        self._title, self._notes = title, notes
        self._table = table or score_table
        folder.mkdir(parents=True, exist_ok=True)
        self.rows, self.extra = saved(folder)

    def get(self, key: RowKey, compute: Callable[[], Row]) -> Row:
        """The finished row with this key, or a new one, which is saved."""
        for row in self.rows:
            if row.key == key:
                return row
        row = compute()
        self.rows = [old for old in self.rows if old.key[:-1] != key[:-1]] + [row]
        self.save()
        return row

    def save(self) -> None:
        """Write all three files."""
        rows = [plain_row(row) for row in self.rows]
        write_whole(
            self._folder / "results.json", json.dumps({"rows": rows, **self.extra}, indent=2)
        )
        frame = pd.DataFrame(rows)
        write_whole(self._folder / "results.csv", frame.to_csv(index=False))
        write_whole(self._folder / "results.md", self.markdown())

    def markdown(self) -> str:
        """The rows as a table, and what explains them."""
        extra = [f"- {name.replace('_', ' ')}: {value:.4g}" for name, value in self.extra.items()]
        table = self._table(self.rows)
        return "\n".join([f"# {self._title}", "", *table, "", *extra, "", self._notes, ""])


def saved(folder: Path) -> tuple[list[Row], dict[str, float]]:
    """Finished rows in a folder, and numbers beside them; rows with columns that are not known are
    left out.

    An `InputError` where its `results.json` cannot be read.
    """
    path = folder / "results.json"
    if not path.exists():
        return [], {}
    names = {field.name for field in fields(Row)}
    try:
        found = json.loads(path.read_text())
        rows = [row_of(row) for row in found["rows"] if set(row) <= names]
        return rows, {name: value for name, value in found.items() if name != "rows"}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a table of results ({error}). Move it away or choose another folder."
        ) from None


def score_table(rows: list[Row]) -> list[str]:
    """Measured scores beside the published MSE, as lines of Markdown."""
    header = (
        "| known | method | preset | protocol | published ± s.e. | MSE ± s.e. | sd | median | "
        "NLL | CRPS | 90 % coverage | n |"
    )
    lines = [header, "|---" * 12 + "|"]
    several = len({r.seed for r in rows}) > 1
    for r in rows:
        protocol = f"{r.protocol}, seed {r.seed}" if several else r.protocol
        lines.append(
            f"| {r.known} | {r.method} | {r.preset} | {protocol} | {published(r)} | "
            f"{r.mse_mean:.3g} ± {r.mse_se:.2g} | {r.mse_sd:.2g} | {r.mse_median:.3g} | "
            f"{r.nll_mean:.3g} | {r.crps_mean:.3g} | {r.coverage90_mean:.2f} | {r.repetitions} |"
        )
    return lines


def published(row: Row) -> str:
    """The published MSE with its standard error, where there are any."""
    if row.published_mse is None:
        return "–"
    error = "" if row.published_se is None else f" ± {row.published_se:.2f}"
    return f"{row.published_mse:.2f}{error}"


def plain_row(row: Row) -> dict[str, Any]:
    """As JSON, which has no NaN."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [plain(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: plain(value) for name, value in asdict(row).items()}


def row_of(content: Mapping[str, Any]) -> Row:
    """What `plain_row` wrote; only the published numbers may be absent."""

    def number(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(number(one) for one in value)
        return math.nan if value is None else value

    return Row(
        **{
            name: value if name.startswith("published") else number(value)
            for name, value in content.items()
        }
    )
