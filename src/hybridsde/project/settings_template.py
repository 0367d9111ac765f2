"""A commented settings file from a first look at a table."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import read_text
from hybridsde.data import raw_table
from hybridsde.data.parsing import as_numbers
from hybridsde.project.guessing import check_cells, counts, increases, jumps, usual_unit, varies

TIMES = (
    "t", "time", "day", "days", "date", "datetime", "timestamp", "hour", "year", "seconds", "ds",
)  # fmt: skip
IDS = (
    "id", "run", "experiment", "trajectory", "series", "subject", "trial", "batch", "unit",
    "unique_id",
)  # fmt: skip
LONG_FRAME = ("unique_id", "ds", "y")
"""Columns of a table as forecasting libraries write it; others drive the system."""
INPUTS = ("u", "input", "control", "dose", "command", "setpoint", "inflow")

TEMPLATE = """\
# Settings for hybridsde. Check them with:  hybridsde check {name}
# Lines that begin with # are not used; most of what they say is the default.

[data]
files = {files}            # a name, or several with * and ?
{id}
time = {time}
{unit}
states = {states}            # what changes in time and is to be forecast
{inputs}
{long}{separator}
# hidden_states = []         # states that exist but are never measured
# positive = []              # states that cannot be zero or less, modelled by their logarithm
# bounds = {{ {first} = [0, 10] }}  # limits that a state cannot pass; inf where there is none
# saturates = {{ {first} = [0, 10] }}  # limits of its sensor, where the state goes on beyond
# test = 0.2                 # share of trajectories kept for scores, or their names: ["run7"], or
                             # a period of all: {{ start = 100.0 }}
# validation = 0.15          # of the others, to choose the epoch; likewise

# [start]                    # where states begin that are not measured
# x = "infer"                # or a number, a range [0, 10], or a column that holds it, like "dose"

[physics]
# Write the equations that you know, and only those; the rest is learned. Allowed are + - * / ^,
# brackets, states, inputs, parameters, t, pi and sin cos tan exp log sqrt abs tanh min max sign.
# Without any equation the model is a black box.
# equations = ["d{first} = -rate*{first}"]
# exact = []                 # states whose equation is complete: nothing is added to it

# [physics.parameters]
# rate = 0.5                                             # held at this value
# rate = {{ value = 0.5, learn = true, low = 0.1, high = 2.0 }}   # or learned within bounds

# [model]
# preset = "paper"           # the method of Haussmann et al. 2021 as it was published, nothing else
# learned = "auto"           # a "library" of terms, a "process", a "network", or what fits better
# terms = ["{first}/(1 + {first})"]   # of your own, in the library
# hidden = [50, 50]          # layers of the network; [] for physics alone
# diffusion = "learn"        # noise of the dynamics, or a number per state
# noise = "learn"            # standard deviation of a measurement, or a number per state

# [train]
# objective = "pac-bayes"    # or "bayes", of networks
# seed = 0
"""


MOSTLY = 0.5
"""Of the cells of a column: fewer are not what was measured."""
MOST_QUANTITIES = 12
"""A column with more different words does not name quantities."""


def settings_template(table: Path, folder: Path, separator: str | None = None) -> str:
    """Settings, to stand in `folder`, for a CSV file whose columns are guessed."""
    stored = table.suffix in (".parquet", ".pq")
    separator = separator or ("," if stored else _separator(table))
    frame = raw_table(table, separator)
    numbers = {str(name): as_numbers(frame, name) for name in frame.columns}
    numeric = [name for name, column in numbers.items() if name and np.isfinite(column).any()]
    lower = {str(name).lower(): str(name) for name in frame.columns}
    time = next((lower[name] for name in TIMES if name in lower), None)
    if time is None:
        rising = [name for name in numeric if increases(numbers[name])]
        time = next((name for name in rising if not counts(numbers[name])), None)
        time = time or next(iter(rising), None)
    if time is None:
        check_cells(table, frame, numbers)
        raise InputError(f"{table}: no column looks like a time. Name one of them t or time.")
    identity = next((lower[name] for name in IDS if name in lower and lower[name] != time), None)
    if identity is None:
        identity = _blocks(frame, time, numeric)
    usable = [name for name in numeric if name.isidentifier() and name != "t"]
    changing = [
        name
        for name in usable
        if name not in (time, identity) and varies(numbers[name]) and not counts(numbers[name])
    ]
    long = _long(frame, time, identity, numeric)
    named = [name for name in changing if name.lower() in INPUTS and "v" not in lower]
    inputs = [name for name in changing if name in named or jumps(numbers[name])]
    states = [name for name in changing if name not in inputs]
    if not states:
        states, inputs = inputs, []
    if all(name in lower for name in LONG_FRAME):
        states = [lower["y"]]
        moved = [name for name in usable if len(np.unique(numbers[name])) > 1]
        inputs = [name for name in moved if name.lower() not in LONG_FRAME]
    if long is not None:
        _, value, states = long
        inputs = [name for name in inputs if name != value]
    if not states:
        check_cells(table, frame, numbers)
        raise InputError(
            f"{table}: no column holds numbers that change in time under a name of one word, which "
            "equations can use. Rename columns."
        )
    stamped = np.isnan(numbers[time]).all()
    return TEMPLATE.format(
        name=table.with_suffix(".toml").name,
        files=json.dumps(os.path.relpath(table, folder), ensure_ascii=False),
        id=f"id = {_quoted(identity)}"
        if identity
        else '# id = "run"               # names the trajectory',
        time=_quoted(time),
        unit=f"unit = {_quoted(usual_unit(frame, time)):<20} # one unit of time in the equations"
        if stamped
        else '# unit = "day"             # for axes; needed where times are timestamps',
        states=_listed(states),
        inputs=f"inputs = {_listed(inputs)}    # what drives the system: by name, or it jumps"
        if inputs
        else "# inputs = []                # columns that drive the system from outside",
        long=""
        if long is None
        else f"quantity = {_quoted(long[0])}       # names what a row measures\n"
        f"value = {_quoted(long[1])}             # holds it\n",
        separator=f"separator = {separator!r}".replace("'", '"')
        if separator != ","
        else '# separator = ","',
        first=states[0],
    )


def _listed(names: list[str]) -> str:
    return "[" + ", ".join(map(_quoted, names)) + "]"


def _long(
    frame: pd.DataFrame, time: str, identity: str | None, numeric: list[str]
) -> tuple[str, str, list[str]] | None:
    """The columns of a long table: which names the quantity, which holds it, and the quantities.

    A column of a few words where times repeat, beside a single one of numbers that change.
    """
    keys = [name for name in (identity, time) if name]
    if not frame.duplicated(keys).any():
        return None
    for name in map(str, frame.columns):
        words = [str(one) for one in frame[name].dropna().unique()[: MOST_QUANTITIES + 1]]
        told = name not in (*keys, *numeric) and 1 < len(words) <= MOST_QUANTITIES
        if told and all(word.isidentifier() for word in words):
            value = _value(frame, identity, [one for one in numeric if one not in keys])
            if value is not None and not frame.duplicated([*keys, name]).any():
                return name, value, words
    return None


def _value(frame: pd.DataFrame, identity: str | None, numeric: list[str]) -> str | None:
    """The column that holds the values of a long table; None where several may.

    It changes in a recording, and most of its cells are filled: a dose has one, a weight is the
    same.
    """
    columns = [one for one in numeric if one.lower() not in IDS]
    labels = frame[identity] if identity else pd.Series(0, frame.index)
    changing = []
    for one in columns:
        filled = frame[one].notna()
        cells = pd.DataFrame({"label": labels[filled], "cell": frame.loc[filled, one]})
        constant = len(cells.drop_duplicates()) == cells["label"].nunique()
        if not constant and int(np.sum(filled)) > MOSTLY * len(frame):
            changing.append(one)
    return changing[0] if len(changing) == 1 else None


def _blocks(frame: pd.DataFrame, time: str, numeric: list[str]) -> str | None:
    """A column of words that stays the same while times rise: it tells trajectories apart.

    Only where several columns of numbers stand beside it; with one, it may name quantities.
    """
    others = [name for name in numeric if name != time]
    if not frame.duplicated([time]).any() or len(others) < 2:
        return None
    for name in map(str, frame.columns):
        if name == time or name in numeric:
            continue
        labels = np.array([str(one) for one in frame[name]])
        blocks = 1 + int((labels[1:] != labels[:-1]).sum())
        once = blocks == len(set(labels)) < len(labels) / 2
        if once and not frame.duplicated([name, time]).any():
            return name
    return None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _separator(table: Path) -> str:
    lines = read_text(table, links=True).splitlines()
    header = next((line for line in lines if not line.startswith("#")), "")
    return max((",", ";", "\t", "|"), key=header.count)
