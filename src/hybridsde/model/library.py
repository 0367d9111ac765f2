"""A drift that is linear in its coefficients, and distributions over them.

Its columns are terms that can be read, such as x*y, of which few are used, and bumps about points
of the recordings, which together are a Gaussian process.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import combinations_with_replacement

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from scipy.stats import norm, qmc

from hybridsde._linear import cholesky, solve_lower
from hybridsde._parameters import Fixed
from hybridsde._random import normals
from hybridsde._types import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Scalar, UInt32
from hybridsde.model.bayesian import AbstractBayesianNetwork
from hybridsde.model.network import AbstractNetwork
from hybridsde.model.scaling import Standardiser
from hybridsde.physics.expression import (
    CONSTANTS,
    FUNCTIONS,
    Call,
    Expression,
    Name,
    Number,
    text,
    value,
)

MOST_FACTORS = 6
"""Products with higher powers are computed one by one."""
JITTER = 1e-4
"""Added to the diagonal of a kernel matrix of ones."""


def polynomials(features: Sequence[str], degree: int) -> tuple[Expression, ...]:
    """Every product of up to `degree` features, the constant first: 1, x, y, x^2, x*y, y^2, …"""
    found: list[Expression] = [Number(1.0)]
    for total in range(1, degree + 1):
        for chosen in combinations_with_replacement(features, total):
            powers = {name: chosen.count(name) for name in dict.fromkeys(chosen)}
            factors = [
                Name(name) if power == 1 else Call("^", (Name(name), Number(float(power))))
                for name, power in powers.items()
            ]
            product = factors[0]
            for factor in factors[1:]:
                product = Call("*", (product, factor))
            found.append(product)
    return tuple(found)


def powers(term: Expression) -> dict[str, int] | None:
    """The exponent of every name in a product; None where a term is no product of names."""
    if isinstance(term, Name):
        return None if term.name in CONSTANTS else {term.name: 1}
    if term == Number(1.0):
        return {}
    if not isinstance(term, Call) or term.function not in ("*", "^"):
        return None
    first, second = term.arguments
    if term.function == "^":
        if not (isinstance(first, Name) and isinstance(second, Number)):
            return None
        return {first.name: int(second.value)} if second.value.is_integer() else None
    found = powers(first), powers(second)
    if found[0] is None or found[1] is None:
        return None
    return {n: found[0].get(n, 0) + found[1].get(n, 0) for n in {**found[0], **found[1]}}


class Bumps(eqx.Module):
    """Functions whose random sums are a Gaussian process: φ(x) = L⁻¹ k(x, Z), L Lᵀ = k(Z, Z).

    With k(x, z) = exp(−½ |x − z|²/ℓ²) and independent standard normal coefficients, the covariance
    of a sum is k(x, Z) k(Z, Z)⁻¹ k(Z, x'): the process, seen through the points Z
    (Quiñonero-Candela and Rasmussen 2005).
    """

    points: Float[Array, "point feature"]
    length: Float[Array, ""]
    whiten: Float[Array, "point point"]
    """L⁻¹, computed once."""

    @classmethod
    def of(
        cls, rows: Float[Array, "row feature"], count: int, length: Float[Array, ""] | float
    ) -> "Bumps":
        """Points far from each other among the rows, each the farthest from those before it."""
        middle = jnp.argmin(jnp.sum((rows - rows.mean(0)) ** 2, 1))

        def farthest(carry, _):
            nearest, at = carry
            nearest = jnp.minimum(nearest, jnp.sum((rows - rows[at]) ** 2, 1))
            return (nearest, jnp.argmax(nearest)), rows[at]

        start = (jnp.full(len(rows), jnp.inf), middle)
        _, points = lax.scan(farthest, start, length=count)
        between = jax.vmap(lambda x: _kernel(points, x, length))(points)
        eye = jnp.eye(count, dtype=rows.dtype)
        root = cholesky(between + JITTER * eye)
        whiten = solve_lower(root, eye)
        return cls(points, jnp.asarray(length, rows.dtype), whiten)

    def __call__(self, x: Float[Array, " feature"]) -> Float[Array, " point"]:
        """All functions at standardised features."""
        return self.whiten @ _kernel(self.points, x, self.length)


def _kernel(
    points: Float[Array, "point feature"],
    x: Float[Array, " feature"],
    length: Float[Array, ""] | float,
) -> Float[Array, " point"]:
    """exp(−½ |x − z|²/ℓ²) for every point z."""
    return jnp.exp(-0.5 * jnp.sum(((points - x) / length) ** 2, -1))


class Basis(eqx.Module):
    """Terms of raw features, each divided by its root mean square over the rows; and bumps.

    Products are formed of features in units of their own size, so that the third power of a large
    number does not leave single precision.
    """

    terms: tuple[Expression, ...] = eqx.field(static=True)
    features: tuple[str, ...] = eqx.field(static=True)
    logarithms: tuple[bool, ...] = eqx.field(static=True)
    """Which features are logarithms of what the terms name."""
    scale: Standardiser
    """Of the features as the model sees them."""
    low: Float[Array, " feature"]
    high: Float[Array, " feature"]
    """Standardised features are held inside these."""
    size: Float[Array, " term"]
    """Root mean squares of the terms, of products in those units."""
    bumps: Bumps | None = None

    @classmethod
    def of(
        cls,
        terms: tuple[Expression, ...],
        features: tuple[str, ...],
        logarithms: tuple[bool, ...],
        scale: Standardiser,
        limits: tuple[Float[Array, " feature"], Float[Array, " feature"]],
        rows: Float[Array, "row feature"],
        weights: Float[Array, " row"],
    ) -> "Basis":
        """With the root mean square of every term over standardised rows that count."""
        unit = jnp.ones(len(terms), rows.dtype)
        found = cls(terms, features, logarithms, scale, *limits, unit)
        values = jax.vmap(found)(rows)
        square = jnp.sum(weights[:, None] * values**2, 0) / jnp.maximum(jnp.sum(weights), 1.0)
        size = jnp.sqrt(square)
        usable = jnp.isfinite(size) & (size > 0)
        return eqx.tree_at(lambda basis: basis.size, found, jnp.where(usable, size, 1.0))

    @property
    def columns(self) -> int:
        """How many functions there are."""
        return len(self.terms) + (0 if self.bumps is None else len(self.bumps.points))

    @property
    def names(self) -> tuple[str, ...]:
        """The terms as text."""
        return tuple(text(term) for term in self.terms)

    @property
    def units(self) -> Float[Array, " feature"]:
        """The size of every feature."""
        size = jnp.sqrt(self.scale.mean**2 + self.scale.sd**2)
        return jnp.where(np.array(self.logarithms), jnp.exp(self.scale.mean), size)

    def raw_size(self) -> Float[np.ndarray, " term"]:
        """Root mean squares of the terms in raw units, in double precision."""
        units = dict(zip(self.features, np.asarray(self.units, float), strict=True))
        factors = [
            np.prod([units[name] ** power for name, power in (powers(term) or {}).items()])
            for term in self.terms
        ]
        return np.asarray(self.size, float) * np.array(factors)

    def __call__(self, x: Float[Array, " feature"]) -> Float[Array, " column"]:
        """All functions at standardised features."""
        inside = jnp.clip(x, self.low, self.high)
        raw = self.scale.inverse(inside)
        raw = jnp.where(np.array(self.logarithms), jnp.exp(raw), raw)
        read = self._terms(raw) / self.size
        return read if self.bumps is None else jnp.concatenate([read, self.bumps(inside)])

    def _terms(self, raw: Float[Array, " feature"]) -> Float[Array, " term"]:
        """All terms: products together, functions of single features together, others singly.

        A program with an operation for every term would take long to compile.
        """
        if not self.terms:
            return jnp.zeros(0, raw.dtype)
        small, place = raw / self.units, {name: i for i, name in enumerate(self.features)}
        products, functions, others = _kinds(self.terms)
        order, found = [*products], []
        if products:
            factors = np.zeros((max(1, *map(len, products.values())), len(products)), int)
            for column, names in enumerate(products.values()):
                factors[: len(names), column] = [1 + place[name] for name in names]
            padded = jnp.concatenate([jnp.ones(1, raw.dtype), small])
            found.append(reduce(jnp.multiply, [padded[row] for row in factors]))
        for function, arguments in functions.items():
            order += arguments
            found.append(FUNCTIONS[function](raw[np.array([place[n] for n in arguments.values()])]))
        given = dict(zip(self.features, raw, strict=True))
        scaled = dict(zip(self.features, small, strict=True))
        for i in others:
            order.append(i)
            term = self.terms[i]
            one = value(term, given if powers(term) is None else scaled)
            found.append(jnp.asarray(one, raw.dtype)[None])
        return jnp.concatenate(found)[np.argsort(order)]


def _kinds(
    terms: tuple[Expression, ...],
) -> tuple[dict[int, list[str]], dict[str, dict[int, str]], list[int]]:
    """Places of products with their factors, of functions of one name by function, of the rest."""
    products: dict[int, list[str]] = {}
    functions: dict[str, dict[int, str]] = {}
    others = []
    for i, term in enumerate(terms):
        exponents = powers(term)
        if exponents is not None and all(
            0 <= power <= MOST_FACTORS for power in exponents.values()
        ):
            products[i] = [name for name, power in exponents.items() for _ in range(power)]
            continue
        match term:
            case Call(function, (Name(name),)) if function in FUNCTIONS and name not in CONSTANTS:
                functions.setdefault(function, {})[i] = name
            case _:
                others.append(i)
    return products, functions, others


class Library(AbstractNetwork):
    """f(x) = Φ(x) C: linear in its coefficients."""

    coefficients: Float[Array, "column state"]
    basis: Fixed
    layers: tuple = ()

    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """Nothing."""
        del paths, steps, key

    def __call__(self, x: Float[Array, " feature"], noise: PyTree = None) -> Float[Array, " state"]:
        """The sum of all columns."""
        del noise
        return self.basis.value(x) @ self.coefficients


class BayesianLibrary(AbstractBayesianNetwork):
    """Coefficients of which few are not zero, under several choices of the few.

    A choice s has the share w_s and Gaussian coefficients N(m_s, F_s F_sᵀ), zero outside of it.
    Under the prior each coefficient is zero with probability 1 − π, else N(0, τ²): spike and slab
    (Mitchell and Beauchamp 1988).
    """

    means: Float[Array, "choice column state"]
    factors: Float[Array, "choice coefficient coefficient"]
    """Upper triangular roots of the covariances; coefficients in the order of column, state."""
    chosen: Fixed
    """Which coefficients are in a choice: choice × column × state."""
    shares: Fixed
    """w_s, which add up to one."""
    basis: Fixed
    slab: Fixed
    """τ, column × state."""
    inclusion: Fixed
    """π, column × state; one for what is always in."""
    likely: Fixed
    """How likely each coefficient is in, given the data, column × state: over all choices that were
    looked at, of which those that are kept are a part or a sample."""
    written: Fixed
    """Which coefficients stand in the equations that are written down, column × state."""

    @classmethod
    def nothing(cls, basis: Basis, states: int, choices: int) -> "BayesianLibrary":
        """Every coefficient zero for certain."""
        shape = (basis.columns, states)
        count = basis.columns * states
        return cls(
            jnp.zeros((choices, *shape)),
            jnp.zeros((choices, count, count)),
            Fixed(jnp.zeros((choices, *shape), bool)),
            Fixed(jnp.full(choices, 1 / choices)),
            Fixed(basis),
            Fixed(jnp.ones(shape)),
            Fixed(jnp.full(shape, 0.5)),
            Fixed(jnp.zeros(shape)),
            Fixed(jnp.zeros(shape, bool)),
        )

    def with_choices(
        self,
        choices: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
        shares: Float[np.ndarray, " choice"],
        likely: Float[np.ndarray, " coefficient"] | None = None,
        written: Bool[np.ndarray, " coefficient"] | None = None,
    ) -> "BayesianLibrary":
        """With these choices: which coefficients, their means, and a root of their covariance.

        Coefficients are as `likely` as the choices that hold them, and those of the likeliest
        choice are `written`, unless it is known better.
        """
        kept, columns, states = self.means.shape
        count = columns * states
        means, factors = np.zeros((kept, count)), np.zeros((kept, count, count))
        chosen, all_shares = np.zeros((kept, count), bool), np.zeros(kept)
        all_shares[: len(shares)] = shares
        for k, (s, mean, root) in enumerate(choices):
            chosen[k, s], means[k, s] = True, mean
            factors[k][np.ix_(s, s)] = root
        found = all_shares @ chosen if likely is None else likely
        read = chosen[np.argmax(all_shares)] if written is None else written
        return eqx.tree_at(
            lambda n: (n.means, n.factors, n.chosen, n.shares, n.likely, n.written),
            self,
            (
                jnp.asarray(means.reshape(kept, columns, states), jnp.float32),
                jnp.asarray(factors, jnp.float32),
                Fixed(jnp.asarray(chosen.reshape(kept, columns, states))),
                Fixed(jnp.asarray(all_shares, jnp.float32)),
                Fixed(jnp.asarray(found.reshape(columns, states), jnp.float32)),
                Fixed(jnp.asarray(read.reshape(columns, states))),
            ),
        )

    @property
    def turns(self) -> int:
        """One."""
        return 1

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> Library:
        """One choice by its share, and coefficients."""
        del number
        lot_key, normal_key = jr.split(key)
        lot = jr.categorical(lot_key, jnp.log(self.shares.value))
        chosen = self.chosen.value[lot]
        root = _root(self.factors[lot], chosen)
        moved = root @ normals(normal_key, (len(root),), root.dtype)
        mean = jnp.where(chosen, self.means[lot], 0.0)
        return Library(coefficients=mean + moved.reshape(mean.shape), basis=self.basis)

    def local(self) -> AbstractNetwork:
        """Refused: coefficients are held along a path."""
        raise ValueError("Coefficients are held along a path: they cannot be redrawn by call.")

    def mean(self) -> Library:
        """The mean over choices and coefficients, which gives the mean drift."""
        means = jnp.where(self.chosen.value, self.means, 0.0)
        mean = jnp.tensordot(self.shares.value, means, 1)
        return Library(coefficients=mean, basis=self.basis)

    def covariance(self) -> Float[Array, "coefficient coefficient"]:
        """Of the coefficients over all choices: Σ_s w_s (F_s F_sᵀ + (m_s − m)(m_s − m)ᵀ)."""
        shares, chosen = self.shares.value, self.chosen.value
        roots = jax.vmap(_root)(self.factors, chosen)
        apart = jnp.where(chosen, self.means, 0.0) - self.mean().coefficients
        flat = apart.reshape(len(shares), -1)
        inside = jnp.einsum("s,sij,skj->ik", shares, roots, roots)
        return inside + jnp.einsum("s,si,sk->ik", shares, flat, flat)

    def kl_to_prior(self) -> Scalar:
        """Σ_s w_s [ln w_s + KL(N(m_s, Σ_s) ‖ N(0, τ²)) − ln p(s)]: not less than KL(q ‖ prior).

        By convexity: q and the prior are mixtures of the same pieces, and the prior holds a piece
        for every s, with p(s) = Π π Π (1 − π).
        """
        slab, inclusion = self.slab.value, self.inclusion.value

        def of_choice(mean, factor, chosen) -> Scalar:
            root = _root(factor, chosen)
            inside = chosen.reshape(-1)
            tau = slab.reshape(-1)
            spread = jnp.sum(root**2, 1) / tau**2
            shift = (mean.reshape(-1) / tau) ** 2
            steep = jnp.log(jnp.abs(jnp.where(inside, jnp.diag(root), 1.0)) + 1e-30)
            gaussian = 0.5 * (spread + shift - 1) + jnp.log(tau) - steep
            sure = inclusion >= 1
            here = jnp.log(inclusion)
            gone = jnp.where(sure, 0.0, jnp.log1p(-jnp.where(sure, 0.5, inclusion)))
            prior = jnp.sum(jnp.where(chosen, here, gone))
            return jnp.sum(jnp.where(inside, gaussian, 0.0)) - prior

        each = jax.vmap(of_choice)(self.means, self.factors, self.chosen.value)
        shares = self.shares.value
        logs = jnp.log(jnp.where(shares > 0, shares, 1.0))
        return jnp.sum(shares * jnp.where(shares > 0, each + logs, 0.0))


def _root(
    factor: Float[Array, "coefficient coefficient"], chosen: Bool[Array, "column state"]
) -> Float[Array, "coefficient coefficient"]:
    """The root of a covariance, zero outside a choice."""
    inside = chosen.reshape(-1)
    return jnp.where(inside[:, None] & inside, jnp.triu(factor), 0.0)


def standard_rows(count: int, features: int) -> Float[np.ndarray, "row feature"]:
    """Standard normals that fill space evenly, the same always: for what was not measured."""
    return norm.ppf(qmc.Halton(max(features, 1), scramble=False).random(count + 1)[1:])
