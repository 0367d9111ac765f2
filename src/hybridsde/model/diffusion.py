"""The diffusion G(h, t): scalar, diagonal, full matrix, or a function of state and time.

Two things are asked of G: spread a Wiener increment, G dW, and weigh a drift, fᵀJ⁻¹f with
J = GGᵀ. The second is ‖G⁻¹f‖², so a solve takes the place of any inverse.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._linear import inverse, solve_lower
from hybridsde._parameters import AbstractParameter, Fixed, Positive, Relative, refuse_numbers
from hybridsde._types import Array, Float, Numbers, Scalar


class AbstractDiffusion(eqx.Module):
    """G(h, t), invertible everywhere."""

    @abc.abstractmethod
    def spread(
        self, t: Scalar, h: Float[Array, " state"], dw: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """G(h, t) dW."""

    @abc.abstractmethod
    def whiten(
        self, t: Scalar, h: Float[Array, " state"], f: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """G(h, t)⁻¹ f, up to a rotation: its squared length is fᵀ J⁻¹ f."""


class DiagonalDiffusion(AbstractDiffusion):
    """Independent noise in every state; one number stands for equal noise in all of them."""

    sd: AbstractParameter

    def spread(
        self, t: Scalar, h: Float[Array, " state"], dw: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """σ ∘ dW."""
        del t, h
        return self.sd.value * dw

    def whiten(
        self, t: Scalar, h: Float[Array, " state"], f: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """f / σ; zero where there is no noise, since no path KL is defined there."""
        del t, h
        sd = self.sd.value
        noisy = sd > 0
        return jnp.where(noisy, f / jnp.where(noisy, sd, 1.0), 0.0)


class MatrixDiffusion(AbstractDiffusion):
    """A constant full matrix, kept as the Cholesky factor of J: the law depends on J alone."""

    factor: Fixed

    def spread(
        self, t: Scalar, h: Float[Array, " state"], dw: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """L dW with LLᵀ = J."""
        del t, h
        return self.factor.value @ dw

    def whiten(
        self, t: Scalar, h: Float[Array, " state"], f: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """L⁻¹ f by forward substitution."""
        del t, h
        return solve_lower(self.factor.value, f)


class FunctionDiffusion(AbstractDiffusion):
    """G(h, t) from a function that returns a number, a vector (diagonal) or a matrix."""

    function: Callable = eqx.field(static=True)

    def spread(
        self, t: Scalar, h: Float[Array, " state"], dw: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """G(h, t) dW."""
        g = jnp.asarray(self.function(h, t))
        return g @ dw if g.ndim == 2 else g * dw

    def whiten(
        self, t: Scalar, h: Float[Array, " state"], f: Float[Array, " state"]
    ) -> Float[Array, " state"]:
        """G(h, t)⁻¹ f."""
        g = jnp.asarray(self.function(h, t))
        return inverse(g) @ f if g.ndim == 2 else f / g


def has_logarithms(diffusion: AbstractDiffusion) -> bool:
    """Whether its numbers are logarithms of spreads, to which ln c is added to multiply G by c."""
    if not isinstance(diffusion, DiagonalDiffusion):
        return False
    sd = diffusion.sd.factor if isinstance(diffusion.sd, Relative) else diffusion.sd
    return isinstance(sd, Positive)


def constant_diffusion(value: Numbers, states: tuple[str, ...]) -> AbstractDiffusion:
    """A fixed G from a number, one number per state, or a square matrix."""
    g = np.asarray(value, float)
    count = len(states)
    if g.shape not in {(), (count,), (count, count)}:
        raise ValueError(
            f"`diffusion` must be a number, {count} numbers or a {count}×{count} matrix for the "
            f"states {', '.join(states)}, but has shape {g.shape}."
        )
    if not np.isfinite(g).all():
        raise ValueError(f"`diffusion` must be finite, but is {g.tolist()}.")
    if g.ndim < 2:
        check_diagonal(g, states)
        return DiagonalDiffusion(Fixed(jnp.asarray(g)))
    return MatrixDiffusion(Fixed(jnp.asarray(_factor(g, states))))


def function_diffusion(function: Callable, states: tuple[str, ...]) -> FunctionDiffusion:
    """A state-dependent G, after a dry run on shapes alone."""
    refuse_numbers(
        function,
        "diffusion",
        "To train them derive the module from `hs.AbstractDiffusion`, with `spread` and `whiten`; "
        "to keep them as they are give a function, such as lambda h, t: module(h).",
    )
    count = len(states)
    vector = jax.ShapeDtypeStruct((count,), jnp.zeros(()).dtype)
    scalar = jax.ShapeDtypeStruct((), vector.dtype)
    try:
        result = jax.eval_shape(lambda h, t: jnp.asarray(function(h, t)), vector, scalar)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        raise ValueError(
            f"`diffusion` function cannot be compiled: {reason} It is called with (h, t), where h "
            f"holds {', '.join(states)}; use jax.numpy inside it."
        ) from None
    if result.shape not in {(), (count,), (count, count)}:
        raise ValueError(
            f"`diffusion` function must return a number, {count} numbers or a {count}×{count} "
            f"matrix, but returns shape {result.shape}."
        )
    return FunctionDiffusion(function)


def check_invertible(
    diffusion: AbstractDiffusion,
    times: Float[Array, " series"],
    states: Float[Array, "series state"],
) -> None:
    """A `ValueError` where G is singular at the start of a series.

    Says nothing about other states that a path may visit.
    """
    whitened = jax.vmap(diffusion.whiten)(times, states, jnp.ones_like(states))
    wrong = np.flatnonzero(~np.isfinite(np.asarray(whitened)).all(-1))
    if wrong.size:
        raise ValueError(
            f"`diffusion` is singular at the start of series number {wrong[0]}, where h is "
            f"{np.asarray(states[wrong[0]]).tolist()}. G must be invertible for the path KL to "
            "exist: give every state a little noise."
        )


def check_diagonal(g: np.ndarray, states: tuple[str, ...]) -> None:
    """One number, or one per state, zero or more."""
    if g.shape not in {(), (len(states),)}:
        raise ValueError(
            f"`diffusion` must hold {len(states)} numbers for the states {', '.join(states)}, but "
            f"has shape {g.shape}."
        )
    wrong = np.flatnonzero(np.atleast_1d(g) < 0)
    if wrong.size:
        where = f" for state {states[wrong[0]]!r}" if g.ndim else ""
        raise ValueError(
            f"`diffusion` must be zero or more, but is {np.atleast_1d(g)[wrong[0]]:g}{where}."
        )


def _factor(g: np.ndarray, states: tuple[str, ...]) -> np.ndarray:
    if np.linalg.cond(g) > 1e6:
        raise ValueError(
            f"`diffusion` is a singular matrix (condition number {np.linalg.cond(g):.1e}) for the "
            f"states {', '.join(states)}. G must be invertible for the path KL to exist: add a "
            "little noise on the diagonal."
        )
    return np.linalg.cholesky(g @ g.T)
