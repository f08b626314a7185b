"""Numbers of each client that a study may name, against scikit-learn 1.9.1 and against their definitions."""

import numpy as np
import pytest

from mpifed.data.pool import Pool
from mpifed.problems.logistic import Logistic
from mpifed.problems.softmax import Softmax
from mpifed.statistics.cox import Cox
from mpifed.statistics.log_link import Gamma, Poisson
from tests.helpers.problem_cases import one_block

ONE = np.ones(1)
SIZES = [30, 13]


def samples(d):
    """Scores with ties and labels 0 and 1, (d,) each."""
    j = np.arange(d)
    return np.round(2 * np.sin(3 * j), 1), (7 * j % 5 < 2).astype(float)


def block_of(problem, clients, dtype="float64"):
    """Clients with these scores or rows and labels, in one block."""
    X, y = (np.concatenate(part) for part in zip(*clients, strict=True))
    pool = Pool(X.reshape(len(y), -1), y, None, np.array([len(y) for _, y in clients]), dtype)
    return one_block(problem, pool)


def area(z, b):
    """By definition: how often a score of label 1 is above one of label 0, 1/2 where they are equal."""
    away = z[b == 1][:, None] - z[b == 0]
    return np.mean((away > 0) + (away == 0) / 2) if away.size else np.nan


def test_numbers_of_logistic_regression_are_those_of_scikit_learn():
    """roc_auc_score(b, z), 2·log_loss(b, p), and calibration_curve(b, p, n_bins=15) weighted with the bins' shares."""
    problem = Logistic()
    block = block_of(problem, [samples(d) for d in SIZES])
    found = {name: compute(block, ONE) for name, compute in problem.client_measures().items()}
    assert np.allclose(found["auc"], [0.525462962962963, 0.3875], rtol=1e-14)
    assert np.allclose(found["deviance"], [1.7051322929557244, 2.050274235341158], rtol=1e-14)
    assert np.allclose(found["calibration_error"], [0.27972452682835963, 0.47971211896929583], rtol=1e-13)
    assert np.allclose(found["observed_expected"], [0.8098966054166961, 0.7919861970061921], rtol=1e-14)


def test_the_calibration_error_of_classes_is_that_of_the_predicted_ones():
    """The same with the largest probability of a sample, and whether that class is its label."""
    problem = Softmax(bias=False)
    clients = []
    for d in SIZES:
        z = samples(d)[0]
        clients.append((np.column_stack([z, np.roll(z, 1), np.roll(z, 2)]), np.arange(d) % 3.0))
    (compute,) = problem.client_measures().values()
    found = compute(block_of(problem, clients), np.eye(3).ravel())
    assert np.allclose(found, [0.3621467465175943, 0.43529816499414353], rtol=1e-13)


def test_deviances_of_poisson_and_gamma_are_those_of_scikit_learn():
    """mean_poisson_deviance(b, e^z), mean_gamma_deviance(b + 1, e^z)."""
    poisson, gamma = Poisson(bias=False), Gamma(bias=False)
    found = poisson.measure(block_of(poisson, [samples(d) for d in SIZES]), ONE)[0]
    assert np.allclose(found, [3.269273765035869, 4.005288718655413], rtol=1e-13)
    shifted = [(z, b + 1) for z, b in map(samples, SIZES)]
    assert np.allclose(gamma.measure(block_of(gamma, shifted), ONE)[0], [3.2879457375385237, 4.732435135229122])


@pytest.mark.parametrize("problem", [Poisson(bias=False), Gamma(bias=False)], ids=lambda problem: problem.label())
def test_counts_observed_over_expected_are_sums_of_labels_over_sums_of_means(problem):
    clients = [(z, b + 1) for z, b in map(samples, SIZES)]
    (compute,) = problem.client_measures().values()
    wanted = [b.sum() / np.exp(z).sum() for z, b in clients]
    assert np.allclose(compute(block_of(problem, clients), ONE), wanted, rtol=1e-14)


@pytest.mark.parametrize("levels", [1, 2, 3, 50])
def test_the_area_under_the_curve_is_its_definition_for_any_ties(levels):
    rng = np.random.default_rng(levels)
    clients = [(rng.integers(levels, size=d) / 7, rng.integers(2, size=d) * 1.0) for d in rng.integers(1, 40, 30)]
    problem = Logistic()
    for z, b in clients:  # alone, as in any block
        assert np.array_equal(problem.auc(block_of(problem, [(z, b)]), ONE), [area(z, b)], equal_nan=True)


def test_a_client_with_one_class_has_no_area_and_means_that_vanish_give_no_ratio():
    clients = [samples(9), (np.arange(9.0), np.ones(9)), (np.arange(9.0), np.zeros(9))]
    found = Logistic().auc(block_of(Logistic(), clients), ONE)
    assert np.array_equal(found, [area(*samples(9)), np.nan, np.nan], equal_nan=True)
    clients = [(np.full(4, -800.0), np.ones(4)), (np.zeros(4), np.zeros(4))]
    found = Poisson(bias=False).observed_expected(block_of(Poisson(bias=False), clients), ONE)
    assert np.array_equal(found, [np.nan, 0.0], equal_nan=True)


def test_a_client_without_a_pair_has_no_c_index_where_the_mean_over_clients_takes_one_half():
    times = np.array([3.0, -2.0, 1.0, 4.0])
    clients = [(np.arange(4.0), times), (np.arange(4.0), -np.abs(times))]
    block = block_of(Cox(), clients)
    found = Cox().client_measures()["c_index"](block, ONE)
    mean = Cox().measure(block, ONE)[0]
    assert np.isnan(found).tolist() == [False, True]
    assert (found[0], 0.5) == tuple(mean)
    # events at 1, 3, 4: the pairs are 1 with each of the others, and 3 with 4; scores 2 > 0, 1, but not > 3; 0 < 3
    assert found[0] == 2 / 4
