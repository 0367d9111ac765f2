"""A commented settings file from a first look at a table."""

import json
import os
from pathlib import Path

import numpy as np

from hybridsde._errors import InputError
from hybridsde.data import raw_table
from hybridsde.data.parsing import as_numbers

TIMES = ("t", "time", "day", "days", "date", "datetime", "timestamp", "hour", "year", "seconds")
IDS = ("id", "run", "experiment", "trajectory", "series", "subject", "trial", "batch", "unit")

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
{separator}
# hidden_states = []         # states that exist but are never measured
# test = 0.2                 # share of trajectories kept for scores
# validation = 0.15          # share of the others that chooses the epoch

[physics]
# Write the equations that you know, and only those; the rest is learned. Allowed are + - * / ^,
# brackets, states, inputs, parameters, t, pi and sin cos tan exp log sqrt abs tanh min max sign.
# Without any equation the model is a black box.
# equations = ["d{first} = -rate*{first}"]

# [physics.parameters]
# rate = 0.5                                             # held at this value
# rate = {{ value = 0.5, learn = true, low = 0.1, high = 2.0 }}   # or learned within bounds

# [model]
# hidden = [50, 50]          # layers of the network; [] for physics alone
# diffusion = "learn"        # noise of the dynamics, or a number per state
# noise = "learn"            # standard deviation of a measurement, or a number per state

# [train]
# objective = "pac-bayes"    # or "bayes"
# epochs = 500
# seed = 0
"""


def settings_template(table: Path, folder: Path, separator: str | None = None) -> str:
    """Settings, to stand in `folder`, for a CSV file whose columns are guessed."""
    separator = separator or _separator(table)
    frame = raw_table(table, separator)
    numbers = {str(name): as_numbers(frame, name) for name in frame.columns}
    numeric = [name for name, column in numbers.items() if np.isfinite(column).any()]
    lower = {str(name).lower(): str(name) for name in frame.columns}
    time = next((lower[name] for name in TIMES if name in lower), None)
    if time is None:
        time = next((name for name in numeric if _increases(numbers[name])), None)
    if time is None:
        raise InputError(f"{table}: no column looks like a time. Name one of them t or time.")
    identity = next((lower[name] for name in IDS if name in lower and lower[name] != time), None)
    usable = [name for name in numeric if name.isidentifier() and name != "t"]
    states = [name for name in usable if name not in (time, identity) and _varies(numbers[name])]
    if not states:
        raise InputError(
            f"{table}: no column holds numbers that change in time under a name of one word, which "
            "equations can use. Rename columns."
        )
    stamped = np.isnan(numbers[time]).all()
    return TEMPLATE.format(
        name=table.with_suffix(".toml").name,
        files=json.dumps(os.path.relpath(table, folder), ensure_ascii=False),
        id=f'id = "{identity}"'
        if identity
        else '# id = "run"               # names the trajectory',
        time=_quoted(time),
        unit='unit = "h"                 # one unit of time in the equations'
        if stamped
        else '# unit = "day"             # for axes; needed where times are timestamps',
        states="[" + ", ".join(map(_quoted, states)) + "]",
        inputs="# inputs = []                # columns that drive the system from outside",
        separator=f"separator = {separator!r}".replace("'", '"')
        if separator != ","
        else '# separator = ","',
        first=states[0],
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _separator(table: Path) -> str:
    try:
        with table.open(encoding="utf-8-sig") as file:
            header = next((line for line in file if not line.startswith("#")), "")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{table} cannot be read: {error}.") from None
    return max((",", ";", "\t", "|"), key=header.count)


def _increases(numbers: np.ndarray) -> bool:
    return bool(np.isfinite(numbers).all() and (np.diff(numbers) > 0).mean() > 0.8)


def _varies(numbers: np.ndarray) -> bool:
    return len(np.unique(numbers[np.isfinite(numbers)])) > 2
