"""Do certificates hold, and how tight are they? Many independent repetitions as one program.

    python benchmarks/certificates.py [--repetitions 200] [--trajectories 100]

Lotka–Volterra (2, 1, 4, 1), noise (0.2, 0.3), measured with error 0.1 at 50 times up to 1. The prey
equation is known with parameters off by N(0, 0.3²), the predator equation is not; a network 2-12-2
is learned. In every repetition half of the trajectories give the prior, all of them the posterior,
and the other half the certificates. What they promise is compared with the mean loss on fresh
trajectories. Prints Markdown.
"""

import argparse
import time

import hybridsde as hs

hs.use_all_cores()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax.random as jr  # noqa: E402
import numpy as np  # noqa: E402
from scipy import stats  # noqa: E402

from hybridsde._devices import over_seeds  # noqa: E402
from hybridsde.certify import (  # noqa: E402
    BandMiss,
    GibbsRisk,
    Hypothesis,
    IntervalMiss,
    Offset,
    ScaledCRPS,
    TemperedLikelihood,
    TruncatedError,
    sample_losses,
)
from hybridsde.certify.bounds import (  # noqa: E402
    betting_bound,
    catoni_bound,
    clopper_pearson_bound,
    holdout_kl_bound,
    kl_bound,
    ub_bound,
)
from hybridsde.certify.inequalities import (  # noqa: E402
    choose_offset,
    clopper_pearson,
    conformal_rank,
    unexpected_bernstein,
)
from hybridsde.certify.sampling import sample_band_scores  # noqa: E402
from hybridsde.hybrid import SDEForecaster  # noqa: E402
from hybridsde.hybrid.forecaster import only_weights  # noqa: E402

TIMES, HORIZON, FINE = 50, 1.0, 10
TRUE = np.array([2.0, 1.0, 4.0, 1.0])
G, SIGMA = (0.2, 0.3), 0.1
STARTS = (jnp.array([3.0, 1.0]), jnp.array([6.0, 3.0]))
DELTA = 0.05
DRAWS = 4000
SOLVER = hs.EulerMaruyama()
MIXTURE = Hypothesis(39, 1)
"""The finished forecaster: sampled futures, each with its own weights."""


def record(count: int, *, key) -> hs.Batch:
    """Fresh trajectories, simulated with finer steps than the model takes."""
    start_key, noise_key, seen_key = jr.split(key, 3)
    dt = HORIZON / TIMES / FINE

    def step(h, dw):
        x, y = h[:, 0], h[:, 1]
        drift = jnp.stack([TRUE[0] * x - TRUE[1] * x * y, -TRUE[2] * y + TRUE[3] * x * y], -1)
        h = h + drift * dt + jnp.array(G) * jnp.sqrt(dt) * dw
        return h, h

    h0 = jr.uniform(start_key, (count, 2), minval=STARTS[0], maxval=STARTS[1])
    _, path = jax.lax.scan(step, h0, jr.normal(noise_key, (TIMES * FINE, count, 2)))
    states = jnp.concatenate([h0[None], path[FINE - 1 :: FINE]]).swapaxes(0, 1)
    return hs.Batch.regular(states + SIGMA * jr.normal(seen_key, states.shape), HORIZON / TIMES)


def prey(x, y, theta1, theta2):
    """The equation that is known."""
    return {"x": theta1 * x - theta2 * x * y}


def declare(errors) -> hs.HybridSDE:
    """The hybrid model of one repetition."""
    known = {"theta1": TRUE[0] + errors[0], "theta2": TRUE[1] + errors[1]}
    return hs.HybridSDE(
        states=("x", "y"),
        physics=hs.known_drift(prey, **known),
        diffusion=G,
        noise=SIGMA,
        hidden=(12,),
        activation="tanh",
        start="uncertain",
    )


def half(batch: hs.Batch, part: slice) -> hs.Batch:
    """Some of the trajectories of every repetition."""
    return jax.tree.map(lambda leaf: leaf[:, part], batch)


def spread(batch: hs.Batch):
    """Of each state, in every repetition."""
    return jnp.std(batch.values, (1, 2))


@eqx.filter_jit
def losses_of(forecasters, batch, losses, hypothesis, draws, keys):
    """Losses of every repetition's forecasts: repetition × loss × trajectory × draw."""

    def one(forecaster, batch, losses, key):
        return sample_losses(forecaster, batch, losses, hypothesis, draws, key=key)

    return over_seeds(one, forecasters, batch, losses, keys, one_by_one=True)


@eqx.filter_jit
def scores_of(forecasters, batch, hypothesis, keys):
    """The largest distance of every trajectory from its forecast."""

    def one(forecaster, batch, key):
        return sample_band_scores(forecaster, batch, hypothesis, key=key)

    return over_seeds(one, forecasters, batch, keys, one_by_one=True)


class Repetitions:
    """Everything that is fitted, for all repetitions side by side."""

    def __init__(self, count: int, trajectories: int, seed: int, prior_sd: float | None):
        self.count, self.n = count, trajectories - trajectories // 2
        keys = jr.split(jr.key(seed), 8)
        each = [jr.split(key, count) for key in keys]
        data = eqx.filter_jit(jax.vmap(lambda key: record(trajectories, key=key)))(each[0])
        self.prior_data = half(data, slice(0, trajectories // 2))
        self.bound_data = half(data, slice(trajectories // 2, None))
        errors = 0.3 * jr.normal(keys[1], (count, 2))
        models = eqx.filter_vmap(lambda e, batch, key: declare(e).init(batch, key=key))(
            errors, self.prior_data, each[2]
        )
        fitted = hs.train_many(
            models,
            self.prior_data,
            hs.EmpiricalBayes(samples=2, estimator="filtered", solver=SOLVER),
            training=hs.Training(epochs=150, batch_size=10, learning_rate=1e-2),
            chunk=count,
            keys=each[3],
        )
        self.prior = eqx.filter_vmap(
            lambda model: SDEForecaster(model, SOLVER).around_prior(prior_sd)
        )(fitted.model)
        scale = spread(self.prior_data)
        repeated = jax.vmap(lambda s: TruncatedError(s))(scale)
        objective = GibbsRisk(repeated, SOLVER, self.n, DELTA, samples=2, paths=4)
        trained = hs.train_many(
            self.prior.model,
            data,
            objective,
            training=hs.Training(epochs=75, batch_size=25, learning_rate=1e-3),
            chunk=count,
            select=only_weights,
            keys=each[4],
        )
        self.posterior = SDEForecaster(trained.model, SOLVER)
        self.kl = np.asarray(eqx.filter_vmap(lambda f: f.kl_to_prior())(self.posterior), float)
        scores = np.sort(scores_of(self.prior, self.prior_data, Hypothesis(), each[5]), -1)
        rank = conformal_rank(scores.shape[1], 0.1) or scores.shape[1]
        radius = jnp.asarray(scores[:, rank - 1])
        self.losses = (
            repeated,
            IntervalMiss(),
            jax.vmap(BandMiss)(radius),
            jax.vmap(ScaledCRPS)(scale),
            jax.vmap(TemperedLikelihood)(scale / 2),
        )
        self.keys = each[6]
        self.test_keys = each[7]


def certificates(reps: Repetitions) -> dict[str, dict[str, np.ndarray]]:
    """Every bound for every loss, one number per repetition."""
    keys = jax.vmap(lambda key: jr.split(key, 3))(reps.keys)
    draws = -(-DRAWS // reps.n)
    gibbs = np.asarray(
        losses_of(reps.posterior, reps.bound_data, reps.losses, Hypothesis(), draws, keys[:, 0]),
        float,
    )
    before = np.asarray(
        losses_of(reps.prior, reps.prior_data, reps.losses, Hypothesis(), 10, keys[:, 1]), float
    )
    mixture = MIXTURE
    # The prior has not seen the bound data, so for it they are a hold-out set.
    finished = np.asarray(
        losses_of(reps.prior, reps.bound_data, reps.losses, mixture, 1, keys[:, 2]), float
    )[..., 0]
    found = {}
    for k, loss in enumerate(reps.losses):
        x, y = gibbs[:, k], before[:, k]
        pairs = [
            choose_offset(a, b, reps.n, 0.9 * DELTA)
            for a, b in zip(y.mean((1, 2)), (y**2).mean((1, 2)), strict=True)
        ]
        offset = Offset(*np.array(pairs).T)
        exact = clopper_pearson_bound if loss.binary else betting_bound
        found[loss.name] = {
            "kl": np.asarray(kl_bound(x, reps.kl, DELTA).value),
            "ub": np.asarray(ub_bound(x, reps.kl, DELTA, offset=offset).value),
            "catoni": np.asarray(catoni_bound(x, reps.kl, DELTA).value),
            "hold-out": np.asarray(exact(finished[:, k], DELTA).value),
            "hold-out kl": np.asarray(holdout_kl_bound(finished[:, k], DELTA).value),
        }
    return found


def risks(reps: Repetitions, fresh: int, chunk: int = 250) -> dict[str, dict[str, np.ndarray]]:
    """Mean losses on fresh trajectories: of the Gibbs forecaster and of the finished one."""
    total = {"gibbs": 0.0, "finished": 0.0}
    record_all = eqx.filter_jit(jax.vmap(lambda key: record(chunk, key=key)))
    parts = fresh // chunk
    for part in range(parts):
        keys = jax.vmap(lambda key, part=part: jr.split(jr.fold_in(key, part), 3))(reps.test_keys)
        batch = record_all(keys[:, 0])
        for name, forecasters, hypothesis, column in (
            ("gibbs", reps.posterior, Hypothesis(), 1),
            ("finished", reps.prior, MIXTURE, 2),
        ):
            x = losses_of(forecasters, batch, reps.losses, hypothesis, 1, keys[:, column])
            total[name] = total[name] + np.asarray(x, float).mean((2, 3)) / parts
    return {
        loss.name: {name: values[:, k] for name, values in total.items()}
        for k, loss in enumerate(reps.losses)
    }


def slow_losses(relaxation: float, count: int, runs: int, rng) -> tuple[np.ndarray, ...]:
    """Losses on consecutive windows of one slow process, and what was to be expected of each.

    z_i = ρ z_{i−1} + √(1−ρ²) ξ,  ρ = e^{−1/τ},  X_i = min(1, (z_i + ε/2)²/4). The expectation given
    z_{i−1} is taken by quadrature.
    """
    rho = np.exp(-1 / relaxation)
    z, before = np.empty((2, count, runs))
    now = rng.normal(size=runs)
    for i in range(count):
        before[i] = now
        now = rho * now + np.sqrt(1 - rho**2) * rng.normal(size=runs)
        z[i] = now
    losses = np.minimum(1, (z + 0.5 * rng.normal(size=z.shape)) ** 2 / 4)
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    spread = np.sqrt(1 - rho**2 + 0.25)
    expected = sum(
        w * np.minimum(1, (rho * before + spread * x) ** 2 / 4)
        for x, w in zip(nodes, weights / weights.sum(), strict=True)
    )
    stationary = np.sum(weights * np.minimum(1, 1.25 * nodes**2 / 4)) / weights.sum()
    return losses.T, expected.T, stationary


def show_windows(runs: int = 4000, count: int = 100) -> None:
    """How often bounds fail where windows of one recording are taken for independent."""
    rng = np.random.default_rng(0)
    print(f"\n{count} consecutive windows of one slow process, {runs} runs:\n")
    print("| relaxation, windows | iid kl | iid betting | sequential ub, its own statement |")
    print("|---|---|---|---|")
    for relaxation in (1, 20, 100, 300):
        losses, expected, stationary = slow_losses(relaxation, count, runs, rng)
        mean, square = stationary, float((losses**2).mean())
        a, eta = choose_offset(mean, square, count, DELTA)
        offset = Offset(a, eta)
        z = losses + offset.factor * (losses - a) ** 2
        promised = unexpected_bernstein(z.mean(-1), 0.0, count, DELTA, eta=eta)
        failed = (
            holdout_kl_bound(losses, DELTA).value < stationary,
            betting_bound(losses, DELTA).value < stationary,
            promised < expected.mean(-1),
        )
        cells = " | ".join(f"{100 * np.mean(one):.1f} %" for one in failed)
        print(f"| {relaxation} | {cells} |", flush=True)


def show_models_compared(models: int = 200, runs: int = 2000, n: int = 50) -> None:
    """How often the lowest of many certificates is false, with and without `models_compared`."""
    rng = np.random.default_rng(1)
    misses = rng.binomial(n, 0.2, size=(runs, models)).min(1)
    found = [np.mean(clopper_pearson(misses, n, DELTA / m) < 0.2) for m in (1, models)]
    print(f"\nBest of {models} models on {n} trajectories: {100 * found[0]:.0f} % of certificates ")
    print(f"false without models_compared, {100 * found[1]:.1f} % with models_compared={models}.")


def show_conformal(reps: Repetitions, fresh: int, alpha: float = 0.1) -> None:
    """How often fresh trajectories leave conformal bands, with and without confidence."""
    keys = jax.vmap(lambda key: jr.split(jr.fold_in(key, 99), 3))(reps.test_keys)
    scores = np.sort(scores_of(reps.prior, reps.bound_data, MIXTURE, keys[:, 0]), -1)
    batch = eqx.filter_jit(jax.vmap(lambda key: record(fresh, key=key)))(keys[:, 1])
    after = np.asarray(scores_of(reps.prior, batch, MIXTURE, keys[:, 2]))
    print(f"\nConformal bands from {reps.n} trajectories, α = {alpha}:\n")
    print("| rank | mean coverage | bands that hold less than 90 % |")
    print("|---|---|---|")
    for delta in (None, DELTA):
        rank = conformal_rank(reps.n, alpha, delta)
        if rank is None:
            continue
        inside = (after <= scores[:, rank - 1 : rank]).mean(1)
        name = f"{rank}" if delta is None else f"{rank}, with confidence 95 %"
        print(f"| {name} | {inside.mean():.3f} | {100 * (inside < 1 - alpha).mean():.1f} % |")


def main() -> None:
    """Print a row per loss and certificate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--trajectories", type=int, default=100)
    parser.add_argument("--fresh", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prior-sd", type=float, help="of the weights; as fitted by default")
    options = parser.parse_args()
    show_windows()
    show_models_compared()
    began = time.monotonic()
    reps = Repetitions(options.repetitions, options.trajectories, options.seed, options.prior_sd)
    print(f"fitted after {time.monotonic() - began:.0f} s", flush=True)
    bounds = certificates(reps)
    print(f"certified after {time.monotonic() - began:.0f} s", flush=True)
    show_conformal(reps, options.fresh // 2)
    truth = risks(reps, options.fresh)
    print(f"\nN = {options.trajectories}, n = {reps.n}, {options.repetitions} repetitions, ")
    print(f"KL of weights {reps.kl.mean():.3f}, {time.monotonic() - began:.0f} s\n")
    print("| loss | certificate | mean risk | mean bound | largest | violations | p-value |")
    print("|---|---|---|---|---|---|---|")
    for loss, kinds in bounds.items():
        for kind, values in kinds.items():
            risk = truth[loss]["finished" if kind.startswith("hold") else "gibbs"]
            failed = int((values < risk).sum())
            p = stats.binomtest(failed, len(values), DELTA, alternative="greater").pvalue
            print(
                f"| {loss} | {kind} | {risk.mean():.3f} | {values.mean():.3f} | "
                f"{values.max():.3f} | {failed} of {len(values)} | {p:.2f} |"
            )


if __name__ == "__main__":
    main()
