"""A commented settings file from a first look at a table."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybridsde.project.guessing import (
    Guess,
    guess_table,
    looks_like_doses,
    quoted,
)

TEMPLATE = """\
# Settings for hybridsde. Check them with:  hybridsde check {name}
# Lines that begin with # are not used; most of what they say is the default.

[data]
{data}# hidden_states = []         # states that exist but are never measured
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


def settings_template(table: Path, folder: Path, name: str | None = None) -> str:
    """Settings, to stand in `folder` as `name`, for a table whose columns are guessed."""
    return template_of(guess_table(table), table, folder, name)


def template_of(guess: Guess, table: Path, folder: Path, name: str | None = None) -> str:
    """Settings that say what was guessed about a table."""
    states = [guess.names[one] for one in guess.states]
    return TEMPLATE.format(
        name=name or table.with_suffix(".toml").name,
        data="".join(_data(guess, quoted(os.path.relpath(table, folder)), states)),
        first=states[0],
    )


def _data(guess: Guess, files: str, states: Sequence[str]) -> list[str]:
    """The lines that depend on the table."""
    inputs = [guess.names[one] for one in guess.inputs]
    columns = {one: source for one, source in guess.columns.items() if source not in guess.doses}
    stamped, long = guess.unit is not None, guess.quantity is not None
    separated, comma = guess.separator != ",", guess.decimal != "."
    lines = [
        _line("files", files, "a name, or several with * and ?"),
        _line("id", quoted(guess.id or "run"), "names the trajectory", used=bool(guess.id)),
        _line("time", quoted(guess.time), ""),
        _line("unit", quoted(guess.unit or "day"), UNIT[stamped], used=stamped),
        _line("states", _listed(states), "what changes in time and is to be forecast"),
        _line("inputs", _listed(inputs), INPUT[bool(inputs)], used=bool(inputs)),
    ]
    angles = [guess.names[one] for one in guess.angles]
    if angles:
        lines.append(_line("angles", _listed(angles), "in radians: by name and range"))
    if long:
        lines.append(_line("quantity", quoted(guess.quantity or ""), "names what a row measures"))
        lines.append(_line("value", quoted(guess.value or ""), "holds it"))
    mapped = _mapped(columns or {"T": "TI-101.PV"})
    words = _listed(guess.missing or ("Bad Input",))
    lines += [
        _line("columns", mapped, "columns with other names in the file", used=bool(columns)),
        _line("separator", quoted(guess.separator), GUESSED if separated else "", used=separated),
        _line("decimal", quoted(guess.decimal), DECIMAL[comma], used=comma),
        _line("missing", words, "cells that mean a missing value", used=bool(guess.missing)),
    ]
    lines += [f"# Not used: {quoted(one)} ({why}).\n" for one, why in guess.left_out.items()]
    return [*lines, *(_dose(guess, one) for one in guess.doses)]


UNIT = ("for axes; needed where times are timestamps", "one unit of time in the equations")
INPUT = (
    "columns that drive the system from outside",
    "what drives the system: by name, or it jumps",
)
DECIMAL = ('or ",", where numbers are written as 0,5', "guessed from the cells")
GUESSED = "guessed from the first lines"


def _line(key: str, value: str, comment: str, *, used: bool = True) -> str:
    """A line of settings; where it is not used, it shows what could be said."""
    setting = f"{'' if used else '# '}{key} = {value}"
    return f"{setting:<28} # {comment}\n" if comment else f"{setting}\n"


def _dose(guess: Guess, source: str) -> str:
    """A column that is asked about, and what it may be."""
    name = guess.names[source]
    inputs = _listed([*(guess.names[one] for one in guess.inputs), name])
    states = _listed([*(guess.names[one] for one in guess.states), name])
    mapped = f", and columns = {_mapped({name: source})}" if name != source else ""
    looks = looks_like_doses(source)
    return (
        f"# {looks[:1].upper()}{looks[1:]} It is not used until you say what it is{mapped}:\n"
        f"#   an amount that a state has in the first row: name it in [start]: x = {quoted(name)}\n"
        f"#   a rate that lasts until the next row, 0 where it ends: inputs = {inputs}\n"
        f"#   something measured: states = {states}\n"
    )


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(map(quoted, names)) + "]"


def _mapped(columns: Mapping[str, str]) -> str:
    keys = ((one if one.isascii() else quoted(one), source) for one, source in columns.items())
    return "{ " + ", ".join(f"{key} = {quoted(source)}" for key, source in keys) + " }"
