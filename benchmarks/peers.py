"""One gradient of the same loss by the libraries that people use instead.

A neural SDE with plain weights, drift 3-100-100-100-3 with softplus, unit diffusion, Euler steps,
the squared error at every step plus the path KL ½∫‖f‖²dt against a driftless prior. Each function
returns `forward` and `gradient`, callables without arguments that block until they are done.
"""

from collections.abc import Callable
from itertools import pairwise

WIDTHS = (3, 100, 100, 100, 3)
STEP = 0.01


def torchsde(paths: int, steps: int) -> dict[str, Callable[[], object]]:
    """`sdeint` with method "euler" and `logqp`.

    Its Brownian motion is told the step and keeps all it has drawn. Left to itself it is as fast
    at 23 steps, and up to twenty times slower at 100.
    """
    import torch
    import torchsde as library

    torch.manual_seed(0)
    layers = []
    for rows, columns in pairwise(WIDTHS):
        layers += [torch.nn.Linear(rows, columns), torch.nn.Softplus()]

    class Drift(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(*layers[:-1])

        def f(self, t, y):
            return self.net(y)

        def h(self, t, y):
            return torch.zeros_like(y)

        def g(self, t, y):
            return torch.ones_like(y)

    model = Drift()
    start = torch.randn(paths, WIDTHS[0])
    times = torch.linspace(0, steps * STEP, steps + 1)
    target = torch.randn(steps + 1, paths, WIDTHS[0])

    def loss():
        noise = library.BrownianInterval(
            t0=0.0,
            t1=times[-1].item(),
            size=(paths, WIDTHS[0] + 1),  # `logqp` adds a state
            dt=STEP,
            cache_size=None,
        )
        states, kl = library.sdeint(
            model, start, times, method="euler", dt=STEP, logqp=True, bm=noise
        )
        return ((states - target) ** 2).sum() + kl.sum()

    def forward():
        with torch.no_grad():
            return loss()

    def gradient():
        model.zero_grad()
        loss().backward()

    return {"forward": forward, "gradient": gradient}


def diffrax(paths: int, steps: int) -> dict[str, Callable[[], object]]:
    """`diffeqsolve` with `Euler` and a virtual Brownian tree, mapped over paths."""
    import diffrax as library
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    keys = jr.split(jr.key(0), len(WIDTHS) - 1)
    weights = [
        (jr.normal(key, (rows, columns)) / rows**0.5, jnp.zeros(columns))
        for key, rows, columns in zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=True)
    ]
    start = jr.normal(jr.key(1), (paths, WIDTHS[0]))
    target = jr.normal(jr.key(2), (paths, steps, WIDTHS[0]))
    times = STEP * jnp.arange(1.0, steps + 1)

    def net(weights, x):
        for weight, bias in weights[:-1]:
            x = jax.nn.softplus(x @ weight + bias)
        return x @ weights[-1][0] + weights[-1][1]

    def solve(weights, start, key):
        """The state and, in a fourth component, the path KL."""

        def drift(t, y, args):
            f = net(weights, y[:-1])
            return jnp.append(f, 0.5 * jnp.sum(f**2))

        def spread(t, y, args):
            return jnp.eye(WIDTHS[0] + 1, WIDTHS[0])

        shape = jax.ShapeDtypeStruct((WIDTHS[0],), jnp.float32)
        tree = library.VirtualBrownianTree(0.0, steps * STEP, tol=STEP / 2, shape=shape, key=key)
        solution = library.diffeqsolve(
            library.MultiTerm(library.ODETerm(drift), library.ControlTerm(spread, tree)),
            library.Euler(),
            0.0,
            steps * STEP,
            STEP,
            jnp.append(start, 0.0),
            saveat=library.SaveAt(ts=times),
            max_steps=steps + 2,
        )
        return solution.ys[:, :-1], solution.ys[-1, -1]

    def loss(weights, key):
        states, kl = jax.vmap(solve, (None, 0, 0))(weights, start, jr.split(key, paths))
        return jnp.sum((states - target) ** 2) + kl.sum()

    return _compiled(loss, weights)


def ours(mode: str) -> Callable[[int, int], dict[str, Callable[[], object]]]:
    """Empirical PAC-Bayes: the same paths, with two draws of Bayesian weights and their KL."""

    def build(paths: int, steps: int) -> dict[str, Callable[[], object]]:
        import equinox as eqx
        import jax.random as jr

        import hybridsde as hs

        series, samples = paths // 2, 2
        values = jr.normal(jr.key(0), (series, 1 + steps, WIDTHS[0]))
        batch = hs.Batch.regular(values, STEP)
        hybrid = hs.HybridSDE(
            states=("x", "y", "z"),
            diffusion=1.0,
            noise=1.0,
            hidden=WIDTHS[1:-1],
            weights=mode,
            start="first",
        )
        model = hybrid.init(batch, key=jr.key(1))
        parameters, frozen = eqx.partition(model, hs.trainable(model))
        objective = hs.EmpiricalPACBayes(
            samples=samples, estimator="mean_log", path_kl="sum", solver=hs.EulerMaruyama()
        )

        def loss(parameters, key):
            whole = eqx.combine(parameters, frozen)
            return objective(whole, batch, series, key=key).loss

        return _compiled(loss, parameters)

    return build


def _compiled(loss: Callable, parameters) -> dict[str, Callable[[], object]]:
    """Fresh noise at every call, as in training."""
    import jax
    import jax.random as jr

    keys = iter(jr.split(jr.key(3), 10_000))
    forward, gradient = jax.jit(loss), jax.jit(jax.grad(loss))
    return {
        "forward": lambda: jax.block_until_ready(forward(parameters, next(keys))),
        "gradient": lambda: jax.block_until_ready(gradient(parameters, next(keys))),
    }


SYSTEMS: dict[str, Callable[[int, int], dict[str, Callable[[], object]]]] = {
    "ours (path)": ours("path"),
    "ours (local)": ours("local"),
    "torchsde": torchsde,
    "diffrax": diffrax,
}
