"""Poisson, gamma and Huber regression: the coefficients of other programs, long steps, biases, and labels."""

import numpy as np
import pytest
from scipy.optimize import least_squares

import mpifed
from mpifed.core.errors import RunError, UserError
from mpifed.data.dataset import WithOnes
from mpifed.data.pool import Pool
from mpifed.statistics.huber import Huber
from mpifed.statistics.log_link import Gamma, Poisson
from tests.helpers.problem_cases import dataset, one_block
from tests.helpers.statistics_data import COUNTS, SIZES, THREE, A


def fit(problem, y, X=A, clients=THREE, **options):
    """Minimise with Newton's method, or another ``algorithm``: the result."""
    settings = {"algorithm": "newton", "rounds": 40, "stop": {"gradient": 1e-22}} | options
    return mpifed.run(data=mpifed.arrays(X, y, clients), problem=problem, **settings)


X_COUNTS = [0.517327465519443, -0.413227962546732, 0.295308396498446, 0.945198795338186]
X_SIZES = [0.44522792139484, -0.428666500425947, 0.07326748256228, 0.775994499080961]


@pytest.mark.parametrize("clients", [np.zeros(60, int), THREE], ids=["one client", "three clients"])
@pytest.mark.parametrize(
    ("problem", "y", "coefficients", "deviance"),
    [(Poisson(), COUNTS, X_COUNTS, 1.2033330573204593), (Gamma(), SIZES, X_SIZES, 0.5347242195716844)],
    ids=["poisson", "gamma"],
)
def test_coefficients_and_deviance_are_those_of_statsmodels(problem, y, coefficients, deviance, clients):
    """statsmodels 0.15.0: GLM(y, add_constant(A, prepend=False), family).fit(tol=1e-15, tol_criterion="params"), with
    families.Poisson() and families.Gamma(links.Log())."""
    result = fit(problem, y, clients=clients)
    assert np.allclose(result.x, coefficients, rtol=1e-8)
    assert np.isclose(result.rounds["deviance"][-1], deviance, rtol=1e-10)


def test_huber_is_what_scipy_minimises_and_its_value_that_of_statsmodels():
    """statsmodels 0.15.0: robust.norms.HuberT(1.345).rho(A @ x − SIZES).mean() at x = (.2, .1, −.3)."""
    X = np.column_stack([A, np.ones(60)])
    found = least_squares(lambda x: X @ x - SIZES, np.zeros(4), loss="huber", f_scale=1.345, xtol=1e-15, gtol=1e-14)
    result = fit(Huber(), SIZES)
    assert np.allclose(result.x, found.x, rtol=1e-7)
    assert np.isclose(result.rounds["objective"][-1], found.cost / 60, rtol=1e-12)
    block = one_block(Huber(), Pool(A, SIZES, None, np.array([60])))
    assert np.isclose(Huber().value(block, np.array([0.2, 0.1, -0.3]))[0], 2.2346357376405668, rtol=1e-14)


@pytest.mark.parametrize("size", [pytest.param(1e4, marks=pytest.mark.slow), 1e7])
@pytest.mark.parametrize("problem", [Poisson(), Gamma()], ids=lambda problem: problem.label())
def test_newton_comes_back_from_steps_that_are_too_long(problem, size):
    """A plain step from 0 leads to e^size; fednl takes it without its line search."""
    y = size * (COUNTS + 0.5)
    right = fit(problem, COUNTS + 0.5).x
    right[-1] += np.log(size)
    for algorithm in ("newton", {"name": "fednl", "line_search": True}):
        result = fit(problem, y, algorithm=algorithm, rounds=80)
        assert np.allclose(result.x, right, rtol=1e-7), algorithm
    if problem.label() == "poisson":
        with pytest.raises(RunError, match=r"^f diverges: .* so set algorithm\.line_search = true; stop\.diverged"):
            fit(problem, y, algorithm="fednl")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", [Poisson(bias=False), Gamma(bias=False)], ids=lambda problem: problem.label())
def test_far_scores_have_finite_losses_with_their_slopes_and_bends(problem, dtype):
    block = one_block(problem, Pool(np.ones((1, 1)), np.ones(1), None, np.array([1]), dtype))
    for z in (25.0, 31.0, 1e3, 1e5):
        for x in np.array([[z], [-z]], dtype):
            step = np.array([max(z, 100) / 50], dtype)
            with np.errstate(all="raise", under="ignore"):
                f, up, down = (float(problem.value(block, x + s * step)[0]) for s in (0, 1, -1))
                slope = float(problem.grad(block, x)[0, 0])
            assert np.isfinite([f, up, down, slope]).all()
            assert up + down >= 2 * f * (1 - 1e-6), "convex"
            assert f + slope * float(step[0]) <= up + abs(up) * 1e-6
    for z in (240.0, 300.0):
        if dtype == "float64":
            x, h = np.array([z if problem.label() == "poisson" else -z]), 1e-4
            change = problem.grad(block, x + h) - problem.grad(block, x - h)
            assert np.isclose(problem.hess(block, x)[0, 0, 0], change[0, 0] / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("kind", [Poisson, Gamma, Huber])
def test_the_bias_is_a_last_parameter_that_is_not_regularised(kind):
    problem, data = kind(lam=0.7), dataset(kind().label(), 9)
    block, free, x = one_block(problem, data), one_block(kind(), data), np.zeros(7)
    assert problem.dim(data) == 7
    x[-1] = 0.3
    assert np.array_equal(problem.value(block, x), kind().value(free, x))
    x[0] = 0.5
    assert np.allclose(problem.value(block, x), kind().value(free, x) + 0.7 / 2 * 0.25)
    assert problem.convexity(block).tolist() == [0.0] * 4
    assert kind(lam=0.7, bias=False).convexity(block).tolist() == [0.7] * 4


def test_two_intercepts_are_told():
    data = WithOnes(mpifed.arrays(A, COUNTS, THREE).load(0, "float64"))
    told = [Poisson(bias=bias).fit_labels(data).notes for bias in (True, False)]
    assert [sum("two intercepts" in note for note in notes) for notes in told] == [1, 0]


@pytest.mark.parametrize(
    ("problem", "label", "told"),
    [
        (Poisson(), -1.0, "labels must be counts, at least 0, but there is -1$"),
        (Gamma(), 0.0, "labels must be above 0, but there is 0; problem=poisson takes 0$"),
        (Gamma(), -2.5, "labels must be above 0, but there is -2.5; problem=poisson takes 0$"),
    ],
)
def test_labels_that_make_no_sense_are_refused(problem, label, told):
    with pytest.raises(UserError, match=f"^problem '{problem.label()}' cannot use these data: {told}"):
        fit(problem, np.append(COUNTS[:-1] + 1, label))


@pytest.mark.parametrize("algorithm", ["fedgia", "gd"])
def test_a_method_that_needs_a_bound_says_that_there_is_none(algorithm):
    with pytest.raises(UserError, match=r"it needs lipschitz \(.* ∇²f_i, but that of e\^z has none\), which poisson"):
        fit(Poisson(), COUNTS, algorithm=algorithm)
