"""Are diffusion and measurement noise recovered together? Three systems with known ones.

    python benchmarks/noise.py [--seeds 3]

Each is simulated with fine steps, recorded at irregular times with noise, and fitted with one of
its equations known. Prints a Markdown table: fitted over true G and σ, before calibration, and the
coverage of 90 % intervals of forecasts over the whole length of new trajectories, after it.
"""

import argparse
import warnings
from dataclasses import dataclass

import hybridsde as hs

hs.use_all_cores()

import numpy as np  # noqa: E402


@dataclass(frozen=True)
class Simulated:
    """dh = f(h) dt + G dW, measured with standard deviation σ."""

    name: str
    known: str
    g: tuple[float, float]
    sigma: tuple[float, float]
    interval: float
    low: tuple[float, float]
    high: tuple[float, float]

    def drift(self, h: np.ndarray) -> np.ndarray:
        """F, for states along the first axis."""
        x, y = h
        return {
            "Lotka–Volterra": lambda: np.array([2 * x - x * y, -4 * y + x * y]),
            "van der Pol": lambda: np.array([y, 1.5 * (1 - x**2) * y - x]),
            "damped rotation": lambda: np.array([-x + y, -0.5 * y - x]),
        }[self.name]()

    def record(self, count: int, length: int, rng: np.random.Generator) -> hs.Trajectories:
        """Trajectories of random starts at irregular times."""
        fine = 20
        gaps = self.interval * rng.uniform(0.5, 1.5, (length - 1, count))
        h = rng.uniform(np.array(self.low)[:, None], np.array(self.high)[:, None], (2, count))
        path = [h]
        for gap in gaps:
            dt = gap / fine
            for _ in range(fine):
                noise = np.sqrt(dt) * rng.normal(size=h.shape)
                h = h + self.drift(h) * dt + np.array(self.g)[:, None] * noise
            path.append(h)
        seen = np.array(path) + np.array(self.sigma)[:, None] * rng.normal(size=(length, *h.shape))
        times = np.concatenate([np.zeros((1, count)), gaps.cumsum(0)])
        return hs.Trajectories.from_arrays(
            list(times.T), list(seen.transpose(2, 0, 1)), states=("x", "y")
        )


SYSTEMS = (
    Simulated("Lotka–Volterra", "dx = 2*x - x*y", (0.2, 0.3), (0.15, 0.15), 0.05, (3, 1), (6, 3)),
    Simulated("van der Pol", "dx = y", (0.1, 0.3), (0.1, 0.1), 0.1, (-2, -2), (2, 2)),
    Simulated("damped rotation", "dx = -x + y", (0.3, 0.2), (0.1, 0.05), 0.1, (-2, -2), (2, 2)),
)


def measure(system: Simulated, seed: int, epochs: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Fitted over true G, fitted over true σ, and coverage after calibration."""
    rng = np.random.default_rng(seed)
    train, kept, test = (system.record(count, 80, rng) for count in (20, 4, 20))
    model = hs.HybridSDE(
        states=("x", "y"),
        physics=hs.equations(system.known),
        hidden=(50, 50),
        diffusion="learn",
        noise="learn",
        start="uncertain",
    )
    run = hs.fit(
        model,
        train,
        objective=hs.EmpiricalPACBayes(
            estimator="filtered", path_kl="mean", solver=hs.Heun(substeps=2)
        ),
        training=hs.Training(epochs=epochs, batch_size=4, learning_rate=5e-3),
        validation=kept,
        seed=seed,
    )
    model, factors = run.forecaster.model, run.metadata.calibration
    g = np.asarray(model.diffusion.sd.value) / factors["diffusion"] / system.g
    sigma = np.asarray(model.observation.sd.value) / factors["noise"] / system.sigma
    return g, sigma, float(run.score(test).loc["overall", "coverage90"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=300)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| system | seed | G x, y: fitted / true | σ x, y: fitted / true | 90 % coverage |")
    print("|---|---|---|---|---|")
    for system in SYSTEMS:
        for seed in range(options.seeds):
            g, sigma, coverage = measure(system, seed, options.epochs)
            cells = [f"{a:.2f}, {b:.2f}" for a, b in (g, sigma)]
            print(
                f"| {system.name} | {seed} | {cells[0]} | {cells[1]} | {coverage:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
