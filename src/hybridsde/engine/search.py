"""How a sweep goes through its space: a grid, at random, or by what Optuna has learned."""

import abc
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hybridsde._errors import InputError
from hybridsde.engine.space import AbstractAxis

GRID, RANDOM, OPTUNA = "grid", "random", "optuna"
ROUND = 8
"""Trials that Optuna is asked for at a time, whatever the number of workers."""
Proposal = Mapping[str, Any]
"""Values of settings, by name."""


class AbstractSearch(abc.ABC):
    """Proposes settings in rounds. What it proposes depends on what it was told, and on a seed.

    It is never asked while a round is under way, so results do not depend on how many workers
    there are, and a search that was stopped proposes the same again.
    """

    @abc.abstractmethod
    def ask(self) -> list[Proposal]:
        """The next round; empty at the end."""

    @abc.abstractmethod
    def tell(self, scores: Sequence[tuple[float, bool]]) -> None:
        """The scores of a round in its order, and whether each trial was trained to the end."""


class Listed(AbstractSearch):
    """One round of settings that were known before: a grid, or drawn at random."""

    def __init__(self, proposals: Sequence[Proposal]):
        self._proposals = list(proposals)

    def ask(self) -> list[Proposal]:
        """All at once."""
        found, self._proposals = self._proposals, []
        return found

    def tell(self, scores: Sequence[tuple[float, bool]]) -> None:
        """There is nothing to learn."""
        del scores


class OptunaSearch(AbstractSearch):
    """Tree-structured Parzen estimators (Bergstra et al. 2011), as Optuna has them."""

    def __init__(self, axes: Sequence[AbstractAxis], trials: int, seed: int):
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        self._study = optuna.create_study(sampler=sampler)
        self._pruned = optuna.trial.TrialState.PRUNED
        self._failed = optuna.trial.TrialState.FAIL
        self._axes, self._left, self._open = tuple(axes), trials, []

    def ask(self) -> list[Proposal]:
        """A round of fixed size."""
        count = min(ROUND, self._left)
        self._left -= count
        self._open = [self._study.ask() for _ in range(count)]
        return [{axis.name: axis.suggested(one) for axis in self._axes} for one in self._open]

    def tell(self, scores: Sequence[tuple[float, bool]]) -> None:
        """Trials that were stopped early count as pruned, with the score that they had."""
        for one, (score, whole) in zip(self._open, scores, strict=True):
            if not math.isfinite(score):
                self._study.tell(one, state=self._failed)
            elif whole:
                self._study.tell(one, score)
            else:
                one.report(score, step=0)
                self._study.tell(one, state=self._pruned)


def search_of(
    kind: str, axes: Sequence[AbstractAxis], trials: int | None, seed: int
) -> AbstractSearch:
    """The search that was asked for."""
    if kind == GRID:
        return Listed(_grid(axes, trials))
    if kind == RANDOM:
        return Listed([_drawn(axes, seed, number) for number in range(trials or 30)])
    if kind == OPTUNA:
        return OptunaSearch(axes, trials or 30, seed)
    raise InputError(f"There is no search {kind!r}. Choose {GRID}, {RANDOM} or {OPTUNA}.")


def _grid(axes: Sequence[AbstractAxis], most: int | None) -> list[Proposal]:
    names = [axis.name for axis in axes]
    values = [axis.grid() for axis in axes]
    count = math.prod(map(len, values))
    if most is not None and count > most:
        raise InputError(
            f"The grid has {count} points, more than --trials {most}. Try fewer values, or "
            f"--search {RANDOM}."
        )
    return [dict(zip(names, point, strict=True)) for point in itertools.product(*values)]


def _drawn(axes: Sequence[AbstractAxis], seed: int, number: int) -> Proposal:
    """The same whatever the number of trials, so that a longer search begins with a shorter one."""
    shares = np.random.default_rng([seed, number]).random(len(axes))
    return {axis.name: axis.at(float(share)) for axis, share in zip(axes, shares, strict=True)}


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError(
            "The search 'optuna' needs Optuna. Install it with: pip install 'hybridsde[sweep]'"
        ) from None
    return optuna
