"""Theorems by hand for f_i(x) = (c_i/2)‖x‖² − ⟨b_i, x⟩ with c = 1, 2 and d_i = 2; rates; the least time there is."""

import math

import numpy as np
import pytest

from benchmarks.fedadmm.theory import weights
from mpifed.algorithms import GD, AccFedDCD, FedADMM, FedAvg, FedDCD, FedEPM, FedGiA, Flame
from mpifed.algorithms.parts.local_solvers import SVRG, GradientDescent, NewtonSolver
from mpifed.algorithms.parts.step_sizes import ConstantStep
from mpifed.extend import Algorithm
from mpifed.theory import StudyConstants, fedadmm, feddcd, fedepm, fedgia, flame
from mpifed.theory.least_time import LeastTimeInputs, heterogeneous_bound, homogeneous_bound, lower_bound
from mpifed.theory.rates import fit_line
from mpifed.theory.statements import Certificate, Condition, is_convex

certificate = Algorithm.certificate

# b_1 = (3, 0), b_2 = (0, 3): x* = (1, 1), ∇f_1(x*) = (−2, 1), ∇f_2(x*) = (2, −1), f* = −1.5, f(0) = 0
KNOWN = StudyConstants(
    m=2,
    n=2,
    d=np.array([2, 2]),
    clients_per_round=2,
    rounds=10,
    selection="all",
    logistic=False,
    r=np.array([1.0, 2.0]),
    mu=np.array([1.0, 2.0]),
    f0=0.0,
    g0=np.array([9.0, 9.0]),
    at="the minimum x*",
    f=-1.5,
    g=np.array([5.0, 5.0]),
    largest=2.0,
    gradient=0.0,
    distance=2.0,
)


def answers(found):
    return {condition.name.partition(" ")[0]: condition.holds for condition in found.conditions}


def sides(found, start):
    (one,) = [condition for condition in found.conditions if condition.name.startswith(start)]
    return one.left, one.relation, one.right


def value(found, start):
    (one,) = [bound for bound in found.bounds if bound.name.startswith(start)]
    return one.value


def test_fedgia_needs_t_of_6():
    found = certificate(FedGiA(t=6.0), KNOWN)
    assert sides(found, "σ") == (6.0, ">=", 6.0)  # t r/m = 6 · 2/2
    assert sides(found, "max ‖π") == (1.5, "=", 0.0)  # ‖∇f_i(0)‖/m = 3/2
    assert [condition.holds for condition in found.conditions] == [True, True, True, False, True]
    assert not certificate(FedGiA(t=5.9), KNOWN).conditions[1].holds
    assert sides(certificate(FedGiA(H="zero"), KNOWN), "max ‖H") == (0.0, "<=", 1.0)
    assert sides(certificate(FedGiA(), KNOWN), "σ")[0] == pytest.approx(0.15)
    logistic = certificate(FedGiA(), KNOWN._replace(logistic=True))
    assert sides(logistic, "σ")[0] == pytest.approx(4 * math.log(4) / 2)  # t = 4 ln(d)/n, d = 4, n = 2


def test_fedgia_bounds_the_gradient():
    found = certificate(FedGiA(t=6.0), KNOWN)
    assert value(found, "min ‖∇f‖² over rounds 0 … R − 1, as printed") == pytest.approx(100 * 12 * 1.5 / 10)
    # the first iteration may add Σ (σ/2 + r_i/2m)(‖∇f_i‖/(mσ))² = ((3 + 1/4) + (3 + 1/2)) · 9/144
    assert fedgia.largest_rise(2, 6.0, KNOWN.r, KNOWN.g0) == pytest.approx(6.75 / 16)
    assert value(found, "min ‖∇f‖² over rounds 1") == pytest.approx(120 * 12 * (1.5 + 6.75 / 16) / 9)
    assert fedgia.rate_factor(2, 0.5, 1.0) == pytest.approx(384 / 385)  # ρ = 24 · 2 · 1 · 2²/0.5
    assert math.isnan(value(certificate(FedGiA(), KNOWN._replace(mu=None)), "min ‖∇f‖² over rounds 0"))


def test_theorem_iv_4_has_a_number_where_the_hessians_are_known():
    """f_1(x) = x²/2, m = 1, σ = 6: the Lagrangian's Hessian in (x, x_1, π_1) is M."""
    M = np.array([[6.0, -6, -1], [-6, 7, 1], [-1, 1, 0]])
    least = min(value for value in np.linalg.eigvalsh(M) if value > 1e-9)
    assert fedgia.steepness(np.ones((1, 1, 1)), 6.0) == pytest.approx(1 / (2 * least))
    found = certificate(FedGiA(t=6.0), KNOWN._replace(hessians=np.stack([np.eye(2), 2 * np.eye(2)])))
    assert 0.99 < value(found, "f − f*") < 1
    assert math.isnan(value(certificate(FedGiA(t=6.0), KNOWN), "f − f*"))


def test_the_start_that_lemma_1_needs_keeps_the_first_iteration():
    found = certificate(FedGiA(t=6.0, first="-gradient"), KNOWN)
    assert found.holds is True
    assert value(found, "min ‖∇f‖² over rounds 0 … R − 1, as proved") == pytest.approx(120 * 12 * 1.5 / 10)
    assert sides(certificate(FedADMM(first="-gradient"), KNOWN), "max ‖π")[0] == 0


def test_fedadmm_needs_r0_above_a_half_and_five_halves():
    found = certificate(FedADMM(r0=3.0, k0=1, inner_max=3), KNOWN)
    assert sides(found, "ϱ") == (6.0, ">", 1.0)
    assert sides(found, "min σ") == (3.0, ">", 2.5)
    # σ_i = 1.5, 3; α r = 0.5, 1; away = (1.5/σ_i)² = 1, 1/4; 2(0.25 + 2.25)/0.95 = 5/0.95, 2(1 + 9)/4/0.95: both 5/0.95
    assert sides(found, "⌈κ⌉") == (1.0, "<=", 3.0)  # log_6(5/0.95) is below 1
    assert sides(found, "max ‖π") == (2.25, "<=", 1.0)  # (3/2)² and ε_i⁰ = k0²
    assert value(found, "fall") == pytest.approx((1.5 + 0.5) * (3 - 2.5) / 1.5 / 4)
    low = answers(certificate(FedADMM(r0=0.2), KNOWN))
    assert (low["ϱ"], low["min"]) == (False, False)
    unknown = certificate(FedADMM(r0=3.0), KNOWN._replace(mu=None))  # s_i is r_i at most: ϱ = 2(3 − 1)
    assert sides(unknown, "ϱ")[0] == pytest.approx(4.0)


def test_fedadmm_counts_the_inner_steps_of_theorem_3_1():
    sigma, r, s = np.array([1.0]), np.array([1.0]), np.array([0.0])
    assert fedadmm.contraction(sigma, r, s) == 2.0
    assert fedadmm.inner_steps(sigma, r, s, np.array([8.0]), 1.0) == pytest.approx(4.0)  # log2(2 · 2 · 8/1) − 1
    assert weights(sigma, r, 0.5) == pytest.approx(31.0)  # 1 + 10 · 3


def test_flame_compares_both_sides_of_lemma_1():
    found = certificate(Flame(lam=2.0, rho=2.0), KNOWN)  # λα = 1
    assert sides(found, "λ²") == (0.75, "<", 1.5)  # 1 · 3/4 and (1 + 2)/2
    assert sides(found, "ρ") == (2.0, ">=", 1.0)
    assert sides(found, "(1/ρ²") == (-0.75, ">", 1.5)  # (1/4 − 1) and (2/2 + 2)/2
    assert sides(found, "μ") == (1.5, ">", 0.0)
    assert flame.c1(2.0, 2.0, 0.5) == 0.75
    assert flame.c2(2.0, 2.0, 0.5, 2.0) == pytest.approx(4 * 1.25 + 0.5 * (4 + 8) + 8 + 2)
    assert value(found, "mean") == pytest.approx(21 / (0.75 * 2 * 10))
    assert value(found, "least ‖θ") == pytest.approx(1 / (2 * 0.25 * 8))
    assert value(found, "most ‖θ") == pytest.approx(1 / 1.5**2)
    assert math.isnan(value(found, "the same")), "c_0 is negative, so (38) does not hold"


def test_flame_has_settings_that_meet_everything():
    smooth = KNOWN._replace(m=100, r=np.full(100, 0.05), mu=np.full(100, 0.01), clients_per_round=100)
    found = certificate(Flame(lam=0.19, rho=0.019, center="local"), smooth)
    assert found.holds is True
    assert value(found, "the same") > 0
    assert certificate(Flame(lam=0.19, rho=0.019), smooth).holds is False, "the centre is the server's model"


def test_fedepm_needs_the_threshold_of_the_exact_penalty():
    options = FedEPM(lam=2.0, eta=0.5, mu0=4.0, alpha=2.0, c=1.0, noise="none")
    found = certificate(options, KNOWN)
    assert sides(found, "λ") == (2.0, ">=", 2.0)
    assert sides(found, "min (μ") == (2.5, ">=", 0.0)  # μ_0 α/d + η − r = 4 · 2/2 + 0.5 − 2
    assert value(found, "growth of F allowed at k = 0") == pytest.approx((1 + 4) / (2 * 2 * 1 * 2))
    assert value(found, "growth of F allowed altogether") == pytest.approx((1 + 4) / (2 * 2 * 1 * 1))
    assert found.holds is True
    assert answers(certificate(FedEPM(), KNOWN))["λ"] is False
    assert fedepm.first_descent(np.array([0.5]), 2.0, 0.0, np.array([4.0])) == 2  # 0.5 · 2^(k+1) >= 4
    assert fedepm.first_descent(np.array([0.5]), 1.0, 0.0, np.array([4.0])) == math.inf


def test_feddcd_has_the_rate_of_theorem_4_1():
    found = certificate(FedDCD(), KNOWN._replace(clients_per_round=2, m=3, rounds=2, g=np.array([5.0, 5.0, 2.0])))
    assert found.holds is True
    assert value(found, "E G") == pytest.approx(1 - 0.5 * 0.5)  # (τ − 1)/(N − 1) α/β = 1/2 · 1/2
    assert value(found, "E‖w") == pytest.approx(12 / 3 * 0.75**2)
    assert answers(certificate(FedDCD(eta=0.99), KNOWN))["η"] is False
    assert answers(certificate(FedDCD(), KNOWN._replace(selection="biased")))["uniform"] is False
    assert math.isnan(value(certificate(FedDCD(), KNOWN._replace(mu=None)), "E G"))
    assert "mean of the round" in found.remarks[0], "the bound is about the random model"
    assert certificate(FedDCD(model="random"), KNOWN).remarks == []


def test_feddcd_is_not_certified_with_constants_or_steps_that_the_theorems_do_not_have():
    assert answers(certificate(FedDCD(scaling="own"), KNOWN))["Λ"] is False
    assert certificate(FedDCD(solver=SVRG()), KNOWN).holds is None
    assert certificate(FedDCD(solver=NewtonSolver(steps=1)), KNOWN).holds is None


def test_inexact_feddcd_needs_a_quarter_and_delta():
    found = certificate(FedDCD(eta=0.25, solver=GradientDescent(delta="theorem")), KNOWN)
    assert "5.2" in found.theorem
    assert found.holds is True
    assert value(found, "E G") == pytest.approx(1 - 1 / 64)
    assert value(found, "E‖w") == pytest.approx(20 / 6 * 10 * (63 / 64) ** 10)
    wrong = certificate(FedDCD(eta=1.0, solver=GradientDescent(delta=0.5)), KNOWN)
    assert answers(wrong)["η"] is False
    assert sides(wrong, "δ") == (0.5, "<=", pytest.approx(63 / 256))


def test_accfeddcd_has_the_term_that_the_paper_leaves_out():
    found = certificate(AccFedDCD(), KNOWN)
    a = math.sqrt(0.5) / (1 + math.sqrt(0.5))
    assert found.holds is True
    assert value(found, "E[G") == pytest.approx(1 - a)
    lost = (a * a + 0.5 * a) / 2 * 10
    assert feddcd.missing_term(a, 1.0, 0.5, 1.0, 10.0) == pytest.approx(lost)
    assert value(found, "E‖w") == pytest.approx((5 + lost) * (1 - a) ** 10)
    assert answers(certificate(AccFedDCD(kappa=0.6), KNOWN))["κ"] is False


def test_fedavg_is_certified_where_it_is_gradient_descent():
    assert sides(certificate(GD(gamma=0.5), KNOWN._replace(mu=-KNOWN.r)), "γ <= 2/(μ") == (0.5, "<=", 1.0)
    found = certificate(FedAvg(k0=1, step=ConstantStep(a=0.5)), KNOWN)
    assert found.holds is True
    assert value(found, "f − f*") == pytest.approx(2 * 1.5 * 2 / (4 + 10 * 0.5 * 1.0 * 1.5))
    assert value(found, "‖x − x*‖²") == pytest.approx(1 - 2 * 0.5 * 1 * 2 / 3)
    assert answers(certificate(FedAvg(k0=1, step=ConstantStep(a=1.0)), KNOWN))["γ"] is False
    assert certificate(FedAvg(k0=5, step=ConstantStep(a=0.5)), KNOWN).conditions == []


def test_every_method_has_a_theorem_or_the_reason_why_not():
    for name in Algorithm.choices:
        found = Algorithm.member(name, "algorithm")().certificate(KNOWN)
        assert bool(found.conditions) != found.remarks[0].startswith(f"no theorem is certified for {name}")


def test_a_problem_without_curvature_leaves_conditions_open():
    for name in [name for name in Algorithm.choices if Algorithm.member(name, "algorithm").theorem]:
        found = certificate(Algorithm.member(name, "algorithm")(), KNOWN._replace(r=None, mu=None))
        open_ = [one.holds for one in found.conditions if one.name.startswith(("max r_i", "min α_i", "σ", "ϱ"))]
        assert True not in open_


def test_a_geometric_sequence_gives_its_factor_also_where_rounds_were_not_evaluated_or_lie_beyond_the_shares():
    rounds = np.arange(60)
    found = fit_line(rounds, 7 * 0.6**rounds)
    assert found.factor == pytest.approx(0.6, rel=1e-12)
    assert found.r2 == pytest.approx(1, abs=1e-12)
    values = 0.5 ** np.arange(40.0)
    values[1::2] = np.nan
    assert fit_line(np.arange(40), values).factor == pytest.approx(0.5)
    values = np.concatenate([np.full(5, 1.0), 10.0 ** -np.arange(1, 10), np.full(5, 1e-14)])
    assert fit_line(np.arange(len(values)), values).slope == pytest.approx(-1)


@pytest.mark.parametrize("values", [np.ones(9), np.array([1.0, 1e-3, 1e-4]), np.zeros(0), np.full(9, -1.0)])
def test_without_three_values_there_is_no_rate(values):
    assert math.isnan(fit_line(np.arange(len(values)), values).slope)
    assert math.isnan(fit_line(np.arange(6), np.array([1.0, *[1e-3] * 5])).r2), "a curve that stands still"


@pytest.mark.parametrize(
    ("left", "relation", "right", "holds"),
    [
        (2.0, ">=", 2.0, True),
        (2.0, ">", 2.0, False),
        (1.9, ">=", 2.0, False),
        (0.1 + 0.2, "<=", 0.3, True),  # rounding
        (1.0, "<", math.inf, True),
        (1.0, "=", 1.0, True),
        (math.nan, ">", 1.0, None),
        (1.0, ">", math.nan, None),
    ],
)
def test_a_condition_compares_its_sides(left, relation, right, holds):
    assert Condition.of("a", left, relation, right, "Theorem 1").holds is holds


def test_a_certificate_holds_if_every_condition_does():
    yes, no, open_ = (Condition("a", 1, ">", 1, holds, "") for holds in (True, False, None))
    found = [Certificate("", list(part), [], []).holds for part in [(yes,), (yes, no, open_), (yes, open_), ()]]
    assert found == [True, False, None, None]


def test_rounding_below_zero_is_still_convex():
    r = np.array([1.0, 2.0])
    assert is_convex(r, np.array([-1e-17, 0.5]))
    assert not is_convex(r, np.array([-1e-6, 0.5]))
    assert not is_convex(r, None)


def looped(tau, L, delta, variance, eps):
    found = []
    tau = sorted(tau)
    for j in range(1, len(tau) + 1):
        mean = j / sum(1 / t for t in tau[:j])
        found.append(mean * (L * delta / eps + variance * L * delta / (j * eps**2)))
    return min(found)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_for_one_f_is_the_least_over_the_number_of_clients(seed):
    rng = np.random.default_rng(seed)
    tau = rng.lognormal(sigma=2, size=rng.integers(1, 40))
    L, delta, variance, eps = rng.lognormal(size=4)
    assert homogeneous_bound(tau, L, delta, variance, eps) == pytest.approx(looped(tau, L, delta, variance, eps))
    assert homogeneous_bound(tau, L, delta, 0, eps) == pytest.approx(tau.min() * L * delta / eps)
    assert homogeneous_bound(tau, L, delta, variance, eps) <= heterogeneous_bound(tau, L, delta, variance, eps) * (
        1 + 1e-12
    )


def test_the_bound_for_f_i_that_differ_waits_for_the_slowest():
    assert heterogeneous_bound([1, 2, 6], 2.0, 3.0, 0.0, 0.5) == 6 * 2 * 3 / 0.5
    assert heterogeneous_bound([1, 2, 6], 2.0, 3.0, 7.0, 0.5) == pytest.approx(6 * 12 + 3 * 7 * 6 / (3 * 0.25))
    equal = np.full(8, 2.0)
    assert heterogeneous_bound(equal, 1.0, 1.0, 4.0, 0.1) == pytest.approx(homogeneous_bound(equal, 1.0, 1.0, 4.0, 0.1))


def test_what_is_not_known_stays_so_and_what_cannot_be_is_refused():
    setting = LeastTimeInputs(np.ones(3), math.nan, 1.0, 0.0, True, {})
    assert math.isnan(lower_bound(setting, 0.1))
    for eps in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"^ε = \S+ is wrong: it must be above 0$"):
            homogeneous_bound([1.0], 1.0, 1.0, 0.0, eps)
    with pytest.raises(ValueError, match=r"^Δ = -1 is wrong: it must not be below 0$"):
        heterogeneous_bound([1.0], 1.0, -1.0, 0.0, 1.0)
