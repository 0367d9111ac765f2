"""Pieces of a long recording begin where the rows before them have led."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import linear_model
from hybridsde.data import Batch, Trajectories
from hybridsde.estimate import entries, filtered
from hybridsde.estimate import filter as module
from hybridsde.run.windows import training_batch
from hybridsde.simulate import EulerMaruyama

ROWS, PIECE = 21, 6


def recording() -> Trajectories:
    rng = np.random.default_rng(3)
    y = np.cumsum(0.3 * rng.normal(size=(ROWS, 1)), 0) + 0.2 * rng.normal(size=(ROWS, 1))
    return Trajectories.from_arrays([np.arange(ROWS, dtype=float)], [y], states=("x",))


def pieces(longest_past: int = ROWS) -> Batch:
    """The recording in pieces that follow each other, with the rows before each."""
    cuts = recording().cuts(PIECE, PIECE - 1, least=2)
    before = [(n, max(0, first + 1 - longest_past), first + 1) for n, first, _ in cuts]
    return replace(Batch.of(recording().cut(cuts)), past=Batch.of(recording().cut(before)))


@pytest.mark.slow
def test_pieces_add_up_to_the_likelihood_of_the_whole(monkeypatch):
    """Σ over pieces of ln p(piece | rows before) = ln p(Y): a filter that is cut loses nothing."""
    monkeypatch.setattr(module, "FRESH", 0.0)
    model, solver = linear_model(-0.2, diffusion=0.3, noise=0.2), EulerMaruyama()
    cut = pieces()
    cut = replace(cut, entry=entries(model, solver, cut.past, key=jr.key(1)))
    key = jr.key(0)
    found = filtered(model, solver, cut, samples=1, key=key).log_likelihood
    whole = filtered(model, solver, Batch.of(recording()), samples=1, key=key).log_likelihood
    np.testing.assert_allclose(found.sum(), whole[0, 0], rtol=1e-5)
    alone = filtered(model, solver, pieces(), samples=1, key=key).log_likelihood
    assert abs(float(alone.sum() - whole[0, 0])) > 0.01


def test_some_pieces_begin_as_a_new_recording_would(monkeypatch):
    model, solver = linear_model(-0.2, diffusion=0.3, noise=0.2), EulerMaruyama()
    cut = pieces()
    known = replace(cut, entry=entries(model, solver, cut.past, key=jr.key(1)))
    assert known.entry is not None
    assert np.asarray(known.entry.known).tolist() == [False, True, True, True]
    monkeypatch.setattr(module, "FRESH", 1.0)
    key = jr.key(0)
    anew, alone = (
        filtered(model, solver, batch, samples=1, key=key).log_likelihood for batch in (known, cut)
    )
    np.testing.assert_allclose(anew, alone, rtol=1e-6)


def test_an_objective_asks_where_pieces_begin_and_forecasts_ahead_do_not():
    model = linear_model(-0.2, diffusion=0.3, noise=0.2)
    cut = pieces()
    loss = hs.EmpiricalPACBayes(solver=EulerMaruyama())
    given = loss.entered(model, cut, key=jr.key(0))
    assert given.past is None
    assert given.entry is not None

    def begins(model) -> jax.Array:
        entry = loss.entered(model, cut, key=jr.key(0)).entry
        assert entry is not None
        return jnp.sum(entry.mean)

    slopes = eqx.filter_grad(begins)(model)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(slopes))
    ahead = replace(loss, estimator="ahead").entered(model, cut, key=jr.key(0))
    assert ahead.past is None
    assert ahead.entry is None


def test_training_gets_as_many_rows_before_a_piece_as_it_has():
    rows = 300
    data = Trajectories.from_arrays(
        [np.arange(rows, dtype=float)], [np.arange(rows, dtype=float)[:, None]], states=("x",)
    )
    spec = hs.HybridSDE(states=("x",), learned="network")
    batch = training_batch(spec, data, None)
    assert np.asarray(batch.recorded.sum(1)).tolist() == [120, 120, 62]
    assert batch.past is not None
    assert np.asarray(batch.past.recorded.sum(1)).tolist() == [1, 120, 120]
    last = np.asarray(batch.past.recorded.sum(1)) - 1
    ends = np.asarray(batch.past.values)[np.arange(3), last, 0]
    np.testing.assert_array_equal(ends, np.asarray(batch.values)[:, 0, 0])
    short = training_batch(spec, data.cut([(0, 0, 50)]), None)
    assert short.past is None
    terms = training_batch(hs.HybridSDE(states=("x",), learned="library"), data, None)
    assert terms.past is None
