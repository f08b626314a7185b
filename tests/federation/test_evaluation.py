"""What is evaluated of every client: by name, and how well a model classifies."""

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.algorithms.fedavg import FedAvg
from mpifed.core.errors import UserError
from mpifed.core.roles import Role
from mpifed.data.pool import Pool
from mpifed.experiment.rounds import evaluate
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import All
from mpifed.federation.setup import RunSpec
from mpifed.problems.classifier import SVM
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic
from mpifed.problems.softmax import Softmax
from tests.helpers.algorithm_runs import M, Run, build

ALWAYS = ("objective", "objective_samples", "gradient")
CLASSES = ("accuracy", "correct", "tested")
PERSONAL = ("personal_objective", "personal_accuracy")


@pytest.mark.parametrize(
    ("name", "options", "problem", "names"),
    [
        ("fedavg", {}, "softmax", ALWAYS + CLASSES),
        ("flame", {}, "least-squares", (*ALWAYS, "personal_objective")),
        ("flame", {"lagrangian": True}, "least-squares", (*ALWAYS, "personal_objective", "lagrangian")),
        ("pfedme", {"envelope": True}, "softmax", (*ALWAYS, *CLASSES, *PERSONAL, "envelope")),
        ("fedgia", {}, "least-squares", ALWAYS),
        ("fedadmm", {}, "least-squares", (*ALWAYS, "inner_steps")),
        ("fedadmm", {"lagrangian": True}, "least-squares", (*ALWAYS, "inner_steps", "lagrangian", "squares")),
        ("feddcd", {"dual": True}, "quadratic", (*ALWAYS, "dual_objective")),
    ],
)
def test_quantities_travel_by_name_in_order_are_charged_to_nobody_and_what_is_not_recorded_does_not(
    name, options, problem, names
):
    run = Run(build(name, options), problem)
    run.rounds(1)
    before, computing = dict(vars(run.fed.ledger)), (run.fed.computing, run.fed.slowest)
    assert tuple(run.fed.evaluate(run.server.x).sums) == names
    assert vars(run.fed.ledger) == before
    assert (run.fed.computing, run.fed.slowest) == computing


def test_columns_are_means_over_clients_or_over_samples():
    run = Run(build("fedavg"), "softmax")
    x = np.random.default_rng(0).normal(size=run.n)
    sums = run.fed.evaluate(x).sums
    row = run.fed.evaluation.means(sums, run.m, run.fed.samples)
    block_values = [run.problem.value(block, x) for block in run.hosts[0].blocks]
    f = np.concatenate(block_values)[run.hosts[0].slot]
    assert row["objective"] == pytest.approx(f.mean(), rel=1e-12)
    assert row["objective_samples"] == pytest.approx(np.average(f, weights=run.data.sizes), rel=1e-12)
    assert row["accuracy_pooled"] == sums["correct"] / sums["tested"]
    assert row["grad_norm_sq"] == pytest.approx(np.sum(sums["gradient"] ** 2) / M**2, rel=1e-12)


class Measuring(LeastSquares, tag="measuring"):
    """Least squares that records how far its scores are off, on test samples."""

    def measure_names(self):
        return "off", "samples"

    def measure(self, block, X):
        r = np.abs(block.matvec(X) - block.b)
        return np.vecdot(block.w, r), block.d.astype(float)


def test_what_a_problem_measures_is_a_mean_over_clients_on_their_test_samples():
    """Client 1 has no test samples: the mean leaves it out."""
    rng, sizes, tests = np.random.default_rng(0), np.array([5, 6, 7]), np.array([2, 0, 9])
    X, y = rng.standard_normal((34, 3)), rng.standard_normal(34)
    data = Pool(X[:18], y[:18], None, sizes, "float64", (X[18:29], y[18:29], None, tests))
    run, x = Run(FedAvg(k0=1), Measuring(), data=data), np.ones(3)
    sums = run.fed.evaluate(x).sums
    row = run.fed.evaluation.means(sums, run.m, 18)
    rows = np.split(np.abs(X @ x - y), [5, 11, 18, 20, 29])
    assert np.isclose(row["off"], np.mean([rows[3].mean(), rows[4].mean()]), rtol=1e-12)
    assert row["samples"] == (2 + 9) / 2
    assert "accuracy" not in row


SOME = [2, 0, 5, 0, 1, 7, 0]  # test samples of seven clients


def classified(sizes_test, kind=np.asarray):
    """Seven clients with samples of three classes to train on and, where sizes_test is above 0, to test on."""
    rng, sizes = np.random.default_rng(0), np.array([3, 9, 4, 10, 3, 12, 5])
    A, b, test = rng.standard_normal((46, 4)), rng.integers(0, 3, 46).astype(float), None
    b[:3] = range(3)
    if sizes_test is not None:
        d = sum(sizes_test)
        T, c = rng.standard_normal((d, 4)), rng.integers(0, 3, d).astype(float)
        test = (kind(T), c, None, np.array(sizes_test))
    return Pool(kind(A), b, None, sizes, test=test)


def samples(data):
    """(rows, labels) of each client's own test samples, of training samples where no client has test samples."""
    rows = data.rows_test if data.sizes_test is not None and data.sizes_test.any() else data.rows
    found = [rows(i, i + 1) for i in range(7)]
    return [(A.toarray() if sp.issparse(A) else A, b) for A, b in found]


def hits(data, X):
    """(right, of how many) of each client at the linear classifiers X (7, 15), counted one by one."""
    found = []
    for x, (A, b) in zip(X, samples(data), strict=True):
        scores = [list(x[:12].reshape(3, 4) @ a + x[12:]) for a in A]
        right = sum(row.index(max(row)) == k for row, k in zip(scores, b, strict=True))
        found.append((right, len(b)))
    return np.array(found).T


def row_of(run, x=None):
    """What is recorded of a run, at its own model or at x."""
    return evaluate(run.algorithm, run.fed, run.server if x is None else run.server._replace(x=x))


@pytest.mark.parametrize(
    ("problem", "sizes_test"),
    [
        *[(Softmax(), sizes) for sizes in (None, SOME, [0] * 7)],
        *[(SVM(), sizes) for sizes in ([2, 1, 5, 4, 1, 7, 3], [0, 0, 0, 0, 0, 0, 9])],
    ],
    ids=str,
)
def test_accuracy_is_that_of_test_samples_or_where_nobody_has_any_of_training_samples(problem, sizes_test, kind):
    data = classified(sizes_test, kind)
    run = Run(build("flame"), problem, data=data, selection=All())
    (host,) = run.hosts
    rng = np.random.default_rng(1)
    x, theta = rng.standard_normal(15), rng.standard_normal((7, 15))
    host.state.theta[:] = theta[host.order]
    row = row_of(run, x)
    right, count = hits(data, np.tile(x, (7, 1)))
    has = count > 0
    assert run.fed.evaluation.role.missing == (~has).sum()
    assert np.isclose(row["accuracy"], np.mean(right[has] / count[has]), rtol=1e-14)
    assert np.isclose(row["accuracy_pooled"], right.sum() / count.sum(), rtol=1e-14)
    right, count = hits(data, theta)
    assert np.isclose(row["personal_accuracy"], np.mean(right[has] / count[has]), rtol=1e-14)
    plain = row_of(Run(build("fedavg"), problem, data=classified(None, kind)), x)  # f is that of training samples
    assert all(np.isclose(row[key], plain[key], rtol=1e-14) for key in ("objective", "objective_samples"))
    places = zip(host.starts[:-1], host.blocks, strict=True)
    values = [run.problem.value(block, theta[host.order[a : a + len(block)]]) for a, block in places]
    assert np.isclose(row["personal_objective"], np.concatenate(values).mean(), rtol=1e-12)


@pytest.mark.parametrize("cuts", [(0, 1, 2, 6, 7), range(8)], ids=lambda cuts: f"{len(cuts) - 1} hosts")
def test_accuracy_does_not_depend_on_how_many_hosts_there_are(cuts, kind):
    alone, together = (
        Run(build("flame", {"batch_size": 3}), Softmax(), data=classified(SOME, kind), cuts=parts)
        for parts in ((0, 7), cuts)
    )
    alone.rounds(3)
    together.rounds(3)
    assert row_of(alone) == row_of(together)


def test_a_tie_goes_to_the_lowest_class():
    """At x = 0 all scores are equal: right are those of class 0, of a logistic score the one of zero."""
    data = classified(SOME)
    row = row_of(Run(build("flame"), Softmax(), data=data))
    own = [b == 0 for _, b in samples(data) if len(b)]
    assert np.isclose(row["accuracy"], np.mean([zeros.mean() for zeros in own]), rtol=1e-14)
    assert row["personal_accuracy"] == row["accuracy"]
    assert np.isclose(row["accuracy_pooled"], np.concatenate(own).mean(), rtol=1e-14)
    X, y = np.random.default_rng(2).standard_normal((9, 2)), np.array([0.0, 1, 1, 0, 0, 1, 0, 0, 1])
    for labels in (y, 2 * y - 1):
        data = Pool(X, labels, None, np.array([4, 5]))
        assert row_of(Run(build("fedavg"), Logistic(), data=data))["accuracy"] == (2 / 4 + 3 / 5) / 2


def test_labels_of_test_samples_are_checked_too():
    data = classified(SOME)
    data.samples["test"].y[3] = 0.5
    with pytest.raises(UserError, match=r"^problem 'softmax' cannot use .*: labels must be whole .* there is 0\.5$"):
        Host(RunSpec(Softmax(), build("fedavg"), 0, 7, np.zeros(15), role=Role("test", 3)), data, 0, 7)
