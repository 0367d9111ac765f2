"""What input must satisfy, each rule with the message that teaches it."""

import keyword
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float


def check_length(times: np.ndarray, name: str) -> None:
    """A series needs a start and something to predict."""
    if times.ndim != 1:
        raise ValueError(
            f"`times` of series {name!r} must be one-dimensional, but has shape {times.shape}. "
            "Give a list with one array per series, even for a single one."
        )
    if len(times) == 0:
        raise ValueError(f"Series {name!r} is empty. Remove it from `times` and `values`.")


def check_times(times: Float[np.ndarray, " time"], name: str) -> None:
    """Times are finite and strictly increase within a series."""
    unreal = np.flatnonzero(~np.isfinite(times))
    if unreal.size:
        raise ValueError(
            f"`times` of series {name!r} is {times[unreal[0]]} at index {unreal[0]}. "
            "Every row needs a time: drop the row or fill the time in."
        )
    stuck = np.flatnonzero(np.diff(times) <= 0)
    if stuck.size:
        index = int(stuck[0])
        repeated = times[index + 1] == times[index]
        remedy = (
            "Merge rows of equal time first." if repeated else "Sort each series by time first."
        )
        raise ValueError(
            f"`times` must increase within a series, but series {name!r} does not after index "
            f"{index} ({times[index]:g}, then {times[index + 1]:g}). {remedy}"
        )


def check_shape(array: np.ndarray, rows: int, columns: int, what: str, name: str) -> None:
    """One row per time, one column per name."""
    if array.shape != (rows, columns):
        raise ValueError(
            f"`{what}` of series {name!r} must have shape ({rows}, {columns}): one row per time "
            f"and one column per name, but has shape {array.shape}."
        )


def check_values(
    values: Float[np.ndarray, "time obs"],
    observed: Bool[np.ndarray, "time obs"],
    names: tuple[str, ...],
    name: str,
    what: str = "values",
) -> None:
    """Whatever the mask calls observed is a finite number."""
    wrong = np.argwhere(observed & ~np.isfinite(values))
    if wrong.size:
        row, column = wrong[0]
        remedy = (
            "Mark missing values with `observed=False` there."
            if what == "values"
            else "Fill the inputs in: the model needs them at every time."
        )
        raise ValueError(
            f"`{what}` of series {name!r} is {values[row, column]} in {names[column]!r} at index "
            f"{row}. {remedy}"
        )


def check_names(names: Sequence[str], what: str) -> None:
    """Names are distinct and can be used in equations."""
    if isinstance(names, str):
        raise ValueError(f"`{what}` must be a list of names, but is the text {names!r}.")
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"`{what}` must hold names, but holds {name!r}.")
        if name in names[:position]:
            raise ValueError(f"`{what}` names {name!r} twice. Names must differ.")
        if name == "t":
            raise ValueError(f"`{what}` has the name 't', which stands for the time. Rename it.")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(
                f"`{what}` has the name {name!r}, which cannot stand in an equation. "
                "Use letters, digits and underscores, starting with a letter."
            )


def check_whole(value: object, what: str, least: int = 1) -> None:
    """A setting that counts something."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"`{what}` must be a whole number of at least {least}, but is {value!r}.")


def check_positive(value: object, what: str) -> None:
    """A setting that is a size."""
    if not isinstance(value, int | float | np.number) or not value > 0:
        raise ValueError(f"`{what}` must be a positive number, but is {value!r}.")
