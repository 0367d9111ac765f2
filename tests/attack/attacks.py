"""What must come of hostile input: an answer or one line that says why not, and soon."""

import os
import random
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import hostile
import jax.numpy as jnp

import hybridsde as hs
from helpers import untrained_run, wiggles
from hybridsde._errors import InputError
from hybridsde.data import read_table
from hybridsde.data.table import Columns
from hybridsde.physics.expression import mathml, names, text, value
from hybridsde.physics.grammar import parse
from hybridsde.project.look import look
from hybridsde.project.project import DATA, SETTINGS, split_of
from hybridsde.project.settings_file import settings_of
from hybridsde.project.split import Split
from hybridsde.report.certificates import read_certificates

SLOWEST = 2.0
"""Seconds that one case may take."""
ACCEPTED, REFUSED = "accepted", "refused"


def write_run(folder: Path) -> Path:
    """A run that nothing was trained for, with all that a folder may hold."""
    data = wiggles(series=8)
    model = hs.HybridSDE(states=data.states, learned="network", hidden=(3,), members=1)
    split = Split.of(data, 0.25, 0.0, seed=0)
    files = {DATA: split.to_frame().to_csv(index=False).encode(), SETTINGS: b"[data]\n"}
    untrained_run(model, data).save(folder, files)
    return folder


def judged(case: Callable[[], None], shown: str) -> str:
    """Whether a case was accepted or refused; an `AssertionError` where it was neither."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case()
        found = ACCEPTED
    except InputError as error:
        line = str(error).split("\n")[0]
        assert line.strip(), f"no word about {shown}"
        assert "\x1b" not in line, f"an escape code reaches the terminal: {shown}"
        found = REFUSED
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error} after {shown}") from error
    took = time.monotonic() - began
    assert took < SLOWEST, f"{took:.1f} s for {shown}"
    return found


def equation(seed: int) -> str:
    """Read, written, typeset and evaluated, or refused."""
    source = hostile.equation(random.Random(seed))

    def case() -> None:
        found = parse(source)
        again = parse(f"d{found.state} = {text(found.rate)}")
        assert again.rate == found.rate, "the text of an equation is not the equation"
        assert len(mathml(found.rate)) < 200 * len(source) + 1000, "typesetting explodes"
        if seed % 50 == 0:
            quantities = {one.name: jnp.asarray(1.5) for one in names(found.rate)}
            value(found.rate, quantities)

    return judged(case, repr(source[:200]))


def table(seed: int, folder: Path) -> str:
    """Looked at and read, or refused."""
    path = folder / f"{os.getpid()}.csv"
    content, meaning = hostile.table(random.Random(seed))
    path.write_bytes(content)

    def first_look() -> None:
        look(path)

    def case() -> None:
        named = dict(meaning)
        separator = named.pop("separator", ",")
        columns = Columns(("x", "v"), **named)
        data = read_table(path, columns, separator=separator, strict=bool(seed % 2))
        assert jnp.isfinite(data.values[data.observed]).all()
        assert (data.times[:, 1:] >= data.times[:, :-1]).all()

    judged(first_look, f"a look at table {seed}")
    return judged(case, f"table {seed}")


def settings(seed: int, folder: Path) -> str:
    """Made into a model, or refused."""
    content = hostile.settings(random.Random(seed))

    def case() -> None:
        found = settings_of(content, folder / "s.toml")
        try:
            found.build_model(folder, trust=False)
        except ValueError as error:  # as `Project.open` does
            raise InputError(str(error)) from None

    return judged(case, repr(content[:600]))


def folder(seed: int, run: Path, room: Path) -> str:
    """A tampered run is loaded as it was, or refused; nothing outside of it is touched."""
    rng = random.Random(seed)
    place, outside = room / f"run{os.getpid()}", room / f"outside{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(run, place)
    outside.write_text("secret")
    done = hostile.tamper(place, rng, outside)

    def case() -> None:
        found = hs.Run.load(place)
        split_of(place, found)
        read_certificates(place)

    try:
        return judged(case, f"tampering {seed}: {done}")
    finally:
        assert outside.read_text() == "secret", f"{done}: a file outside was overwritten"
