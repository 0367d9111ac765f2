"""A fleet as a table: a row per member, what they have in common, and who stands out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hybridsde.engine.fleet_worker import SHOWN, finite
from hybridsde.engine.task import FAILURE, Outcome

CONSISTENT = 1.4826
"""Times the median absolute deviation: the standard deviation of a normal distribution."""
FAR = 3.5
"""Robust z-scores beyond this are outliers (Iglewicz and Hoaglin 1993)."""
IN_FLEET = " in fleet"
"""After the name of a parameter: as it is drawn towards the others."""
FEWEST = 5
"""Members below which nobody stands out."""


@dataclass(frozen=True)
class Population:
    """A parameter over the fleet: ξ_i ~ N(mean, sd²), seen as ξ̂_i ~ N(ξ_i, e_i²)."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: np.ndarray, errors: np.ndarray) -> "Population":
        """By moments (DerSimonian and Laird 1986), so that the errors e_i are not taken for spread.

        With weights w_i = e_i⁻²: sd² = max(0, (Q − (n − 1)) / (Σw − Σw²/Σw)), Q = Σ w (ξ̂ − ξ̄_w)².
        """
        w = errors**-2
        centre = (w * values).sum() / w.sum()
        excess = (w * (values - centre) ** 2).sum() - (len(values) - 1)
        variance = max(0.0, excess / (w.sum() - (w**2).sum() / w.sum()))
        whole = 1 / (variance + errors**2)
        return cls(float((whole * values).sum() / whole.sum()), float(np.sqrt(variance)))

    def shrunk(self, values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every member given its own estimate and the fleet: posterior means and deviations.

        E ξ_i = B mean + (1 − B) ξ̂_i and Var ξ_i = (1 − B) e_i², with B = e_i² / (e_i² + sd²).
        """
        pull = errors**2 / (errors**2 + self.sd**2)
        return pull * self.mean + (1 - pull) * values, errors * np.sqrt(1 - pull)


def fleet_frame(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """A row per member: scores, learned parameters with errors, terms, seconds, or a failure."""
    parts = []
    for outcome in outcomes:
        seconds = outcome.seconds / max(1, len(outcome.rows))
        parts.append(pd.DataFrame([{**_flat(row), "seconds": seconds} for row in outcome.rows]))
    table = pd.concat(parts, ignore_index=True)
    first = ["member", FAILURE, "trajectories", "rows", *SHOWN]
    rest = [name for name in table.columns if name not in first]
    return table.reindex(columns=[*first, *rest])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if name != "parameters"}
    for score in SHOWN:
        found[score] = finite(row.get(score))
    for name, one in (row.get("parameters") or {}).items():
        found[f"{name}"] = finite(one.get("value"))
        found[f"{name} error"] = finite(one.get("error"))
    return found


def parameters_in(table: pd.DataFrame) -> list[str]:
    """Names of the learned parameters."""
    names = [str(name) for name in table.columns if f"{name} error" in table.columns]
    return [name for name in names if not name.endswith(IN_FLEET)]


def populations(table: pd.DataFrame) -> dict[str, Population]:
    """What members have in common, for every parameter whose errors are known."""
    found = {}
    for name in parameters_in(table):
        pair = table[[name, f"{name} error"]].to_numpy(float)
        pair = pair[np.isfinite(pair).all(1) & (pair[:, 1] > 0)]
        if len(pair) >= FEWEST:
            found[name] = Population.of(pair[:, 0], pair[:, 1])
    return found


def with_population(table: pd.DataFrame) -> pd.DataFrame:
    """With every parameter drawn towards the fleet, as far as its error asks for."""
    added = {}
    for name, population in populations(table).items():
        pair = table[[name, f"{name} error"]].to_numpy(float).T
        drawn, spread = population.shrunk(*pair)
        added |= {f"{name}{IN_FLEET}": drawn, f"{name}{IN_FLEET} error": spread}
    return table.assign(**added)


def failed(table: pd.DataFrame) -> np.ndarray:
    """Which members came to nothing."""
    return np.array([isinstance(one, str) for one in table[FAILURE]], bool)


def robust_z(values: np.ndarray, errors: np.ndarray | float = 0.0) -> np.ndarray:
    """(x − median) / √(s² + e² − median e²), s = 1.4826 · median |x − median|.

    s holds the usual error already; a member that is known less than others stands out less. NaN
    where there is no spread.
    """
    told = values[np.isfinite(values)]
    if len(told) < FEWEST:
        return np.full(len(values), np.nan)
    centre = np.median(told)
    spread = CONSISTENT * np.median(np.abs(told - centre))
    squares = np.broadcast_to(np.nan_to_num(errors) ** 2, values.shape)
    further = np.maximum(squares - np.median(squares), 0.0)
    if not spread > 0:
        return np.full(len(values), np.nan)
    return (values - centre) / np.sqrt(spread**2 + further)


def outliers(table: pd.DataFrame) -> pd.DataFrame:
    """Members whose parameters or scores are far from those of the others, the farthest first.

    Errors count by their logarithm: what is twice as large is as far as what is half as large.
    """
    found = []
    for name in (*parameters_in(table), "rmse", "crps"):
        values = table[name].to_numpy(float)
        if name in SHOWN:
            z = robust_z(np.log(np.where(values > 0, values, np.nan)))
        else:
            z = robust_z(values, table[f"{name} error"].to_numpy(float))
        for place in np.flatnonzero(np.abs(z) > FAR):
            row = {"member": table["member"].iloc[place], "what": name}
            found.append({**row, "value": float(table[name].iloc[place]), "z": float(z[place])})
    frame = pd.DataFrame(found, columns=["member", "what", "value", "z"])
    return frame.sort_values("z", key=np.abs, ascending=False, ignore_index=True)
