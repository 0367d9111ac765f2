"""The bound of the paper in its three tiers: a diagnostic, vacuous in practice."""

import math

import jax.numpy as jnp
import numpy as np

from hybridsde.certify.bounds import Bound
from hybridsde.objective import complexity


def paper_tiers(
    log_z: np.ndarray, weight_kl: float, path_kl: float, delta: float, *, gate_values: int = 1
) -> Bound:
    """T1, T2 and T3 from ln z = Σ_k [ln p(y_k|h_k) − ln B̄], n trajectories × S fresh paths.

    - T1 = 1 − mean z + ε + C(δ/2)                 (Haussmann et al. 2021, eq. pac_bound)
    - T2 = −mean_n ln mean_s z + ε + C(δ/2)        (eq. empirical_bayes_training)
    - T3 = −mean_{n,s} ln z + ε + C(δ/2)           (eq. training_loss)

    C(δ/2) = √((KL + ln(4√n/δ) + ln|Γ|)/2n), KL = weights + path; ε = √(ln(2/δ)/(2nS)) for draws
    that no two trajectories share; as printed, with a union over n, it is √(ln(2n/δ)/(2S)).
    T1 ≤ T2 ≤ T3. The path KL is itself a Monte-Carlo estimate, so this is not a guarantee. A
    perfect model with KD values has E z = 2^{−KD/2}: the risk that T1 bounds is 1 for every model
    but the shortest.
    """
    n, draws = log_z.shape
    kl = jnp.asarray(weight_kl + path_kl, float)
    penalty = float(complexity(kl, n, delta, sampled=True, gate_values=gate_values))
    epsilon = math.sqrt(math.log(2 / delta) / (2 * n * draws))
    log_mean = float(np.logaddexp.reduce(log_z, axis=None)) - math.log(log_z.size)
    evidence = np.logaddexp.reduce(log_z, axis=1) - math.log(draws)
    risk = 1 - math.exp(log_mean)
    tiers = {
        "T1": risk + epsilon + penalty,
        "T2": -float(evidence.mean()) + epsilon + penalty,
        "T3": -float(log_z.mean()) + epsilon + penalty,
    }
    terms = {
        **tiers,
        "ln mean z": log_mean,
        "KL of weights": weight_kl,
        "KL of paths": path_kl,
        "ln gates": math.log(gate_values),
        "ε": epsilon,
        "ε as printed": math.sqrt(math.log(2 * n / delta) / (2 * draws)),
        "complexity": penalty,
        "draws per trajectory": draws,
    }
    parts = {"empirical risk": risk, "Monte Carlo": epsilon, "complexity": penalty}
    return Bound(tiers["T1"], parts, terms)
