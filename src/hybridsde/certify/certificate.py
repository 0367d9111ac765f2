"""What a certificate says, and how it is printed and kept."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import read_text, write_json


@dataclass(frozen=True)
class Certificate:
    """An upper bound on a risk, in words and with every term."""

    bound: float
    """Cut off at one; the terms keep what was computed."""
    kind: str
    loss: str
    delta: float
    n: int
    """Trajectories, or windows where they are sequential."""
    vacuous: bool
    """Whether the bound is one or more, which is true of any forecaster and so says nothing."""
    statement: str
    """What is promised, as a sentence."""
    assumptions: tuple[str, ...]
    """What the promise rests on and nobody checked."""
    terms: Mapping[str, float]
    parts: Mapping[str, float]
    """By how much the bound grows as each term is counted in; they add up to it."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Constants of the loss, solver, hashes of the trajectories."""

    def table(self) -> pd.DataFrame:
        """Every term, one row each."""
        rows = {"bound": self.bound, "n": self.n, "δ": self.delta, **self.terms}
        return pd.DataFrame({"value": rows}).rename_axis("term")

    def __str__(self) -> str:
        width = max(len(name) for name in self.terms)
        lines = [f"{self.kind}, loss {self.loss}", self.statement]
        lines += [f"  {name:<{width}}  {value:.6g}" for name, value in self.terms.items()]
        lines += ["Not checked:", *(f"  - {line}" for line in self.assumptions)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: the promise, every term, and what nobody checked."""
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.assumptions)
        return (
            f"<b>{escape(self.kind)}, loss {escape(self.loss)}</b><br>{escape(self.statement)}"
            f"{self.table().to_html(border=0)}Not checked:<ul>{lines}</ul>"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_json(Path(path), self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Read what `save` wrote."""
        try:
            found = json.loads(read_text(Path(path), links=True))
            return cls(**{**found, "assumptions": tuple(found["assumptions"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path} is not a certificate: {error}.") from None
