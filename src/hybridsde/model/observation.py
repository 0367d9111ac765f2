"""What is measured of the state, with Gaussian noise."""

import abc
import math
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._linear import pseudo_inverse
from hybridsde._parameters import AbstractParameter, Bounded, Fixed, Positive
from hybridsde._types import Array, Bool, Float, PRNGKeyArray
from hybridsde.data.checks import check_names


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


class AbstractObservation(eqx.Module):
    """y = g(h) + ε, ε ~ N(0, diag σ²)."""

    sd: eqx.AbstractVar[AbstractParameter]
    names: eqx.AbstractVar[tuple[str, ...]]
    positive: eqx.AbstractVar[tuple[str, ...]]
    """Observations that are modelled by their logarithm."""
    limits: eqx.AbstractVar[tuple[tuple[float, float], ...] | None]
    """What the sensors of the observations can show; None: anything."""

    @abc.abstractmethod
    def mean(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch obs"]:
        """g(h), in the notation of the class."""

    def raw(self, y: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
        """Observations in the units of the data: eʸ where y is a logarithm, inside the limits."""
        shown = jnp.where(self._logarithms(), jnp.exp(y), y) if self.positive else y
        if self.limits is None:
            return shown
        low, high = np.array(self.limits, shown.dtype).T
        return jnp.clip(shown, low, high)

    def expected(
        self, y: Float[Array, "*batch obs"], sd: Float[Array, "*#batch obs"]
    ) -> Float[Array, "*batch obs"]:
        """E raw(y + ε), ε ~ N(0, sd²): exp(y + sd²/2) where y is a logarithm (lognormal mean).

        Limits of sensors are those of `raw`: what noise does beyond them is left out.
        """
        return self.raw(jnp.where(self._logarithms(), y + sd**2 / 2, y) if self.positive else y)

    def numbers(self, raw: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
        """The inverse of `raw` without limits: logarithms where an observation is one."""
        if not self.positive:
            return raw
        return jnp.where(self._logarithms(), jnp.log(jnp.maximum(raw, 0.0)), raw)

    def shown(self, y: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
        """What sensors show of observations in the numbers of the model: no more than they can."""
        if self.limits is None:
            return y
        low, high = np.array(self.ends, y.dtype).T
        return jnp.clip(y, low, high)

    @property
    def ends(self) -> tuple[tuple[float, float], ...] | None:
        """The limits in the numbers of the model: logarithms where an observation is one."""
        if self.limits is None:
            return None
        return tuple(
            (_log(low), _log(high)) if name in self.positive else (low, high)
            for name, (low, high) in zip(self.names, self.limits, strict=True)
        )

    def log_slope(self, y: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
        """Ln |d raw/dy|, which carries densities of y over to densities of raw values."""
        return jnp.where(self._logarithms(), y, 0.0) if self.positive else jnp.zeros_like(y)

    def _logarithms(self) -> np.ndarray:
        return np.array([name in self.positive for name in self.names])

    def log_prob(
        self,
        values: Float[Array, "*batch obs"],
        observed: Bool[Array, "*batch obs"],
        h: Float[Array, "*batch state"],
    ) -> Float[Array, "*batch"]:
        """Ln p(y | h), summed over what was observed."""
        sd = self.sd.value
        z = (values - self.mean(h)) / sd
        density = -0.5 * z**2 - jnp.log(sd) - 0.5 * jnp.log(2 * jnp.pi)
        return jnp.sum(jnp.where(observed, density, 0.0), -1)

    def sample(
        self, h: Float[Array, "*batch state"], *, key: PRNGKeyArray
    ) -> Float[Array, "*batch obs"]:
        """One noisy observation of every state."""
        mean = self.mean(h)
        return mean + self.sd.value * jr.normal(key, mean.shape, mean.dtype)


class GaussianObservation(AbstractObservation):
    """y = C h + ε, ε ~ N(0, diag σ²).

    σ is fixed, or learned above a floor, so that the density stays bounded by
    B̄ = Π (2πσ²)^−½ as Theorem 1 of Haussmann et al. 2021 requires.
    """

    matrix: Fixed
    sd: AbstractParameter
    names: tuple[str, ...] = eqx.field(static=True)
    orthonormal: bool = eqx.field(static=True)
    """Whether the rows of C are orthonormal, as they are when states are measured directly."""
    positive: tuple[str, ...] = eqx.field(static=True, default=())
    """Observations that are modelled by their logarithm."""
    limits: tuple[tuple[float, float], ...] | None = eqx.field(static=True, default=None)
    """What the sensors of the observations can show; None: anything."""

    def mean(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch obs"]:
        """C h."""
        return h @ self.matrix.value.T

    def split_state(
        self, observed: Bool[Array, " obs"]
    ) -> tuple[Float[Array, "state obs"], Float[Array, "state state"]]:
        """A⁺ and I − A⁺A, where A holds the observed rows of C.

        The first carries observations back to states, the second keeps what they leave open. It
        is exactly zero where nothing is left open, so that no rounding error reaches a gradient.
        """
        rows = jnp.where(observed[:, None], self.matrix.value, 0.0)
        inverse = rows.T if self.orthonormal else pseudo_inverse(rows)
        remainder = jnp.eye(rows.shape[1]) - inverse @ rows
        return inverse, jnp.where(jnp.abs(remainder) < 1e-5, 0.0, remainder)


def observation_matrix(
    observed: Sequence[str] | Mapping[str, Mapping[str, float]] | None, states: tuple[str, ...]
) -> tuple[tuple[str, ...], Float[np.ndarray, "obs state"]]:
    """Names of the observations and C, from a list of states or linear combinations of them."""
    if observed is None:
        return states, np.eye(len(states))
    check_names(tuple(observed) if isinstance(observed, Mapping) else observed, "observed")
    if not isinstance(observed, Mapping):
        observed = {name: {name: 1.0} for name in observed}
    if not observed:
        raise ValueError("`observed` is empty. Name at least one observed state.")
    rows = []
    for what, combination in observed.items():
        if not isinstance(combination, Mapping):
            raise ValueError(
                f"`observed` must say which states make up {what!r}, such as "
                f"{{{states[0]!r}: 1.0}}, but says {combination!r}."
            )
        for name in combination:
            if name not in states:
                raise ValueError(
                    f"`observed` uses {name!r}, but the states are {', '.join(states)}."
                )
        row = [float(combination.get(name, 0.0)) for name in states]
        if not np.isfinite(row).all() or not np.any(row):
            raise ValueError(f"`observed` gives {what!r} the weights {row}: none may be missing.")
        rows.append(row)
    return tuple(observed), np.array(rows)


def has_orthonormal_rows(matrix: Float[np.ndarray, "obs state"]) -> bool:
    """Whether CCᵀ is the identity."""
    return np.allclose(matrix @ matrix.T, np.eye(len(matrix)))


def check_bounded(noise: AbstractParameter) -> None:
    """Learned noise stays above zero, or the density would have no bound."""
    safe = isinstance(noise, Fixed)
    safe |= isinstance(noise, Positive) and noise.floor > 0
    safe |= isinstance(noise, Bounded) and noise.low > 0
    if not safe:
        raise ValueError(
            "`noise` must be bounded below when it is learned, or training may drive it to zero. "
            "Use `Positive.of(value, floor=…)` with a positive floor."
        )


def check_noise(sd: np.ndarray, names: tuple[str, ...]) -> None:
    """Observation noise is positive, one number or one per observation."""
    if sd.shape not in {(), (len(names),)}:
        raise ValueError(
            f"`noise` must be a number or {len(names)} numbers for the observations "
            f"{', '.join(names)}, but has shape {sd.shape}."
        )
    if not (np.isfinite(sd) & (sd > 0)).all():
        raise ValueError(
            f"`noise` must be positive, but is {sd.tolist()}. It is the standard deviation of a "
            "measurement; a small one is fine, none is not."
        )
