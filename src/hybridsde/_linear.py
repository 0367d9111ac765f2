"""Linear algebra of small matrices, in plain array operations: nothing that calls LAPACK.

On a CPU the batched LAPACK kernels of JAX split their batch into tasks for the pool of threads
that runs the program, and wait for them on a thread of that pool. Two such calls at the same time,
from two devices or from independent parts of one program, can hold every thread and wait for ever;
`benchmarks/standstill.py` shows it. Here every operation is an array operation over the whole
batch. Derivatives are those of the loops, or closed forms. A matrix that has no factor gives NaN,
as in LAPACK.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Float

UNROLLED = 8
"""Loops over the columns of matrices up to this size are written out in the program."""


def _over_columns(step: Callable, carry: Array, size: int, *, reverse: bool = False) -> tuple:
    """`lax.scan` of a step over column numbers."""
    numbers = jnp.arange(size)
    return lax.scan(step, carry, numbers, reverse=reverse, unroll=size if size <= UNROLLED else 1)


def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L with L Lᵀ = A, column by column: l = a_j/√a_jj, A ← A − l lᵀ (Golub and Van Loan 4.2)."""
    rows = jnp.arange(len(matrix))

    def column(rest: Array, j: Array) -> tuple[Array, Array]:
        found = jnp.where(rows >= j, rest[:, j], 0.0) / jnp.sqrt(rest[j, j])
        return rest - jnp.outer(found, found), found

    return _over_columns(column, matrix, len(matrix))[1].T


def solve_lower(factor: Float[Array, "n n"], right: Float[Array, "n *m"]) -> Float[Array, "n *m"]:
    """L⁻¹ B by forward substitution."""

    def row(rest: Array, j: Array) -> tuple[Array, Array]:
        found = rest[j] / factor[j, j]
        return rest - jnp.tensordot(factor[:, j], found, 0), found

    return _over_columns(row, right, len(factor))[1]


def solve_lower_transposed(
    factor: Float[Array, "n n"], right: Float[Array, "n *m"]
) -> Float[Array, "n *m"]:
    """L⁻ᵀ B by backward substitution."""

    def row(rest: Array, j: Array) -> tuple[Array, Array]:
        found = rest[j] / factor[j, j]
        return rest - jnp.tensordot(factor[j], found, 0), found

    return _over_columns(row, right, len(factor), reverse=True)[1]


def solve_factored(
    factor: Float[Array, "n n"], right: Float[Array, "n *m"]
) -> Float[Array, "n *m"]:
    """(L Lᵀ)⁻¹ B."""
    return solve_lower_transposed(factor, solve_lower(factor, right))


@jax.custom_jvp
def inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A⁻¹ by Gauss–Jordan elimination with partial pivoting; dA⁻¹ = −A⁻¹ dA A⁻¹."""
    size = len(matrix)
    rows = jnp.arange(size)

    def eliminate(rest: Array, j: Array) -> tuple[Array, None]:
        pivot = jnp.argmax(jnp.where(rows >= j, jnp.abs(rest[:, j]), -1.0))
        order = jnp.where(rows == j, pivot, jnp.where(rows == pivot, j, rows))
        rest = rest[order]
        first = rest[j] / rest[j, j]
        return jnp.where((rows == j)[:, None], first, rest - jnp.outer(rest[:, j], first)), None

    both = jnp.concatenate([matrix, jnp.eye(size, dtype=matrix.dtype)], 1)
    return _over_columns(eliminate, both, size)[0][:, size:]


@inverse.defjvp
def _(primals, tangents):
    found = inverse(*primals)
    return found, -found @ tangents[0] @ found


def pseudo_inverse(matrix: Float[Array, "row column"]) -> Float[Array, "column row"]:
    """A⁺, row by row (Greville 1960). Rows that are zero, or follow from others, are allowed.

    A⁺ of the rows before is P; a further row a has c = aP and d = a − cA, and P becomes
    [P − bc, b] with b = dᵀ/|d|², or b = Pcᵀ/(1 + |c|²) where d is zero but for rounding.
    """
    rows, columns = matrix.shape
    seen = jnp.arange(rows)
    tiny = columns * jnp.finfo(matrix.dtype).eps

    def add(found: Array, k: Array) -> tuple[Array, None]:
        a = matrix[k]
        c = jnp.where(seen < k, a @ found, 0.0)
        d = a - c @ matrix
        size = d @ d
        new = size > tiny * (a @ a)
        b = jnp.where(new, d / jnp.where(new, size, 1.0), found @ c / (1 + c @ c))
        return (found - jnp.outer(b, c)).at[:, k].set(b), None

    return _over_columns(add, jnp.zeros((columns, rows), matrix.dtype), rows)[0]
