"""Cox regression: what statsmodels and lifelines say, ties, far scores, clients without events, and labels."""

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.statistics import hazards
from mpifed.statistics.cox import Cox
from tests.helpers.problem_cases import dataset, one_block
from tests.helpers.statistics_data import SURVIVAL, THREE, A
from tests.oracles.problems import function

X0 = np.array([0.2, 0.1, -0.3])
TCGA = Path(os.environ.get("MPIFED_DATA", ""), "flamby")


def block_of(y, X=A, sizes=None, dtype="float64"):
    """The samples in one block."""
    return one_block(Cox(), Pool(X, y, None, np.array(sizes or [len(y)]), dtype))


def fit(y=SURVIVAL, X=A, clients=THREE, lam=0.0, **options):
    """Minimise with Newton's method, or another ``algorithm``: the result."""
    settings = {"algorithm": "newton", "rounds": 30, "stop": {"gradient": 1e-22}} | options
    problem = {"name": "cox", "lam": lam, "ties": settings.pop("ties", "efron")}
    return mpifed.run(data=mpifed.arrays(X, y, clients), problem=problem, **settings)


SCORE = (
    [1.812130194732203, -13.345457333076366, 17.704453234159168],
    [2.119274798347224, -13.632713869606862, 17.885103035109978],
)


@pytest.mark.parametrize(
    ("ties", "likelihood", "score", "row"),
    [
        ("breslow", -138.54495897826348, SCORE[0], [-29.46490237827249, -4.854671129847357, -5.403131374190139]),
        ("efron", -137.18954817671784, SCORE[1], [-29.531569930974353, -5.218424830672076, -5.507760488448173]),
    ],
)
def test_likelihood_score_and_hessian_are_those_of_statsmodels(ties, likelihood, score, row):
    """statsmodels 0.15.0: model = PHReg(TIMES, A, EVENTS, ties=ties); loglike(X0), score(X0), hessian(X0)[0] of it."""
    problem, block = Cox(ties=ties), block_of(SURVIVAL)
    assert np.isclose(problem.value(block, X0)[0], -likelihood / 60, rtol=1e-14)
    assert np.allclose(problem.grad(block, X0)[0], -np.array(score) / 60, rtol=1e-12)
    assert np.allclose(problem.hess(block, X0)[0, 0], -np.array(row) / 60, rtol=1e-12)


@pytest.mark.parametrize(
    ("ties", "clients", "coefficients"),
    [
        ("breslow", 0 * THREE, [0.242322419401335, -0.133888518784468, 0.30973253753332]),
        ("efron", 0 * THREE, [0.256373465190554, -0.13606109685836, 0.32333495020596]),
        ("breslow", THREE, [0.244495933199527, -0.187201806537252, 0.367046743068941]),
        ("efron", THREE, [0.245270224560728, -0.183693578862881, 0.382007483763909]),
    ],
    ids=["breslow", "efron", "breslow, stratified", "efron, stratified"],
)
def test_coefficients_are_those_of_statsmodels_also_where_clients_are_strata(ties, clients, coefficients):
    """statsmodels 0.15.0: PHReg(TIMES, A, EVENTS, ties=ties, strata=clients).fit(method="newton", tol=1e-14);
    CoxPHFitter of lifelines 0.30.3, which has Efron's ties, ends at the same ones to 2e-9."""
    assert np.allclose(fit(ties=ties, clients=clients).x, coefficients, rtol=1e-8)


@pytest.mark.parametrize(
    ("scores", "right"), [(A @ X0, 0.47017268445839877), (np.round(A @ X0, 1), 0.46664050235478804)]
)
def test_the_c_index_is_that_of_lifelines(scores, right):
    """lifelines 0.30.3: utils.concordance_index(TIMES, −scores, EVENTS); equal scores count 1/2."""
    assert np.isclose(Cox().measure(block_of(SURVIVAL, scores[:, None]), np.ones(1))[0], right, rtol=1e-14)


@pytest.mark.parametrize("levels", [1, 3, 1000])
@pytest.mark.parametrize("latest", [2, 6, 1000])
def test_the_c_index_counts_pairs(levels, latest):
    """Of an event and a later sample, or one that is censored at that time; 1/2 where there is none."""
    rng = np.random.default_rng([levels, latest])
    sizes = [30, 31, 29]
    y, z = rng.integers(1, latest, 90) * rng.choice([1.0, -1.0], 90), rng.integers(0, levels, 90) + 0.0
    y[61:] = -abs(y[61:])
    found = Cox().measure(block_of(y, z[:, None], sizes), np.ones(1))[0]
    for own, c in zip(np.split(np.arange(90), np.cumsum(sizes)[:-1]), found, strict=True):
        pairs = [(i, j) for i in own for j in own if y[i] > 0 and (abs(y[j]) > y[i] or y[j] == -y[i])]
        points = sum((z[i] > z[j]) + (z[i] == z[j]) / 2 for i, j in pairs)
        assert c == (points / len(pairs) if pairs else 0.5)


@pytest.mark.parametrize("name", ["cox", "cox, breslow"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_from_logarithms_are_the_same(name, dtype, monkeypatch):
    """Scores that are far apart are computed so, where e^z would be 0 or infinite."""
    problem, data = Cox(ties="breslow" if "breslow" in name else "efron"), dataset(name, 9, dtype=dtype)
    X, V = np.random.default_rng(4).standard_normal((2, 4, 6)).astype(dtype)
    monkeypatch.setattr(hazards, "WIDE", 0.02)  # some clients
    found = computed(problem, one_block(problem, data), X, V)
    monkeypatch.setattr(hazards, "WIDE", 1e9)
    for part, right in zip(found, computed(problem, one_block(problem, data), X, V), strict=True):
        assert np.allclose(part, right, rtol=1e-12 if dtype == "float64" else 1e-4, atol=np.finfo(dtype).eps * 50)


def computed(problem, block, X, V):
    """Value, gradient, matrices and products."""
    return (*problem.value_grad(block, X), problem.hess(block, X), problem.hessian(block, X)(V))


@pytest.mark.parametrize("name", ["cox", "cox, breslow"])
@pytest.mark.parametrize("length", [30.0, 300.0, 3000.0])
def test_far_scores_have_finite_values_with_their_gradients_and_products(name, length):
    problem, data = Cox(ties="breslow" if "breslow" in name else "efron"), dataset(name, 9)
    X, V = np.random.default_rng(5).standard_normal((2, 4, 6))
    block, h = one_block(problem, data), 1e-4
    with np.errstate(all="raise", under="ignore"):
        f, G, H, HV = computed(problem, block, length * X, V)
        up, down = (problem.value(block, length * X + s * h * V) for s in (1, -1))
        change = problem.grad(block, length * X + h * V) - problem.grad(block, length * X - h * V)
    assert np.isfinite(f).all()
    assert np.allclose((up - down) / (2 * h), np.vecdot(G, V), rtol=1e-6, atol=1e-6)
    assert np.allclose(change / (2 * h), HV, rtol=1e-5, atol=1e-6)
    assert np.allclose(np.matvec(H, V), HV, rtol=1e-9, atol=1e-11)


def test_a_client_without_events_has_the_likelihood_1_and_is_named():
    y = np.where(THREE == 1, -abs(SURVIVAL), SURVIVAL)
    problem, block = Cox(lam=0.5), block_of(y, sizes=[20, 20, 20])
    assert problem.value(block, X0)[1] == 0.25 * X0 @ X0
    assert np.array_equal(problem.grad(block, X0)[1], 0.5 * X0)
    assert np.array_equal(problem.hess(block, X0)[1], 0.5 * np.eye(3))
    assert problem.lipschitz(block)[1] > 0.5, "methods divide by it"
    for method in ("fedadmm", "fedgia", "gd"):
        result = fit(y, algorithm=method, rounds=5)
        assert result.rounds["objective"][-1] < result.rounds["objective"][0]
    for labels, told in (
        (y, "client 1 has no event: its likelihood is 1 for all x"),
        (np.where(THREE, -abs(y), y), "2 of 3 clients have no event (1, 2): their likelihood is 1 for all x"),
    ):
        assert Cox().fit_labels(mpifed.arrays(A, labels, THREE).load(0, "float64")).notes == (told,)


def test_who_is_censored_at_time_0_is_at_risk_at_no_event_and_the_bound_of_one_time_is_that_of_the_oracle():
    more = np.append(SURVIVAL, [-0.0, -0.0])
    one, other = (
        Cox().grad(block_of(y, X), X0) for y, X in ((SURVIVAL, A), (more, np.concatenate([A, 9 * np.ones((2, 3))])))
    )
    assert np.allclose(one * 60, other * 62, rtol=1e-12)
    f = function({"name": "cox"}, A, np.ones(60))
    assert np.isclose(Cox().lipschitz(block_of(np.ones(60)))[0], f.lipschitz)


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (np.append(SURVIVAL[:-1], 0.0), "but there is a 0; -0 is censored at 0$"),
        (-abs(SURVIVAL), "but all have a minus: no event happened$"),
        (np.where(SURVIVAL > 0, "dead", "alive"), r"but they are text \(alive, dead\)$"),
    ],
)
def test_labels_that_make_no_sense_are_refused(y, told):
    rule = "labels must be times above 0 of events, and times with a minus of censored samples"
    with pytest.raises(UserError, match=f"^problem 'cox' cannot use these data: {rule}, {told}"):
        fit(y)


@pytest.mark.parametrize("unit", [1.0, pytest.param(1e4, marks=pytest.mark.slow)])
def test_times_that_differ_as_rounding_does_are_counted_and_rounded_ones_are_ties(unit):
    """R's survival rounds them by itself: coxph(timefix = TRUE), whose tolerance is the root of the machine epsilon."""
    tied = unit * np.ceil(4 * np.abs(SURVIVAL)) * np.sign(SURVIVAL)
    near = tied * (1 + 1e-10 * np.arange(60))
    right = fit(tied, clients=THREE)
    assert "timefix" not in right.attrs["notes"]
    apart = fit(near, clients=THREE)
    assert np.abs(apart.x - right.x).max() > 1e-4
    (count,) = re.findall(
        r"^(\d+) times differ from the one before .* round the times", apart.attrs["notes"], re.MULTILINE
    )
    pairs = 0
    for k in range(3):
        own = tied[k == THREE]
        for t in np.unique(np.abs(own)):
            events = np.sign(own[np.abs(own) == t])  # in the order of the times, which grow with the row
            pairs += np.sum((events[1:] > 0) | (events[:-1] > 0))
    assert int(count) == pairs
    assert np.allclose(fit(unit * np.round(near / unit, 6), clients=THREE).x, right.x, rtol=1e-9)


def test_there_are_no_mini_batches():
    with pytest.raises(UserError, match=r"^algorithm\.batch_size = 5 is wrong: cox has no mini-batches, for f_i is no"):
        fit(algorithm={"name": "fedavg", "batch_size": 5})


@pytest.mark.parametrize("method", ["fedgia", "fedadmm", "gd"])
def test_methods_with_a_bound_of_the_curvature_take_its_own(method):
    result = fit(algorithm=method, rounds=300, lam=0.01, evaluate={"every": 300})
    assert result.rounds["grad_norm_sq"][-1] < 0.05 * result.rounds["grad_norm_sq"][0]
    assert result.rounds["objective"][-1] < result.rounds["objective"][0]


@pytest.mark.skipif(not TCGA.is_dir(), reason="MPIFED_DATA has no folder flamby")
@pytest.mark.parametrize(
    "algorithm", ["newton", {"name": "fednl", "option": "A", "line_search": True}], ids=["newton", "fednl"]
)
@pytest.mark.parametrize("pooled", [True, False])
def test_breast_cancer_in_six_regions_is_solved_in_15_rounds(algorithm, pooled):
    X, y, region = breast_cancer()
    result = fit(y, X, 0 * region if pooled else region, 1e-4, algorithm=algorithm, rounds=15, stop={"gradient": 1e-20})
    assert result.rounds["grad_norm_sq"][-1] <= 1e-20
    if pooled:
        assert np.isclose(result.rounds["objective"][-1], 0.667481575, atol=1e-9)


@pytest.mark.skipif(not TCGA.is_dir(), reason="MPIFED_DATA has no folder flamby")
def test_the_least_value_over_six_regions_with_the_weights_of_their_samples():
    """L-BFGS of scipy 1.17 on the likelihood written out ends there too. No two events of a region share a time."""
    X, y, region = breast_cancer()
    blocks = [block_of(y[region == k], X[region == k]) for k in range(6)]
    share, problem, x = np.bincount(region) / len(y), Cox(lam=1e-4), np.zeros(39)

    def summed(method):
        return sum(p * method(block, x)[0] for p, block in zip(share, blocks, strict=True))

    for _ in range(8):
        x -= np.linalg.solve(summed(problem.hess), summed(problem.grad))
    assert np.linalg.norm(summed(problem.grad)) <= 1e-12
    assert np.isclose(summed(problem.value), 0.47745062, atol=1e-8)


def breast_cancer():
    """FLamby's training samples of TCGA-BRCA, survival times and regions 0 … 5, sorted by region."""
    with (TCGA / "train_test_split.csv").open() as file:
        folds = {row["pid"]: row for row in csv.DictReader(file)}
    with (TCGA / "brca.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if folds.get(row["pid"], {}).get("fold") == "train"]
    table = np.array([[float(value) for key, value in row.items() if key != "pid"] for row in rows])
    region = np.array([int(folds[row["pid"]]["fold2"][-1]) for row in rows])
    order = np.argsort(region, kind="stable")
    y = np.where(table[:, -2] > 0, table[:, -1], -table[:, -1])
    return table[order, :-2], y[order], region[order]
