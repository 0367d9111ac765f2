"""PAC-Bayesian terms as scalar functions."""

import math

import jax.numpy as jnp

from hybridsde._types import Scalar


def complexity(
    kl: Scalar, series: int, delta: float, *, sampled: bool = False, gate_values: int = 1
) -> Scalar:
    """The penalty for having learned: how far the true risk may exceed the empirical one.

    C_δ = √((KL + ln(2√N/δ) + ln|Γ|) / 2N)      (Haussmann et al. 2021, Theorem 1)

    `sampled` splits δ once more for a Monte-Carlo term, ln(4√N/δ), as Algorithm 1 does;
    `gate_values` is |Γ|, the number of values γ was chosen from. The paper's C_{δ/2} halves δ
    twice; here it is halved once. Assumes losses in [0, 1] and N independent series; neither
    is checked.
    """
    confidence = math.log((4 if sampled else 2) * math.sqrt(series) / delta)
    return jnp.sqrt((kl + confidence + math.log(gate_values)) / (2 * series))
