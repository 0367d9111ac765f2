"""Gaussian-process vector fields: npODE and npSDE (Heinonen, Yıldız, Mannerström, Intosalmi,
Lähdesmäki 2018).

    dx/dt = f(x),   f(x) = K(x, Z) K(Z, Z)⁻¹ U,   U = L V,   L Lᵀ = K(Z, Z)

U are the values of the field at inducing points Z, whitened by L: V ~ N(0, I) under the prior. The
kernel is α² exp(−½ |x − x′|²/ℓ²), one length ℓ for each dimension. With diffusion (npSDE),

    dx = f(x) dt + g(x) dW,   ln g(x) = ln g₀ + K(x, Z) K(Z, Z)⁻¹ L V_g.

States x are the observations, standardised, or their first principal components. V, ℓ, α and the
noise are the most probable ones (MAP).
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._linear import cholesky, solve_factored, solve_lower_transposed
from hybridsde._parameters import AbstractParameter, Fixed, Positive, Relative
from hybridsde._types import Array, Bool, Float, Numbers, PRNGKeyArray
from hybridsde.baselines.base import (
    TRAINING,
    AbstractTrained,
    AbstractTrainedBaseline,
    FixedContext,
    check_own_noise,
    likelihood_terms,
    noise_of,
    seen_through,
)
from hybridsde.baselines.ode import solve
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.fit import Training
from hybridsde.forecast import Prediction, Requirements, noise_spread
from hybridsde.model import AbstractObservation
from hybridsde.model.scaling import Standardiser
from hybridsde.objective import Terms
from hybridsde.simulate.solver import euler_maruyama

JITTER = 1e-4
"""Added to the diagonal of K(Z, Z), as a share of α²."""
RIDGE = 1e-1
"""Variance of difference quotients around the field, for the field that training begins with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NpODE(FixedContext, AbstractTrainedBaseline):
    """A Gaussian-process ODE, or SDE.

    - `components`: principal components that are the states; None takes all observations.
    - `inducing`: how many inducing points, spread over the training data.
    - `diffusion`: whether paths are noisy (npSDE).
    - `given`: first rows of a series; a forecast starts at the last of them.
    - `noise`: standard deviation of a measurement; learned by default.
    """

    components: int | None = None
    inducing: int = 50
    diffusion: bool = False
    samples: int = 16
    tolerance: float | None = None
    noise: Numbers | None = None

    def check_settings(self) -> None:
        """Sizes and noise."""
        check_own_noise(self.noise, self.observations)
        for name in ("inducing", "samples"):
            check_whole(getattr(self, name), name)
        if self.components is not None:
            check_whole(self.components, "components")
            if self.components > len(self.observations):
                raise ValueError(
                    f"`components` is {self.components}, but only {len(self.observations)} columns "
                    "are observed."
                )

    @property
    def requirements(self) -> Requirements:
        """No inputs, and neighbours to begin with; the ODE is solved by diffrax."""
        package = None if self.diffusion else "diffrax"
        return Requirements(inputs=False, neighbours=True, package=package)

    @property
    def training(self) -> Training:
        """As most are."""
        return TRAINING

    @property
    def name(self) -> str:
        """As in its paper."""
        return "npSDE" if self.diffusion else "npODE"

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "GaussianProcessODE":
        """Inducing points on the data, and the field that fits difference quotients best."""
        observation = LinearDecoder.of(self, batch)
        states = observation.states(batch.values, batch.observed)
        whole = batch.observed.all(-1)
        inducing = spread_out(
            states.reshape(-1, states.shape[-1]), whole.reshape(-1), self.inducing, key=key
        )
        kernel = Kernel.of(inducing)
        steps = jnp.where(batch.steps > 0, batch.steps, 1.0)[..., None]
        velocity = jnp.diff(states, axis=1) / steps
        usable = whole[:, 1:] & whole[:, :-1] & (batch.steps > 0)
        rate = jnp.sqrt(jnp.mean(velocity**2, where=usable[..., None]))
        flat = states[:, :-1].reshape(-1, states.shape[-1])
        basis = kernel(flat, inducing) @ kernel.coloured(jnp.eye(len(inducing)))
        features = jnp.where(usable.reshape(-1, 1), basis, 0.0)
        targets = jnp.where(usable[..., None], velocity / rate, 0.0).reshape(flat.shape)
        normal = features.T @ features + RIDGE * jnp.eye(len(inducing))
        weights = solve_factored(cholesky(normal), features.T @ targets)
        spread = None
        if self.diffusion:
            spread = LogDiffusion(Positive.of(FIRST_DIFFUSION), jnp.zeros((len(inducing), 1)))
        return GaussianProcessODE(
            kernel=kernel,
            weights=weights,
            diffusion=spread,
            observation=observation,
            rate=Fixed(rate),
            context=self.given,
            samples=self.samples if self.diffusion else 1,
            tolerance=self.tolerance,
        )


FIRST_DIFFUSION = 0.1
"""G₀ at first, in spreads of a state per root of the time that a typical change takes."""


class LinearDecoder(AbstractObservation):
    """y = m + B x + ε: all observations standardised, or principal components."""

    mean_value: Fixed
    basis: Fixed
    """B."""
    lift: Fixed
    """Carries y − m back to x."""
    sd: AbstractParameter
    names: tuple[str, ...] = eqx.field(static=True)
    positive: tuple[str, ...] = eqx.field(static=True)
    limits: tuple[tuple[float, float], ...] | None = eqx.field(static=True, default=None)

    @classmethod
    def of(cls, declared: NpODE, batch: Batch) -> "LinearDecoder":
        """Measured on the training data; states have unit variance."""
        channels, seen = Standardiser.of(batch.values, batch.observed), batch.observed
        mean = channels.mean
        if declared.components is None:
            basis, lift = jnp.diag(channels.sd), jnp.diag(1 / channels.sd)
        else:
            shifted = jnp.where(seen, batch.values - mean, 0.0).reshape(-1, len(mean))
            # One matrix, before training: with nothing to split LAPACK waits for nobody.
            _, size, axes = jnp.linalg.svd(shifted, full_matrices=False)  # noqa: TID251
            kept = axes[: declared.components]
            size = size[: declared.components] / jnp.sqrt(seen.any(-1).sum())
            basis, lift = kept.T * size, kept / size[:, None]
        return cls(
            mean_value=Fixed(mean),
            basis=Fixed(basis),
            lift=Fixed(lift),
            sd=noise_of(declared.noise, batch),
            names=declared.observations,
            positive=tuple(declared.positive),
        )

    def mean(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch obs"]:
        """M + B h."""
        return self.mean_value.value + h @ self.basis.value.T

    def states(
        self, values: Float[Array, "*batch obs"], observed: Bool[Array, "*batch obs"]
    ) -> Float[Array, "*batch state"]:
        """States of recorded values; what is missing counts as the mean."""
        return jnp.where(observed, values - self.mean_value.value, 0.0) @ self.lift.value.T


class Kernel(eqx.Module):
    """The squared-exponential kernel and its inducing points."""

    inducing: Fixed
    length: Positive
    size: Positive

    @classmethod
    def of(cls, inducing: Float[Array, "point state"]) -> "Kernel":
        """Lengths of one, which is the spread of a state."""
        return cls(
            Fixed(inducing), Positive(jnp.zeros(inducing.shape[-1])), Positive(jnp.zeros(()))
        )

    def __call__(
        self, x: Float[Array, "n state"], y: Float[Array, "m state"]
    ) -> Float[Array, "n m"]:
        """α² exp(−½ |x − y|²/ℓ²)."""
        a, b = x / self.length.value, y / self.length.value
        square = jnp.sum((a[:, None] - b[None]) ** 2, -1)
        return self.size.value**2 * jnp.exp(-0.5 * square)

    def gram(self) -> Float[Array, "point point"]:
        """K(Z, Z), with a little added to its diagonal."""
        z = self.inducing.value
        return self(z, z) + JITTER * self.size.value**2 * jnp.eye(len(z))

    def coloured(self, weights: Float[Array, "point out"]) -> Float[Array, "point out"]:
        """K(Z, Z)⁻¹ L V = L⁻ᵀ V, so that f(x) = K(x, Z) times this."""
        return solve_lower_transposed(cholesky(self.gram()), weights)


class LogDiffusion(eqx.Module):
    """Ln g(x), one number for all dimensions."""

    middle: Positive
    weights: Float[Array, "point 1"]


class GaussianProcessODE(AbstractTrained):
    """The field, and how it is seen."""

    kernel: Kernel
    weights: Float[Array, "point state"]
    """V."""
    diffusion: LogDiffusion | None
    observation: LinearDecoder
    rate: Fixed
    """Typical change per unit of time."""
    context: int = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    tolerance: float | None = eqx.field(static=True)

    def paths(
        self, batch: Batch, first: int, samples: int, *, key: PRNGKeyArray
    ) -> Float[Array, "sample series time state"]:
        """Paths from row `first` on; earlier rows are as they were recorded."""
        recorded = self.observation.states(batch.values, batch.observed)
        start, times = recorded[:, first], batch.elapsed[:, first:]
        if self.diffusion is None:
            found = self._solve(start, times)
            found = jnp.broadcast_to(found, (samples, *found.shape))
        else:
            found = self._noisy(self.diffusion, start, times, samples, key=key)
        before = jnp.broadcast_to(recorded[:, :first], (samples, *recorded[:, :first].shape))
        return jnp.concatenate([before, found], 2)

    def _solve(
        self, start: Float[Array, "series state"], times: Float[Array, "series time"]
    ) -> Float[Array, "series time state"]:
        z, solved = self.kernel.inducing.value, self.kernel.coloured(self.weights)
        rate = self.rate.value

        def field(x: Float[Array, " state"]) -> Float[Array, " state"]:
            return rate * (self.kernel(x[None], z) @ solved)[0]

        return jax.vmap(lambda x, t: solve(field, x, t, tolerance=self.tolerance))(start, times)

    def _noisy(
        self,
        diffusion: LogDiffusion,
        start: Float[Array, "series state"],
        times: Float[Array, "series time"],
        samples: int,
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "sample series time state"]:
        """Euler–Maruyama, one step between two observations."""
        z, rate = self.kernel.inducing.value, self.rate.value
        both = self.kernel.coloured(jnp.concatenate([self.weights, diffusion.weights], 1))
        x = jnp.broadcast_to(start, (samples, *start.shape))
        normals = jr.normal(key, (times.shape[1] - 1, *x.shape))
        steps = rate * jnp.diff(times).T

        def step(x, given):
            dt, normal = given
            seen = self.kernel(x.reshape(-1, x.shape[-1]), z) @ both
            drift = seen[:, :-1].reshape(x.shape)
            g = diffusion.middle.value * jnp.exp(seen[:, -1].reshape(x.shape[:-1]))[..., None]
            dt = dt[:, None]
            x = euler_maruyama(x, drift, dt, g * jnp.sqrt(dt) * normal)
            return x, x

        _, later = lax.scan(step, x, (steps, normals))
        return jnp.concatenate([x[:, :, None], jnp.moveaxis(later, 0, 2)], 2)

    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """−(1/N) [Σ_n Σ_k ln p(y_k | f) + ln N(V; 0, I)], without the first rows, which are given.

        Of noisy paths, p(y_k | f) is the mean of p(y_k | x_k) over them.
        """
        x = self.paths(batch, 0, self.samples, key=key)[:, :, 1:]
        values, observed = batch.values[:, 1:], batch.observed[:, 1:]
        logs = jax.vmap(lambda x: self.observation.log_prob(values, observed, x))(x)
        logs = jax.nn.logsumexp(logs, 0) - jnp.log(self.samples)
        penalty = 0.5 * jnp.sum(self.weights**2)
        if self.diffusion is not None:
            penalty += 0.5 * jnp.sum(self.diffusion.weights**2)
        return likelihood_terms(logs.sum(-1), penalty / total)

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Paths from the last row that is given."""
        del paths_per_weight
        return seen_through(self.observation, self.paths(batch, self.context - 1, draws, key=key))

    def spreads(self) -> dict[str, Relative]:
        """The measurement noise."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """By its solver."""
        return "Tsit5" if self.diffusion is None else "EulerMaruyama"


def spread_out(
    points: Float[Array, "n state"], usable: Bool[Array, " n"], count: int, *, key: PRNGKeyArray
) -> Float[Array, "count state"]:
    """Points that cover the others: each is the one farthest from those before it."""
    first = jnp.argmax(jr.uniform(key, usable.shape) * usable)

    def distance(index: Array) -> Float[Array, " n"]:
        return jnp.where(usable, jnp.sum((points - points[index]) ** 2, -1), -1.0)

    def add(nearest: Float[Array, " n"], _: None) -> tuple[Float[Array, " n"], Array]:
        chosen = jnp.argmax(nearest)
        return jnp.minimum(nearest, distance(chosen)), chosen

    _, others = lax.scan(add, distance(first), length=count - 1)
    return points[jnp.concatenate([first[None], others])]
