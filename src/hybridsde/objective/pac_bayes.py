"""Empirical PAC-Bayes: Empirical Bayes with the complexity term of a generalisation bound."""

import math

import equinox as eqx

from hybridsde._types import Array, Evidence, Float, PathKL, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.model import BayesianSDE
from hybridsde.objective.base import AbstractSDEObjective, Terms
from hybridsde.objective.bounds import complexity
from hybridsde.simulate import AbstractSolver


class EmpiricalPACBayes(AbstractSDEObjective):
    """loss = −mll + √((KL + ln(4√N/δ) + ln|Γ|) / 2N)      (Haussmann et al. 2021, Algorithm 1).

    KL = path part + weight part (Lemma 1). With `NoPhysics` this is E-PAC-Bayes, with physics
    E-PAC-Bayes-Hybrid. `path_kl="mean"` is the KL of Lemma 1, which is about one path; `"sum"` adds
    the path KL over the N series as Algorithm 1 prints it. A batch of B series stands for all N:
    its sum is rescaled by N/B. The weight KL counts once, also where weights are redrawn at every
    step, as in the paper.

    The paper's displayed objective has the square root with the wrong sign; this is the sign
    of Algorithm 1. A training loss, not a certificate.
    """

    samples: int = eqx.field(static=True, default=2)
    delta: float = eqx.field(static=True, default=0.05)
    path_kl: PathKL = eqx.field(static=True, default="mean")
    estimator: Evidence = eqx.field(static=True, default="auto")
    gate_values: int | None = eqx.field(static=True, default=None)
    """|Γ|: how many values γ is chosen from. Enters as ln|Γ|. None: those of the grid that a
    learned γ is rounded to, and 1 where γ is given."""
    strength: float | Float[Array, "*seed"] = 1.0
    """What the square root is multiplied with: 1 in the paper, 0 is Empirical Bayes."""
    solver: AbstractSolver | None = None

    def __check_init__(self):
        if self.gate_values is not None:
            check_whole(self.gate_values, "gate_values")
        if not 0 < self.delta < 1:
            raise ValueError(f"`delta` must lie strictly between 0 and 1, but is {self.delta}.")
        if self.path_kl not in ("sum", "mean"):
            raise ValueError(f"`path_kl` must be sum or mean, but is {self.path_kl!r}.")
        if isinstance(self.strength, float | int) and not 0 <= self.strength < math.inf:
            raise ValueError(f"`strength` must be zero or more, but is {self.strength}.")

    def __call__(self, model: BayesianSDE, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """Minus the evidence per series, plus the complexity of the whole training set."""
        found = self.estimate(model, batch, total, key=key)
        mll, path_kl = found.log_likelihood.mean(), found.path_kl
        weight_kl = model.network.kl_to_prior()
        kl = path_kl * (total if self.path_kl == "sum" else 1) + weight_kl
        values = self.gate_values or model.known.gate.choices
        paid = complexity(kl, total, self.delta, sampled=True, gate_values=values)
        penalty = self.strength * paid
        return Terms(penalty - mll - found.known, mll, path_kl, weight_kl, penalty)
