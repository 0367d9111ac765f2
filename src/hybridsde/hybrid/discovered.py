"""What was learned, as equations that can be read, with errors.

Of a library, its terms in raw units. Of networks or a process, the terms that the evidence wants
for their mean drift at the recorded states, and the share of it that these explain.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.hybrid.build import feature_rows, library_of
from hybridsde.hybrid.declaration import LIBRARY, AbstractDeclaration
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.hybrid.selection import Surrogate, select
from hybridsde.hybrid.sparse import inclusion_prior, visible_terms
from hybridsde.model import BayesianSDE
from hybridsde.model.bayesian import AbstractBayesianNetwork
from hybridsde.model.both import LibraryAndNetworks
from hybridsde.model.library import Basis, BayesianLibrary
from hybridsde.physics import EquationPhysics
from hybridsde.physics.expression import (
    Call,
    Expression,
    Name,
    Number,
    names,
    substitute,
    text,
    value,
)

LEVEL = 1.645
"""Standard errors in half a 90 % interval."""
PLACES = 40
"""Points at which a term is compared with the slope of an equation in a parameter."""
DRAWS = 64
"""Networks whose drifts are averaged."""
ROWS = 300
"""Recorded states at which they are looked at, at most: neighbours say nearly the same."""
NEGLECTED = 0.02
"""A drift is not read more closely than to this share of its size."""


@dataclass(frozen=True)
class LearnedTerm:
    """One term of one equation."""

    state: str
    term: Expression
    value: float
    """The coefficient in raw units, where the term is in the equation."""
    error: float
    probability: float
    """That it is in the equation at all."""
    written: bool
    """Whether it stands in the likeliest equation, or the simplest of those about as likely."""

    @property
    def interval(self) -> tuple[float, float]:
        """Where the coefficient lies with a probability of 90 %, if the term is there."""
        return self.value - LEVEL * self.error, self.value + LEVEL * self.error

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g} · {text(self.term)}"


@dataclass(frozen=True)
class Correction:
    """A known parameter that a learned term moves."""

    name: str
    before: float
    after: float
    error: float

    def __str__(self) -> str:
        return f"{self.name}: {self.before:.4g} → {self.after:.4g} ± {self.error:.2g}"


@dataclass(frozen=True)
class Discovered:
    """The equations of a fitted model."""

    states: tuple[str, ...]
    positive: tuple[str, ...]
    known: Mapping[str, Expression]
    """Known rates, where they are given as equations."""
    terms: tuple[LearnedTerm, ...]
    """All that may be there, the likeliest of each state first."""
    corrections: tuple[Correction, ...]
    parameters: Mapping[str, float]
    """Of the known equations, after correction."""
    explained: float
    """The share of the learned drift, in mean squares over the recordings, that terms explain."""
    folded: frozenset[tuple[str, Expression]] = frozenset()
    """Terms that stand in a corrected parameter: state and term."""
    unwritten: tuple[str, ...] = ()
    """States whose known part is no equation but a Python function."""

    def likely(self, state: str) -> list[LearnedTerm]:
        """Terms of the likeliest equation of a state: those that are written down."""
        return [t for t in self.terms if t.state == state and t.written]

    def rate(self, state: str) -> Expression:
        """Known and learned together; of a positive state x, learned terms are multiplied by x."""
        known = self.known.get(state)
        beside = [t for t in self.likely(state) if (t.state, t.term) not in self.folded]
        if state not in self.positive:
            return _sum(known, beside) or Number(0.0)
        relative = _sum(None, beside)
        if relative is None:
            return known or Number(0.0)
        learned = Call("*", (Name(state), relative))
        return learned if known is None else Call("+", (known, learned))

    def learned(self, state: str) -> Expression | None:
        """The sum of the likely terms, rounded to be read; of a positive state x, that of dx/x."""
        return _sum(None, self.likely(state), digits=3)

    def equations(self) -> list[str]:
        """As text that `hybridsde.equations` and settings files read."""
        if self.unwritten:
            raise InputError(
                f"What is known of {self.unwritten[0]!r} is a Python function, so the whole cannot "
                "be written as equations; print it to read what was learned beside it."
            )
        return self.lines()

    def lines(self) -> list[str]:
        """To be read: where a known part is a Python function, it stands as `known`."""
        return [
            f"d{state} = {'known + ' * (state in self.unwritten)}{text(self.rate(state))}"
            for state in self.states
        ]

    def __str__(self) -> str:
        lines = self.lines()
        lines += [f"    {one}" for one in self.corrections]
        for one in self.terms:
            if one.probability > 0.01:
                chance = f"{one.probability:.0%}"
                lines.append(f"    d{one.state}: {one} ({chance})")
        lines.append(f"These terms explain {self.explained:.0%} of the learned drift.")
        return "\n".join(lines)


def discover(
    declared: AbstractDeclaration, model: BayesianSDE, batch: Batch, *, key: PRNGKeyArray
) -> Discovered:
    """The equations of a fitted model; `batch` are recordings that it is looked at along."""
    library = _library(model.network)
    if library is not None and library.basis.value.terms:
        basis, mean, error, probability = library_coefficients(library)
        written = np.asarray(library.written.value)
        explained = _share(declared, model, batch, library, key)
    else:
        basis, mean, error, probability, written, explained = _of_drift(declared, model, batch, key)
    rate = np.asarray(model.scale.value.rate, float)
    unit = rate / basis.raw_size()[:, None]
    count = len(basis.terms)
    apart = {
        name: Call("-", (Name(name), Number(offset)))
        for name, offset in (declared.offsets or {}).items()
    }
    carried = _carried(declared)
    terms = [
        LearnedTerm(
            state,
            substitute(basis.terms[i], apart),
            sign * float(mean[i, j] * unit[i, j]),
            float(error[i, j] * unit[i, j]),
            float(probability[i, j]),
            bool(written[i, j]),
        )
        for k, state in enumerate(declared.states)
        for j, sign in carried.get(k, ((k, 1.0),))
        for i in np.argsort(-probability[:count, j], kind="stable")
        if probability[i, j] > 0
    ]
    physics = declared.physics
    known, corrections, folded = {}, [], set()
    parameters = {}
    if isinstance(physics, EquationPhysics):
        gate = dict(zip(declared.states, np.asarray(model.known.gate.value, float), strict=True))
        known = {one.state: _behind(gate[one.state], one.rate) for one in physics.equations}
        fitted = parameters_of(model.known.physics)
        parameters = {
            name: float(np.asarray(one.value))
            for name, one in fitted.items()
            if np.ndim(one.value) == 0
        }
        corrections, folded = _corrections(declared, known, parameters, terms)
        parameters |= {one.name: one.after for one in corrections}
    return Discovered(
        tuple(declared.states),
        tuple(declared.positive),
        known,
        tuple(terms),
        tuple(corrections),
        parameters,
        explained,
        frozenset(folded),
        tuple(set(physics.known(tuple(declared.states), tuple(declared.inputs))) - set(known)),
    )


def _carried(declared: AbstractDeclaration) -> dict[int, list[tuple[int, float]]]:
    """Of states that learned flows change: the places of these, and their signs there."""
    found: dict[int, list[tuple[int, float]]] = {}
    for flow in declared.learned_flows:
        for end, sign in ((flow.source, -1.0), (flow.target, 1.0)):
            if end is not None:
                found.setdefault(end, []).append((flow.place, sign))
    return found


def _library(network: AbstractBayesianNetwork) -> BayesianLibrary | None:
    """The library of a learned part, if it has one."""
    found = network.library.value if isinstance(network, LibraryAndNetworks) else network
    return found if isinstance(found, BayesianLibrary) else None


def library_coefficients(
    network: BayesianLibrary,
) -> tuple[Basis, np.ndarray, np.ndarray, np.ndarray]:
    """Terms, mean and error of every coefficient where it is in, and how likely that is.

    In the units of the library. Of terms that are written, over the kept choices of the equation
    that is written: a coefficient means what it does beside the others. Of other terms, over all
    kept choices that hold them. Probabilities over all choices that were looked at; nothing is said
    of a term that no kept choice holds.
    """
    basis = network.basis.value
    count = len(basis.terms)
    shares = np.asarray(network.shares.value, float)
    chosen = np.asarray(network.chosen.value)
    means = np.asarray(network.means, float)
    variance = np.stack([np.sum(np.triu(f) ** 2, 1) for f in np.asarray(network.factors, float)])
    variance = variance.reshape(means.shape)
    written = np.asarray(network.written.value)
    same = (chosen == written).all(1)  # choice × state
    whole = shares[:, None, None] * chosen
    as_written = np.where(same[:, None], whole, 0.0)
    weight = np.where(written & (as_written.sum(0) > 0), as_written, whole)
    share = weight.sum(0)
    inside = np.where(share > 0, weight / np.where(share > 0, share, 1), 0)
    mean = (inside * means).sum(0)
    spread = (inside * (variance + (means - mean) ** 2)).sum(0)
    probability = np.where(share > 0, np.asarray(network.likely.value, float), 0.0)
    return basis, mean[:count], np.sqrt(spread)[:count], np.clip(probability, 0.0, 1.0)[:count]


def _share(
    declared: AbstractDeclaration,
    model: BayesianSDE,
    batch: Batch,
    library: BayesianLibrary,
    key: PRNGKeyArray,
) -> float:
    """How much of a mean drift its terms make up, beside bumps and networks."""
    basis = library.basis.value
    learned = model.network
    if basis.bumps is None and not isinstance(learned, LibraryAndNetworks):
        return 1.0
    rows, weights = feature_rows(declared, batch, model.scale.value)
    values = jax.vmap(basis)(rows)
    mean = library.mean().coefficients
    count = len(basis.terms)
    whole, read = values @ mean, values[:, :count] @ mean[:count]
    if isinstance(learned, LibraryAndNetworks):
        each = jax.vmap(lambda key: _rest(learned, rows, key))(jr.split(key, DRAWS))
        whole = whole + each.mean(0)
    left = jnp.sum(weights[:, None] * (whole - read) ** 2)
    return float(1 - left / jnp.maximum(jnp.sum(weights[:, None] * whole**2), 1e-30))


def _rest(
    network: LibraryAndNetworks, rows: Float[Array, "row feature"], key: PRNGKeyArray
) -> Float[Array, "row state"]:
    """What one draw of the networks adds to the terms."""
    drawn = network.networks.sample(key=key)
    return jax.vmap(lambda x: drawn(x, None))(rows)


def _of_drift(
    declared: AbstractDeclaration, model: BayesianSDE, batch: Batch, key: PRNGKeyArray
) -> tuple[Basis, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Spike and slab on the drifts of several networks at recorded states, for each state."""
    scale = model.scale.value
    library = library_of(replace(declared, learned=LIBRARY), batch, scale)
    basis = library.basis.value
    rows, weights = feature_rows(declared, batch, scale)
    keep = np.flatnonzero(np.asarray(weights) > 0)
    keep = keep[:: max(1, len(keep) // ROWS)]
    rows = rows[keep]

    states, inputs = len(declared.states), len(declared.inputs)
    h, u = scale.states.inverse(rows[:, :states]), jnp.zeros((len(rows), 0))
    if inputs:
        u = scale.inputs.inverse(rows[:, -inputs:])
    clock = jnp.zeros(len(rows)) if model.autonomous else scale.time.inverse(rows[:, states])

    def drift(key: PRNGKeyArray) -> Float[Array, "row state"]:
        learned = model.driven_by(model.weights.draw(model.network, key=key)).learned
        learned = replace(learned, flows=())  # amounts are read off, and then carried
        return jax.vmap(lambda t, h, u: learned(t, h, u, None))(clock, h, u) / scale.rate

    drawn = np.asarray(jax.vmap(drift)(jr.split(key, DRAWS)), float)
    values = np.asarray(jax.vmap(basis)(rows), float)
    middle, spread = drawn.mean(0), drawn.std(0)
    allowed = visible_terms(model, basis)
    shape = (len(basis.terms), len(declared.states))
    mean, error, probability = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    written = np.zeros(shape, bool)
    chance = inclusion_prior(basis.terms)
    left = 0.0
    for j in range(shape[1]):
        blur = np.mean(spread[:, j] ** 2) + NEGLECTED**2 * np.mean(middle[:, j] ** 2) + 1e-12
        noise = blur + np.mean(middle[:, j] ** 2)
        for _ in range(5):
            h = values.T @ values / noise
            b = values.T @ middle[:, j] / noise
            odds = np.log(chance / (1 - chance))
            surrogate = Surrogate(b, h, (b, h), np.ones(shape[0]), odds)
            none = np.zeros(shape[0], bool)
            found = select(surrogate, (), allowed[:, j], none, np.zeros(shape[0]), 8)
            best = np.flatnonzero(found.written).tolist()
            fitted = np.zeros(shape[0])
            if best:
                fitted[best] = surrogate.posterior(tuple(best))[0]
            residual = middle[:, j] - values @ fitted
            noise = blur + np.mean(residual**2)
        probability[:, j], mean[:, j], written[:, j] = found.inclusion, fitted, found.written
        if best:
            root = surrogate.posterior(tuple(best))[1]
            error[best, j] = np.sqrt(np.sum(root**2, 1))
        left += float(np.mean(residual**2))
    explained = 1 - left / max(float(np.mean(middle**2, 0).sum()), 1e-30)
    return basis, mean, error, probability, written, explained


def _corrections(
    declared: AbstractDeclaration,
    known: Mapping[str, Expression],
    parameters: Mapping[str, float],
    terms: list[LearnedTerm],
) -> tuple[list[Correction], set[tuple[str, Expression]]]:
    """Terms that are what an equation changes by when a parameter of it does.

    Where ∂r/∂ξ is a number k times the term everywhere, a coefficient c moves ξ by c/k.
    """
    rows = _places(declared)
    corrections, folded = [], set()
    for name in parameters:
        where = [state for state, one in known.items() if name in {n.name for n in names(one)}]
        if len(where) != 1:
            continue
        state = where[0]

        def slope(number: float, row, state=state, name=name) -> Array:
            def rate(xi: Array) -> Array:
                others = {key: jnp.asarray(one) for key, one in parameters.items()}
                return value(known[state], {**others, **row, name: xi})

            found = jax.grad(rate)(jnp.asarray(float(number)))
            return found / row[state] if state in declared.positive else found

        here = np.array([float(slope(parameters[name], row)) for row in rows])
        there = np.array([float(slope(2 * parameters[name] + 1, row)) for row in rows])
        if not np.allclose(here, there, rtol=1e-4):
            continue
        for one in terms:
            if one.state != state or not one.written:
                continue
            if (one.state, one.term) in folded:
                continue
            size = np.array([float(value(one.term, row)) for row in rows])
            usable = np.abs(size) > 1e-6 * np.abs(size).max()
            ratio = here[usable] / size[usable]
            if len(ratio) and np.allclose(ratio, ratio[0], rtol=1e-3) and abs(ratio[0]) > 1e-12:
                moved = parameters[name] + one.value / ratio[0]
                error = one.error / abs(ratio[0])
                corrections.append(Correction(name, parameters[name], moved, error))
                folded.add((one.state, one.term))
                break
    return corrections, folded


def _behind(gate: float, rate: Expression) -> Expression:
    """γ r, without a factor of one."""
    return rate if gate == 1 else Call("*", (Number(float(f"{gate:.6g}")), rate))


def _places(declared: AbstractDeclaration) -> list[dict[str, Array]]:
    """Points with nothing in common."""
    rng = np.random.default_rng(0)
    known = (*declared.states, *declared.inputs, "t")
    numbers = rng.uniform(0.5, 2.0, (PLACES, len(known)))
    return [
        {name: jnp.asarray(float(one)) for name, one in zip(known, row, strict=True)}
        for row in numbers
    ]


def _times(number: float, term: Expression) -> Expression:
    """A number in front of a product, without brackets."""
    if term == Number(1.0):
        return Number(number)
    if isinstance(term, Call) and term.function == "*":
        return Call("*", (_times(number, term.arguments[0]), term.arguments[1]))
    return Call("*", (Number(number), term))


def _sum(known: Expression | None, terms: list[LearnedTerm], digits: int = 6) -> Expression | None:
    """A sum in which negative coefficients become a minus."""
    total = known
    for one in terms:
        number = float(f"{one.value:.{digits}g}")
        if total is None:
            total = _times(number, one.term)
        else:
            sign = "-" if number < 0 else "+"
            total = Call(sign, (total, _times(abs(number), one.term)))
    return total
