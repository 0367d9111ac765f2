"""What is known of every state, hidden ones too, at every step: filtered, and smoothed.

The forward pass is that of an estimator, with everything kept. The backward passes are those of
Rauch, Tung and Striebel (1965) for means and covariances, and backward sampling (Carter and Kohn
1994; Frühwirth-Schnatter 1994) for whole paths.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from hybridsde._linear import cholesky, solve_factored
from hybridsde._types import Array, Float
from hybridsde.data import Grid
from hybridsde.estimate.gaussian import GaussianState

ROUNDING = 8.0
"""So many rounding errors, for each state, are added to the diagonal of a scaled covariance."""


class Track(eqx.Module):
    """One series under one draw of the weights: what the filter knew at the end of every step."""

    first: GaussianState
    """At the first row, which it has taken in."""
    told: GaussianState
    """After the row that a step reaches, if it reaches one: p(h_k | y_1..k)."""
    foretold: GaussianState
    """Before it: p(h_k | y_1..k−1)."""
    slope: Float[Array, "step state state"]
    """A of the step that led there."""
    log_prob: Float[Array, " step"]

    @property
    def last(self) -> GaussianState:
        """At the end; steps of length zero, which pad a series, have changed nothing."""
        return jax.tree.map(lambda leaf: leaf[-1], self.told)

    @property
    def whole(self) -> GaussianState:
        """p(h_k | y_1..k) with the first row in front."""
        return _joined(self.first, self.told)


def smoothed(found: Track) -> GaussianState:
    """p(h_k | all rows) at the first row and at the end of every step.

    With the gain K = P A' / P⁻ from what was told at k to what was foretold for k + 1:
    m ← m + K (m_next − m⁻), P ← P + K (P_next − P⁻) K'     (Rauch, Tung and Striebel 1965)
    """

    def back(later: GaussianState, x):
        told, foretold, slope = x
        gain = _gain(told, foretold, slope)
        mean = told.mean + gain @ (later.mean - foretold.mean)
        change = later.covariance - foretold.covariance
        covariance = told.covariance + gain @ change @ gain.T
        state = GaussianState(mean, 0.5 * (covariance + covariance.T))
        return state, state

    _, before = lax.scan(back, found.last, _backwards(found), reverse=True)
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), before, found.last)


def backward_paths(found: Track, normals: Float[Array, "row state"]) -> Float[Array, "row state"]:
    """One path drawn from p(h_0, h_1, … | all rows), from standard normals.

    h_k ~ N(m + K (h_{k+1} − m⁻), P − K P⁻ K'), from the last step to the first.
    """

    def back(later: Float[Array, " state"], x):
        (told, foretold, slope), normal = x
        gain = _gain(told, foretold, slope)
        mean = told.mean + gain @ (later - foretold.mean)
        left = told.covariance - gain @ foretold.covariance @ gain.T
        h = mean + factor(left) @ normal
        return h, h

    last = found.last.mean + factor(found.last.covariance) @ normals[-1]
    _, before = lax.scan(back, last, (_backwards(found), normals[:-1]), reverse=True)
    return jnp.concatenate([before, last[None]])


def factor(covariance: Float[Array, "state state"]) -> Float[Array, "state state"]:
    """S with S S' = P but for rounding, for covariances that may be singular: Cholesky's."""
    size = _sizes(covariance)
    return size[:, None] * _root(covariance, size)


def _gain(
    told: GaussianState, foretold: GaussianState, slope: Float[Array, "state state"]
) -> Float[Array, "state state"]:
    """P A' / P⁻, in units of P⁻."""
    size = _sizes(foretold.covariance)
    root = _root(foretold.covariance, size)
    led = (slope @ told.covariance) / size[:, None]
    return (solve_factored(root, led) / size[:, None]).T


def _root(
    covariance: Float[Array, "state state"], size: Float[Array, " state"]
) -> Float[Array, "state state"]:
    """Cholesky's factor in units of `size`; a little is added, so that rounding does not matter."""
    scaled = covariance / jnp.outer(size, size)
    rounding = ROUNDING * len(size) * jnp.finfo(scaled.dtype).eps
    return cholesky(scaled + rounding * jnp.eye(len(size), dtype=scaled.dtype))


def _sizes(covariance: Float[Array, "state state"]) -> Float[Array, " state"]:
    """Standard deviations; one where a state is known exactly."""
    sd = jnp.sqrt(jnp.maximum(jnp.diag(covariance), 0.0))
    return jnp.where(sd > 0, sd, 1.0)


def _backwards(found: Track) -> tuple[GaussianState, GaussianState, Array]:
    """What a step back needs: the state before a step, what it foretold, its slope."""
    before = jax.tree.map(lambda leaf: leaf[:-1], found.whole)
    return before, found.foretold, found.slope


def _joined(first: GaussianState, later: GaussianState) -> GaussianState:
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)


def at_rows(
    along: Float[Array, "point *shape"], grid: Grid, rows: int
) -> Float[Array, "row *shape"]:
    """What belongs to the rows of a series, of something that has the first row and every step."""
    ends = grid.ends(rows)
    return jnp.concatenate([along[:1], along[1:][ends]])
