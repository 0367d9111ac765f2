"""Every number of the audit of the theory, and invariants."""

import numpy as np
import pytest
from scipy import stats

from hybridsde.certify import inequalities as ineq


@pytest.mark.parametrize(
    ("q", "budget", "expected"), [(0, 0.1, 0.095163), (0.1, 0.05, 0.220079), (0.2, 0.02, 0.287302)]
)
def test_kl_inverse(q, budget, expected):
    found = ineq.kl_inverse(q, budget)
    assert found == pytest.approx(expected, abs=5e-7)
    assert ineq.binary_kl(q, found) >= budget - 1e-12
    assert ineq.binary_kl(q, found - 1e-9) < budget


def test_kl_inverse_at_the_ends():
    np.testing.assert_allclose(ineq.kl_inverse([0.3, 1.0, 0.0], [0.0, 0.2, 1e9]), [0.3, 1.0, 1.0])


def test_xi_is_the_sum_itself_and_below_the_usual_constant():
    assert np.exp(ineq.log_xi(20)) == pytest.approx(6.29, abs=5e-3)
    assert np.exp(ineq.log_xi(1)) == pytest.approx(2.0)
    for n in (1, 2, 5, 8, 50, 1000):
        assert ineq.log_xi(n) <= np.log(2 * np.sqrt(n)) + 1e-12


def test_kl_bound_and_its_looser_form():
    assert ineq.pac_bayes_kl(0.1, 2.0, 100, 0.05) == pytest.approx(0.25410, abs=5e-6)
    assert ineq.pac_bayes_pinsker(0.1, 2.0, 100, 0.05) == pytest.approx(0.29989, abs=5e-6)


def test_unexpected_bernstein():
    c = ineq.bernstein_factor(0.2, 0.8)
    assert c == pytest.approx(0.745413, abs=5e-7)
    z = 0.15 + c * (0.15 - 0.2) ** 2
    assert ineq.unexpected_bernstein(z, 2.0, 100, 0.05, eta=0.8) == pytest.approx(
        0.214310, abs=5e-7
    )


def test_catoni():
    # One λ, δ chosen so that (KL + ln(1/δ))/n = 0.05 with KL = 2 and n = 100.
    found = ineq.catoni(0.1, 2.0, 100, np.exp(-3.0), grid=[1.0])
    assert found == pytest.approx(0.220357, abs=5e-7)


def test_clopper_pearson():
    assert ineq.clopper_pearson(0, 50, 0.05) == pytest.approx(0.058155, abs=5e-7)
    assert ineq.clopper_pearson(50, 50, 0.05) == 1.0
    test = stats.binomtest(7, 40).proportion_ci(confidence_level=0.9, method="exact")
    assert ineq.clopper_pearson(7, 40, 0.05) == pytest.approx(test.high, abs=1e-9)


def test_the_exponential_inequality_behind_unexpected_bernstein():
    """e^{−ηx−ηcx²} ≤ 1 − ηx for x ≤ 1 − a, on which the bound rests."""
    for a in (0.1, 0.5, 0.9):
        for share in (0.1, 0.5, 0.95):
            eta = share / (1 - a)
            c = ineq.bernstein_factor(a, eta)
            x = np.linspace(-a, 1 - a, 1001)
            assert np.all(np.exp(-eta * x - eta * c * x**2) <= 1 - eta * x + 1e-12)


def test_an_offset_at_the_mean_of_steady_losses():
    a, eta = ineq.choose_offset(0.3, 0.09, 100, 0.05)
    assert a == pytest.approx(0.3, abs=0.03)
    assert 0 < eta < 1 / (1 - a)
    calm, wild = (ineq.choose_offset(0.3, square, 100, 0.05)[1] for square in (0.09, 0.25))
    assert calm > wild


def test_ranks_of_conformal_bands():
    assert ineq.conformal_rank(50, 0.1, 0.05) == 49
    assert ineq.conformal_rank(100, 0.1, 0.05) == 96
    assert ineq.conformal_rank(28, 0.1, 0.05) is None
    assert ineq.conformal_rank(29, 0.1, 0.05) == 29
    assert ineq.conformal_rank(19, 0.1) == 18
    assert ineq.conformal_rank(9, 0.1) == 9
    assert ineq.conformal_rank(8, 0.1) is None


@pytest.mark.parametrize("n", [20, 100])
def test_every_bound_is_above_the_empirical_risk_and_falls_with_n(n):
    rng = np.random.default_rng(0)
    x = rng.beta(1, 5, size=(50, n))
    risk = x.mean(-1)
    for bound in (
        ineq.betting(x, 0.05),
        ineq.kl_inverse(risk, np.log(20) / n),
        ineq.catoni(risk, 0.1, n, 0.05),
        ineq.pac_bayes_kl(risk, 0.1, n, 0.05),
    ):
        assert np.all(bound > risk)
        assert np.all(bound <= 1.3)
    assert np.all(
        ineq.pac_bayes_kl(risk, 0.1, n, 0.05) < ineq.pac_bayes_pinsker(risk, 0.1, n, 0.05)
    )
    longer = np.concatenate([x, x], -1)
    assert ineq.betting(longer, 0.05).mean() < ineq.betting(x, 0.05).mean()


def violations(bounds, truth, delta):
    """P-value of the hypothesis that a bound fails with probability δ at most."""
    failed = int(np.sum(bounds < truth))
    return stats.binomtest(failed, len(bounds), delta, alternative="greater").pvalue


@pytest.mark.parametrize(("a", "b"), [(1, 5), (0.2, 1.8), (5, 5)])
def test_bounds_on_a_mean_fail_no_more_often_than_they_say(a, b):
    """2000 samples of 60 losses; a p-value below 1e-6 would mean five standard errors."""
    rng = np.random.default_rng(1)
    x = rng.beta(a, b, size=(2000, 60))
    truth = a / (a + b)
    for bounds in (
        ineq.betting(x, 0.05),
        ineq.kl_inverse(x.mean(-1), np.log(20) / 60),
        ineq.empirical_bernstein(x, 0.05, 1.0),
    ):
        assert violations(bounds, truth, 0.05) > 1e-6
    hits = rng.binomial(60, truth, size=2000)
    assert violations(ineq.clopper_pearson(hits, 60, 0.05), truth, 0.05) > 1e-6


def test_betting_is_sharper_than_the_kl_bound_where_losses_vary_little():
    x = np.random.default_rng(2).normal(0.2, 0.02, size=(20, 60)).clip(0, 1)
    assert np.all(ineq.betting(x, 0.05) < ineq.kl_inverse(x.mean(-1), np.log(20) / 60))
