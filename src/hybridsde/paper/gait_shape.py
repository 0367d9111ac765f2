"""The cycle that all walks share, how walkers differ from it, and what is left: in closed form.

A walk goes round. With a phase φ = φ₀ + ω t for every sequence, its channels are

    y(t) = B(φ) (M + Σ_j z_j U_j) + Σ_k d_k(t) V_k + ε

where B(φ) = (1, cos φ, …, cos Hφ, sin φ, …, sin Hφ). M is the mean cycle, U_j are directions in
which cycles of sequences differ (z ~ N(0, I)), and V_k the directions in which a pose leaves its
cycle. Phases and paces come from Gauss–Newton steps, everything else from least squares and
singular values.
"""

from typing import NamedTuple

import numpy as np

from hybridsde._types import Float

ROUNDS = 30
"""Of Gauss–Newton steps on phases and paces, with the mean cycle between them."""
PADDED = 4096
"""Rows of the spectrum that the first guess of the pace is read from."""
SLOWEST = 1.5
"""The longest period that is looked for, in lengths of a sequence."""
SHRINK = 30.0
"""Errors of a cycle go on for many rows: they count as one in so many when z is estimated."""
LAG = 8
"""Rows after which the fading of sways is measured, so that measurement noise plays no part."""
FADING = (0.05, 0.97)
"""Limits of what is left of a sway after `LAG` rows."""
LEAST = 0.02
"""Variance of the measurement noise of a channel that never moves, in its units squared."""


class Sizes(NamedTuple):
    """How many of each there are, and how much cycles are smoothed."""

    harmonics: int
    shapes: int
    sways: int
    smooth: float


class Rounds(NamedTuple):
    """When every sequence was where in its cycle."""

    phase: Float[np.ndarray, " series"]
    """At the middle of the sequence."""
    pace: Float[np.ndarray, " series"]
    """In radians per row."""
    cycle: Float[np.ndarray, "basis obs"]

    def along(self, rows: int) -> Float[np.ndarray, "series time"]:
        """φ at every row."""
        return self.phase[:, None] + self.pace[:, None] * (np.arange(rows) - rows / 2)


class Gait(NamedTuple):
    """All numbers of a walk."""

    cycle: Float[np.ndarray, "basis obs"]
    shapes: Float[np.ndarray, "shape basis obs"]
    """In standard deviations between sequences."""
    modes: Float[np.ndarray, "sway obs"]
    pace: float
    """Mean over sequences, in radians per row."""
    pace_sd: float
    sway_sd: Float[np.ndarray, " sway"]
    kept: Float[np.ndarray, " sway"]
    """What is left of a sway after one row."""
    kept_sd: Float[np.ndarray, " sway"]
    """How well that is known."""
    noise: Float[np.ndarray, " obs"]


def basis(phase, harmonics: int, xp=np):
    """B(φ) = (1, cos φ, …, cos Hφ, sin φ, …, sin Hφ), along a new last axis."""
    angle = phase[..., None] * xp.arange(1, harmonics + 1, dtype=phase.dtype)
    return xp.concatenate([xp.ones_like(phase)[..., None], xp.cos(angle), xp.sin(angle)], -1)


def slope(phase: Float[np.ndarray, "*batch"], harmonics: int) -> Float[np.ndarray, "*batch basis"]:
    """dB/dφ."""
    n = np.arange(1, harmonics + 1)
    angle = phase[..., None] * n
    none = np.zeros((*phase.shape, 1))
    return np.concatenate([none, -n * np.sin(angle), n * np.cos(angle)], -1)


def first_pace(values: Float[np.ndarray, "series time obs"]) -> float:
    """Where the spectrum of the first principal component is highest."""
    rows = values.shape[1]
    power = np.abs(np.fft.rfft(_first_component(values), PADDED, axis=1)) ** 2
    lowest = int(np.ceil(PADDED / (SLOWEST * rows)))
    return 2 * np.pi * (lowest + int(power.sum(0)[lowest:].argmax())) / PADDED


def _first_component(
    values: Float[np.ndarray, "series time obs"],
) -> Float[np.ndarray, "series time"]:
    """About the mean of each sequence: what stays is no part of the rhythm."""
    shifted = values - values.mean(1, keepdims=True)
    _, _, axes = np.linalg.svd(shifted.reshape(-1, values.shape[-1]), full_matrices=False)
    return shifted @ axes[0]


def rounds(values: Float[np.ndarray, "series time obs"], harmonics: int) -> Rounds:
    """Phases and paces by turns with the mean cycle; each step solves a linear problem."""
    series, rows, _ = values.shape
    time = np.arange(rows) - rows / 2
    guess = first_pace(values)
    turned = _first_component(values) * np.exp(-1j * guess * time)
    found = Rounds(np.angle(turned.sum(1)), np.full(series, guess), np.zeros(0))
    for _ in range(ROUNDS):
        phase = found.along(rows)
        cycle = _least_squares(basis(phase, harmonics), values)
        left = values - basis(phase, harmonics) @ cycle
        moved = slope(phase, harmonics) @ cycle
        steps = np.array([_shift(m, r, time) for m, r in zip(moved, left, strict=True)])
        found = Rounds(found.phase + steps[:, 0], found.pace + steps[:, 1], cycle)
    return found


def _least_squares(features: np.ndarray, values: np.ndarray) -> Float[np.ndarray, "basis obs"]:
    x, y = (one.reshape(-1, one.shape[-1]) for one in (features, values))
    return np.linalg.solve(x.T @ x + 1e-3 * np.eye(x.shape[1]), x.T @ y)


def _shift(moved: np.ndarray, left: np.ndarray, time: np.ndarray) -> Float[np.ndarray, "2"]:
    """Changes of phase and pace that explain what is left of one sequence."""
    columns = np.stack([moved.ravel(), (moved * time[:, None]).ravel()], 1)
    return np.linalg.lstsq(columns, left.ravel(), rcond=None)[0]


def estimate(values: Float[np.ndarray, "series time obs"], sizes: Sizes) -> Gait:
    """All numbers of a walk from complete sequences in equal steps."""
    found = rounds(values, sizes.harmonics)
    b = basis(found.along(values.shape[1]), sizes.harmonics)
    own = _own_cycles(values - b @ found.cycle, b, sizes)
    mean = own.mean(0)
    cycle, shapes = found.cycle + mean, _shapes(own - mean, sizes.shapes)
    left = _left(values - b @ cycle, b, shapes)
    flat = left.reshape(-1, left.shape[-1])
    modes = np.linalg.svd(flat, full_matrices=False)[2][: sizes.sways]
    sways = left @ modes.T
    kept, kept_sd = _fading(sways)
    noise = np.sqrt((left - sways @ modes).var((0, 1)) + LEAST)
    return Gait(
        cycle,
        shapes,
        modes,
        float(found.pace.mean()),
        float(found.pace.std(ddof=1)),
        np.sqrt((sways**2).mean((0, 1))),
        kept,
        kept_sd,
        noise,
    )


def _own_cycles(
    left: np.ndarray, b: np.ndarray, sizes: Sizes
) -> Float[np.ndarray, "series basis obs"]:
    """Each sequence's difference from the mean cycle; high harmonics are held small."""
    n = np.arange(1, sizes.harmonics + 1)
    roughness = np.concatenate([[1.0], 1.0 + n**2, 1.0 + n**2])
    penalty = sizes.smooth * left.shape[1] * np.diag(roughness)
    gram = np.swapaxes(b, 1, 2)
    return np.linalg.solve(gram @ b + penalty, gram @ left)


def _shapes(differences: np.ndarray, count: int) -> Float[np.ndarray, "shape basis obs"]:
    """The directions in which cycles differ most, one standard deviation long."""
    series = len(differences)
    _, size, axes = np.linalg.svd(differences.reshape(series, -1), full_matrices=False)
    sd = size[:count] / np.sqrt(series - 1)
    return (sd[:, None] * axes[:count]).reshape(count, *differences.shape[1:])


def _left(
    left: np.ndarray, b: np.ndarray, shapes: np.ndarray
) -> Float[np.ndarray, "series time obs"]:
    """What shapes do not explain of every sequence, with z at its posterior mean."""
    columns = np.einsum("stb,jbo->stoj", b, shapes)
    weight = 1 / (SHRINK * (left.var((0, 1)) + LEAST))
    gram = np.einsum("stoi,o,stoj->sij", columns, weight, columns) + np.eye(len(shapes))
    z = np.linalg.solve(gram, np.einsum("stoi,o,sto->si", columns, weight, left)[..., None])
    return left - np.einsum("stoj,sj->sto", columns, z[..., 0])


def _fading(sways: np.ndarray) -> tuple[Float[np.ndarray, " sway"], Float[np.ndarray, " sway"]]:
    """ρ with ρᴸ = corr(d_t, d_{t+L}), and its standard error for rows/L independent pairs."""
    before, after = sways[:, :-LAG], sways[:, LAG:]
    left = np.clip((before * after).mean((0, 1)) / (sways**2).mean((0, 1)), *FADING)
    pairs = before[..., 0].size / LAG
    kept = left ** (1 / LAG)
    return kept, kept / (LAG * left) * np.sqrt((1 - left**2) / pairs)
