"""What the errors of forecasts from row to row say about a model.

Where a model is right, its innovations z_k are independent standard normals: their squares have
mean 1 and, per trajectory, a χ² distribution; neighbours are not correlated (Kailath 1968).
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

LAGS = 10
"""Rows apart at which innovations are compared."""
DOUBT = 0.01
"""Below this probability a deviation is called one."""


@dataclass(frozen=True)
class Innovations:
    """Of one observation, over all trajectories."""

    name: str
    count: int
    bias: float
    """Mean of z; 0 where the model is right."""
    square: float
    """Mean of z²; 1 where the model is right."""
    square_probability: float
    """Of a mean square as far from 1 as this, were the model right: χ², two-sided."""
    correlation: np.ndarray
    """Of z with itself, 1 to `LAGS` rows apart."""
    band: float
    """Correlations inside ± this are those of white noise, 95 % of the time."""
    white_probability: float
    """Of correlations as large as these, were the model right (Ljung and Box 1978)."""

    def advice(self) -> str:
        """What to do, in a sentence."""
        if self.count < 2 * LAGS:
            return f"{self.name}: too few rows to say anything."
        if abs(self.bias) > 3 / np.sqrt(self.count):
            return (
                f"{self.name}: forecasts from row to row are too "
                f"{'low' if self.bias > 0 else 'high'} on average ({self.bias:+.2f} of their "
                "spread). Look for a missing term or input, or an equation that is called exact "
                "but is not."
            )
        if self.white_probability < DOUBT:
            near = self.correlation[0]
            return f"{self.name}: errors hang together ({near:+.2f} from one row to the next). " + (
                "Something slow is missing: a state that is not measured, an input, or a term."
                if near > 0
                else "Measurement noise is taken for motion: let `noise` be learned, or fit longer."
            )
        if self.square_probability < DOUBT:
            wide = self.square < 1
            return (
                f"{self.name}: errors are {np.sqrt(self.square):.2f} times as large as stated, so "
                f"bands are too {'wide' if wide else 'narrow'}. "
                + ("Fit longer." if wide else "Fit more recordings, or look for what differs here.")
            )
        return f"{self.name}: errors look like white noise of the stated size, as they should."


def diagnose(innovations: np.ndarray, names: tuple[str, ...]) -> list[Innovations]:
    """From innovations of shape series × time × obs, NaN where nothing was measured."""
    return [_of_one(innovations[..., k], name) for k, name in enumerate(names)]


def _of_one(z: np.ndarray, name: str) -> Innovations:
    seen = np.isfinite(z)
    count = int(seen.sum())
    if count == 0:
        return Innovations(name, 0, 0.0, 1.0, 1.0, np.zeros(LAGS), 1.0, 1.0)
    total = float(np.sum(z[seen] ** 2))
    lower = float(chi2.cdf(total, count))
    mean = float(z[seen].mean())
    centred = np.where(seen, z - mean, 0.0)
    variance = float(np.sum(centred**2)) / count
    lags = [
        float(np.sum(centred[:, k:] * centred[:, :-k])) / count / variance if variance else 0.0
        for k in range(1, LAGS + 1)
        if k < z.shape[1]
    ]
    correlation = np.array(lags + [0.0] * (LAGS - len(lags)))
    pairs = np.maximum(count - np.arange(1, LAGS + 1), 1)
    statistic = count * (count + 2) * float(np.sum(correlation**2 / pairs))
    return Innovations(
        name,
        count,
        mean,
        total / count,
        2 * min(lower, 1 - lower),
        correlation,
        1.96 / np.sqrt(count),
        float(chi2.sf(statistic, LAGS)),
    )
