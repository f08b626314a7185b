"""Statistics, optimisation and learning packages, run beside mpifed on the same small data."""

import importlib.metadata
import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import mpifed
from tests.agreement.row import Row, apart

SIZES = (12, 20, 28)
CLIENT = np.repeat(range(3), SIZES)
rng = np.random.default_rng(11)
A = rng.standard_normal((60, 4))
SCORES = A @ [0.5, -0.4, 0.3, 0.1]
NUMBERS = SCORES + rng.standard_normal(60)
COUNTS = rng.poisson(np.exp(1 + SCORES)).astype(float)
POSITIVE = rng.gamma(2.0, np.exp(1 + SCORES) / 2)
BINARY = (SCORES + rng.logistic(size=60) > 0).astype(float)
CLASSES = rng.integers(0, 3, 60).astype(float)
TIMES = 1 + np.floor(8 * rng.exponential(np.exp(-SCORES)))
EVENTS = (rng.random(60) < 0.7).astype(float)
SURVIVAL = np.where(EVENTS, TIMES, -TIMES)
ONE = np.column_stack([A, np.ones(60)])
WHERE = "60 samples on 3 clients"
Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Found(NamedTuple):
    """What a program finds: arrays with the unit of the model, all compared as one, and f."""

    x: tuple[object, ...]
    f: object = math.nan


def ours(problem: object, samples: object, labels: object, sizes: object = SIZES, **more: object) -> mpifed.Result:
    """A run of Newton's method to the end, or of what ``more`` says."""
    study = {"algorithm": "newton", "objective": {"weights": "samples"}, "rounds": 40, "selection": "all"} | more
    return mpifed.run(study, problem=problem, data=mpifed.arrays(samples, labels, sizes))


def measured(method: str, package: str, compared: str, beside: Callable[[], tuple[Found, Found]]) -> Row:
    """A row of a package and its version; without numbers where it is not installed."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return Row(method, package, "", compared, math.nan, math.nan)
    with warnings.catch_warnings():
        # Of the packages, such as of a tolerance that is very small.
        warnings.simplefilter("ignore")
        found, theirs = beside()
    x, other = (np.concatenate([np.ravel(part) for part in one.x]) for one in (found, theirs))
    return Row(method, package, version.partition("+")[0], compared, apart(x, other), apart([found.f], [theirs.f]))


def torch_optimizer(optimizer: dict[str, object], theirs: str, options: dict[str, object]) -> tuple[Found, Found]:
    """FedAvg with one client is a training loop, whose optimiser starts anew in every round."""
    import torch

    rounds, steps, gamma = 6, 10, 0.05
    algorithm = {"name": "fedavg", "k0": steps, "step": {"name": "constant", "a": gamma}, "optimizer": optimizer}
    mine = ours("softmax", A, CLASSES, (60,), algorithm=algorithm, rounds=rounds, record={"models": 1})
    W, b = torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    parts = [W.requires_grad_(), b.requires_grad_()]
    samples, labels = torch.tensor(A), torch.tensor(CLASSES).long()
    models, values = [], []

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(samples @ W.T + b, labels)

    def note() -> None:
        models.append(torch.cat([part.detach().ravel() for part in parts]).numpy())
        values.append(loss().item())

    note()
    for _ in range(rounds):
        stepper = getattr(torch.optim, theirs.split()[0])(parts, lr=gamma, **options)
        for _ in range(steps):
            stepper.zero_grad()
            loss().backward()
            stepper.step()
        note()
    return Found((mine.models["x"],), mine.rounds["objective"]), Found((np.array(models),), np.array(values))


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


def glm(problem: dict[str, object] | str, name: str, labels: np.ndarray) -> tuple[Found, Found]:
    """Coefficients, standard errors, those by client, and the log-likelihood in the place of f."""
    import statsmodels.api as sm

    mine = ours(problem, ONE, labels).fit()
    families = {"Poisson": sm.families.Poisson(), "Gamma": sm.families.Gamma(sm.families.links.Log())}
    if name in families:
        model, options = sm.GLM(labels, ONE, families[name]), {"tol": 1e-15, "maxiter": 99}
    elif name == "Logit":
        model, options = sm.Logit(labels, ONE), {"method": "newton", "tol": 1e-15, "disp": False}
    else:
        model, options = sm.OLS(labels, ONE), {}
    theirs = model.fit(**options)
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": CLIENT, "use_correction": False}}
    # The package leaves out m/(m − 1).
    by_client = model.fit(**options, **clusters).bse * np.sqrt(3 / 2)
    return Found((mine.x, mine.error, mine.robust), mine.likelihood), Found(
        (theirs.params, theirs.bse, by_client), theirs.llf
    )


def cox(ties: str) -> tuple[Found, Found]:
    """Coefficients and standard errors with a stratum for each client, and the partial log-likelihood."""
    import statsmodels.api as sm

    mine = ours({"name": "cox", "ties": ties}, A, SURVIVAL).fit()
    theirs = sm.PHReg(TIMES, A, EVENTS, strata=CLIENT, ties=ties).fit(method="newton", tol=1e-15, disp=False)
    return Found((mine.x, mine.error), mine.likelihood), Found((theirs.params, theirs.bse), theirs.llf)


def lifelines_cox() -> tuple[Found, Found]:
    import lifelines
    import pandas as pd

    mine = ours({"name": "cox", "ties": "efron"}, A, SURVIVAL).fit()
    frame = pd.DataFrame(A, columns=list("wxyz")).assign(t=TIMES, e=EVENTS, c=CLIENT)
    fitter = lifelines.CoxPHFitter()
    fitter.fit(frame, "t", "e", strata="c", fit_options={"precision": 1e-15})
    theirs = Found((fitter.params_.to_numpy(), fitter.standard_errors_.to_numpy()), fitter.log_likelihood_)
    return Found((mine.x, mine.error), mine.likelihood), theirs


def scipy_minimum(problem: dict[str, object], labels: np.ndarray, loss: Loss) -> tuple[Found, Found]:
    """What BFGS of scipy ends at, polished by a root of the gradient; its derivatives are complex steps."""
    from scipy import optimize

    def f(x: np.ndarray) -> object:
        return loss(ONE @ x, labels).mean()

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.array([np.imag(f(x + 1e-30j * one)) / 1e-30 for one in np.eye(5)])

    mine = ours(problem, ONE, labels)
    rough = optimize.minimize(lambda x: np.real(f(x)), np.zeros(5), jac=gradient, method="L-BFGS-B")
    theirs = optimize.root(gradient, rough.x, tol=1e-15).x
    return Found((mine.x,), mine.rounds["objective"][-1]), Found((theirs,), f(theirs))


def logistic(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.log(1 + np.exp(score)) - label * score


def softmax(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.log(np.exp(score).sum(1)) - score[np.arange(len(label)), label.astype(int)]


def poisson(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.exp(score) - label * score


def gamma(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    return score + label * np.exp(-score)


def rows(scratch: Path) -> Iterator[Row]:
    """``scratch`` stays empty: data are in memory."""
    loop = "6 rounds of 10 full-batch local steps, 1 client"
    for method, theirs, optimizer, options in OPTIMIZERS:
        beside = partial(torch_optimizer, optimizer, theirs, options)
        yield measured(f"fedavg, {method}", "torch", f"torch.optim.{theirs}: {loop}", beside)
    for problem, name, labels, loss, more in LINEAR:
        beside = partial(linear, problem, name, labels, loss, **more)
        yield measured(f"newton, {problem['name']}", "scikit-learn", f"{name}: the minimum, {WHERE}", beside)
    for name, l1, l2 in (("Lasso", 0.3, 0.0), ("ElasticNet", 0.3, 0.2)):
        beside = partial(sparse, name, l1, l2)
        yield measured("gd, least-squares", "scikit-learn", f"{name}: the minimum, {WHERE}", beside)
    for problem, name, labels in REGRESSIONS:
        what = "estimates, standard errors, those by client, log-likelihood"
        beside = partial(glm, problem, name, labels)
        yield measured("newton and fit", "statsmodels", f"{name}: {what}, {WHERE}", beside)
    what = f"estimates, standard errors, partial log-likelihood, {WHERE} as strata"
    for ties in ("breslow", "efron"):
        yield measured("newton and fit", "statsmodels", f"PHReg, {ties}: {what}", partial(cox, ties))
    yield measured("newton and fit", "lifelines", f"CoxPHFitter: {what}", lifelines_cox)
    for problem, labels, loss in (
        ({"name": "logistic", "mu": 0.0}, BINARY, logistic),
        ({"name": "poisson", "bias": False}, COUNTS, poisson),
        ({"name": "gamma", "bias": False}, POSITIVE, gamma),
    ):
        what = f"optimize.minimize and root: the minimum, {WHERE}"
        yield measured(f"newton, {problem['name']}", "scipy", what, partial(scipy_minimum, problem, labels, loss))


OPTIMIZERS = [
    ("sgd", "SGD", {"name": "sgd"}, {}),
    (
        "momentum",
        "SGD with momentum",
        {"name": "momentum", "beta": 0.8, "weight_decay": 0.1},
        {"momentum": 0.8, "weight_decay": 0.1},
    ),
    ("nesterov", "SGD with nesterov", {"name": "momentum", "nesterov": True}, {"momentum": 0.9, "nesterov": True}),
    ("adam", "Adam", {"name": "adam"}, {}),
    ("adamw", "AdamW", {"name": "adamw"}, {}),
]
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
REGRESSIONS = [
    ("least-squares", "OLS", NUMBERS),
    ({"name": "poisson", "bias": False}, "Poisson", COUNTS),
    ({"name": "gamma", "bias": False}, "Gamma", POSITIVE),
    ({"name": "logistic", "mu": 0.0}, "Logit", BINARY),
]
