"""A table of the paper: every row, saved as it finishes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hybridsde.fit import CallbackFactory
from hybridsde.model.drift import GRID
from hybridsde.paper.preset import METHODS, Preset
from hybridsde.paper.row import DRAWS, floors, run_row
from hybridsde.paper.system import Protocol, System
from hybridsde.paper.table import Results, Row, RowKey, fingerprint, summarise

QUICKLY = ", quick"
"""Behind the name of a preset that trains for a part of its epochs."""
Elsewhere = Callable[[Sequence[RowKey]], Mapping[RowKey, Row]]
"""Computes rows on other processes or machines."""


@dataclass(frozen=True)
class Experiment:
    """A table of the paper: its system, its rows, and the settings to run them with."""

    title: str
    notes: str
    """Why measured and published numbers differ."""
    system: System
    protocols: Mapping[str, Protocol]
    known: Mapping[str, tuple[str, ...]]
    """The equations behind each name in the column "known"."""
    published: Mapping[tuple[str, str], tuple[float, float] | None]
    """The rows, (known, method), with the mean test MSE that the paper gives, and its error."""
    presets: Mapping[str, Preset]
    beyond: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Further rows of a preset, which the paper does not have."""

    def brief(self, part: int) -> "Experiment":
        """With this part of the epochs, under names that say so."""

        def shorter(preset: Preset) -> Preset:
            epochs = max(1, preset.training.epochs // part)
            return replace(preset, training=replace(preset.training, epochs=epochs))

        presets = {f"{name}{QUICKLY}": shorter(one) for name, one in self.presets.items()}
        beyond = {f"{name}{QUICKLY}": rows for name, rows in self.beyond.items()}
        return replace(self, presets=presets, beyond=beyond)

    def epochs(self, presets: tuple[str, ...]) -> int:
        """How many epochs all rows take together."""
        rows = sum(method != "physics" for _, method in self.published)
        return rows * sum(self.presets[name].training.epochs for name in presets)

    def reproduce(
        self,
        folder: Path,
        *,
        presets: tuple[str, ...],
        repetitions: int,
        protocol: str,
        seed: int,
        watch: CallbackFactory,
        elsewhere: Elsewhere | None = None,
    ) -> Results:
        """Every row under the chosen presets, saved as they finish.

        `watch` gives the callbacks of a row by its name. `elsewhere` computes all rows that are
        missing, on other processes or machines.
        """
        results = Results(folder, self.title, self.notes)
        keys = self.keys(presets, protocol, repetitions, seed)
        there = {row.key for row in results.rows}
        missing = [key for key in keys if key not in there]
        found = elsewhere(missing) if elsewhere and missing else {}
        for key in keys:
            results.get(key, lambda key=key: found[key] if key in found else self.row(key, watch))
        oracle, persistence = floors(self.system, self.protocols[protocol], repetitions, seed)
        of = "" if protocol == next(iter(self.protocols)) else f"_{protocol}"
        of += f"_seed_{seed}" if seed else ""
        results.extra |= {
            f"oracle_mse{of}": oracle,
            f"persistence_mse{of}": persistence,
            "seconds": sum(row.seconds for row in results.rows),
        }
        results.save()
        return results

    def keys(
        self, presets: tuple[str, ...], protocol: str, repetitions: int, seed: int
    ) -> list[RowKey]:
        """What is to be computed, in the order of the table."""
        system = (self.system.diffusion, self.system.interval, self.system.parameter_sd)
        keys = []
        for preset in presets:
            chosen = self.presets[preset]
            counted = GRID if chosen.learned_gate else ()
            settings = fingerprint(chosen, self.protocols[protocol], system, DRAWS, counted)
            for known, method in (*self.published, *self.beyond.get(preset, ())):
                key = RowKey(known, method, preset, protocol, repetitions, seed, settings)
                keys.append(key)
        return keys

    def row(self, key: RowKey, watch: CallbackFactory) -> Row:
        """All repetitions of one row."""
        began = time.monotonic()
        found = run_row(
            self.system,
            self.protocols[key.protocol],
            self.presets[key.preset],
            self.known[key.known],
            key.method,
            repetitions=key.repetitions,
            seed=key.seed,
            callbacks=watch(" ".join(key[:3])) if key.method in METHODS else (),
        )
        mse, se = self.published.get((key.known, key.method)) or (None, None)
        return Row(
            *key,
            **summarise(found.scores),
            published_mse=mse,
            published_se=se,
            diverged=int(np.sum(found.diverged)),
            seconds=time.monotonic() - began,
        )
