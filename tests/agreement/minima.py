"""Models that scikit-learn and scipy find, and f there, beside runs to the end."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tests.agreement.packages import (
    BINARY,
    CLASSES,
    COUNTS,
    NUMBERS,
    ONE,
    POSITIVE,
    WHERE,
    A,
    Found,
    Loss,
    measured,
    ours,
)
from tests.agreement.row import Row


def logistic(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.log(1 + np.exp(score)) - label * score


def softmax(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.log(np.exp(score).sum(1)) - score[np.arange(len(label)), label.astype(int)]


def poisson(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.exp(score) - label * score


def gamma(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return score + label * np.exp(-score)


TIGHT = {"tol": 1e-14, "max_iter": 10_000}
LINEAR = [
    (
        {"name": "softmax", "lam": 0.1, "bias": False},
        "LogisticRegression",
        CLASSES,
        softmax,
        {"C": 1 / 6, "fit_intercept": False, **TIGHT, "solver": "newton-cg"},
    ),
    (
        {"name": "poisson", "lam": 0.1},
        "PoissonRegressor",
        COUNTS,
        poisson,
        {"alpha": 0.1, **TIGHT, "solver": "newton-cholesky"},
    ),
    (
        {"name": "gamma", "lam": 0.1},
        "GammaRegressor",
        POSITIVE,
        gamma,
        {"alpha": 0.1, **TIGHT, "solver": "newton-cholesky"},
    ),
]
MINIMA = [
    ("newton", {"name": "logistic", "mu": 0.0}, BINARY, logistic),
    ("newton", {"name": "poisson", "bias": False}, COUNTS, poisson),
    ("newton", {"name": "gamma", "bias": False}, POSITIVE, gamma),
    ("lbfgs", {"name": "logistic", "mu": 0.0}, BINARY, logistic),
    ("lbfgs", {"name": "poisson", "bias": False}, COUNTS, poisson),
    ("nesterov", {"name": "logistic", "mu": 0.0}, BINARY, logistic),
]
# Methods, with settings, whose whole trajectory no program has: they end at the minimum.
RIDGE = {"name": "logistic", "mu": 0.1, "regulariser": "whole"}
EXACT = {"name": "newton", "tol": 1e-14}
STRONGLY_CONVEX: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"name": "feddcd", "solver": EXACT}, {"rounds": 500}),
    ({"name": "accfeddcd", "solver": EXACT}, {"rounds": 500}),
    ({"name": "fedpd", "step": {"name": "constant", "a": 0.5}}, {"rounds": 150}),
    ({"name": "diana", "compressor": {"name": "randk", "k": 2}}, {"rounds": 600}),
    ({"name": "marina", "compressor": {"name": "randk", "k": 2}}, {"rounds": 600}),
    ({"name": "sisa", "preconditioner": "smoothness"}, {}),
    ({"name": "fedadmm-insa"}, {"rounds": 300}),
    ({"name": "fedgia-async"}, {"rounds": 300}),
    ({"name": "aggregated-lbfgs"}, {"rounds": 300, "selection": {"share": 0.6}}),
    *(
        ({"name": name, "k0": 1, "step": {"name": "constant", "a": 0.5}}, {"rounds": 600, "selection": {"share": 0.6}})
        for name in ("fedvarp", "mifa")
    ),
    ({"name": "lt-admm"}, {"rounds": 500, "graph": {"name": "ring"}}),
]


def linear(
    problem: dict[str, object], name: str, labels: np.ndarray, loss: Loss, **more: object
) -> tuple[Found, Found]:
    """The minimisers, an intercept last where there is one, and f: the mean ``loss`` of the scores plus the penalty.

    The package minimises with the penalty that ``problem`` has; ``more`` are further options of its class.
    """
    from sklearn import linear_model

    mine = ours(problem, A, labels)
    model = getattr(linear_model, name)(**more).fit(A, labels)
    theirs = np.append(model.coef_, model.intercept_)[: len(mine.x)]
    f = loss(A @ model.coef_.T + model.intercept_, labels).mean() + problem["lam"] / 2 * (model.coef_**2).sum()
    return Found((mine.x,), mine.rounds["objective"][-1]), Found((theirs,), f)


def sparse(name: str, l1: float, l2: float) -> tuple[Found, Found]:
    """Least squares with l1 ‖x‖₁ + (l2/2) ‖x‖², without an intercept: all clients take proximal gradient steps."""
    from sklearn import linear_model

    share = l1 / (l1 + l2)
    more = {} if name == "Lasso" else {"l1_ratio": share}
    model = getattr(linear_model, name)(l1 + l2, fit_intercept=False, tol=1e-16, max_iter=100_000, **more)
    x = model.fit(A, NUMBERS).coef_
    objective = {"weights": "samples", "l1": l1, "l2": l2}
    mine = ours("least-squares", A, NUMBERS, algorithm="gd", rounds=800, objective=objective)
    assert 0 < np.count_nonzero(x) < 4
    return Found((mine.x,), mine.rounds["objective"][-1]), Found(
        (x,), ((A @ x - NUMBERS) ** 2).mean() / 2 + l1 * abs(x).sum() + l2 / 2 * x @ x
    )


def scipy_minimum(
    algorithm: dict[str, object], problem: dict[str, object], labels: np.ndarray, loss: Loss, **more: object
) -> tuple[Found, Found]:
    """What BFGS of scipy ends at, polished by a root of the gradient; its derivatives are complex steps."""
    from scipy import optimize

    ridge = problem["mu"] if problem.get("regulariser") == "whole" else 0.0

    def f(x: np.ndarray) -> object:
        return loss(ONE @ x, labels).mean() + ridge / 2 * (x @ x)

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.array([np.imag(f(x + 1e-30j * one)) / 1e-30 for one in np.eye(5)])

    mine = ours(problem, ONE, labels, algorithm=algorithm, **{"rounds": 400} | more)
    rough = optimize.minimize(lambda x: np.real(f(x)), np.zeros(5), jac=gradient, method="L-BFGS-B")
    theirs = optimize.root(gradient, rough.x, tol=1e-15).x
    return Found((mine.x,), mine.rounds["objective"][-1]), Found((theirs,), f(theirs))


def rows(scratch: Path) -> Iterator[Row]:
    """``scratch`` stays empty: data are in memory."""
    for problem, name, labels, loss, more in LINEAR:
        beside = partial(linear, problem, name, labels, loss, **more)
        yield measured(f"newton, {problem['name']}", "scikit-learn", f"{name}: the minimum, {WHERE}", beside)
    for name, l1, l2 in (("Lasso", 0.3, 0.0), ("ElasticNet", 0.3, 0.2)):
        beside = partial(sparse, name, l1, l2)
        yield measured("gd, least-squares", "scikit-learn", f"{name}: the minimum, {WHERE}", beside)
    for algorithm, problem, labels, loss in MINIMA:
        what = f"optimize.minimize and root: the minimum, {WHERE}"
        beside = partial(scipy_minimum, {"name": algorithm}, problem, labels, loss)
        yield measured(f"{algorithm}, {problem['name']}", "scipy", what, beside)
    what = "optimize.minimize and root: the minimum of a logistic loss + ‖x‖²/20, 60 samples on 3 equal clients"
    for algorithm, more in STRONGLY_CONVEX:
        study = {"sizes": (20, 20, 20), "objective": {}, "stop": {"gradient": 0.0}} | more
        beside = partial(scipy_minimum, algorithm, RIDGE, BINARY, logistic, **study)
        yield measured(algorithm["name"], "scipy", what, beside)
