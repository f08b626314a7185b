"""Whether the samples determine the coefficients of a fit: separated classes, categories without events, and others."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError

D = 300
RNG = np.random.default_rng(1)
A, B = RNG.standard_normal((2, D))
ONE = np.ones(D)
RARE = (np.arange(D) % 10 == 0).astype(float)  # a category
NEXT = np.roll(RARE, 1)  # another
CLASSES = (RNG.random(D) < 1 / (1 + np.exp(-A))).astype(float)
COUNTS = RNG.poisson(np.exp(0.5 + 0.3 * A)).astype(float)
TIMES = RNG.exponential(np.exp(-A)) + 0.01
CAME = RNG.random(D) < 0.7
STEPS = np.round(A)
LOGISTIC = {"name": "logistic", "mu": 0.0}
POISSON = {"name": "poisson", "bias": False}


def fit(columns, labels, problem, **more):
    study = {"algorithm": "newton", "rounds": 20, "objective": {"weights": "samples"}} | more
    data = mpifed.arrays(np.column_stack(columns), labels, [D // 2, D // 2])
    return mpifed.run(study, data=data, problem=problem).fit()


def descent(gamma, rounds):
    return {"algorithm": {"name": "gd", "gamma": gamma}, "selection": "all", "rounds": rounds, "stop": {"diverged": 0}}


COMPLETE = ([A, B, ONE], (A + B > 0.3).astype(float))
TIED = ([STEPS, ONE], np.where(STEPS == 0, CLASSES, STEPS > 0).astype(float))
EMPTY = ([A, RARE, ONE], CLASSES * (1 - RARE))
SEPARATED = {  # samples and labels, problem, rounds, the sentence
    "all classes, few rounds": (COMPLETE, LOGISTIC, 8, "they separate the classes"),
    "all classes": (COMPLETE, LOGISTIC, 20, "they separate the classes"),
    "all classes, to the end": (COMPLETE, LOGISTIC, 80, "they separate the classes"),
    "all classes, raw": (([1e3 * A, 1e-2 * B, ONE], COMPLETE[1]), LOGISTIC, 20, "they separate the classes"),
    "all but ties, few rounds": (TIED, LOGISTIC, 8, "of x0 has no best value"),
    "all but ties": (TIED, LOGISTIC, 20, "of x0 has no best value"),
    "no event": (EMPTY, LOGISTIC, 20, "of x1 has no best value"),
    "no event, H all but singular": (EMPTY, LOGISTIC, 31, "of x1 has no best value"),
    "no event, raw": (([1e2 * A, 1e-2 * RARE, ONE], EMPTY[1]), LOGISTIC, 12, "of x1 has no best value"),
    "no event in two": (([A, RARE, ONE, NEXT], EMPTY[1] * (1 - NEXT)), LOGISTIC, 20, "x1 and x3"),
    "no count": (([A, RARE, ONE], COUNTS * (1 - RARE)), POISSON, 20, "of x1 has no best value"),
    "no death": (([A, RARE], np.where(CAME & (RARE == 0), TIMES, -TIMES)), "cox", 20, "of x1 has no best value"),
    "deaths in order": (([-TIMES, B], np.where(CAME, TIMES, -TIMES)), "cox", 20, "or order all events"),
}


@pytest.mark.parametrize("kind", SEPARATED)
def test_a_likelihood_without_a_maximum_has_no_fit(kind):
    (columns, labels), problem, rounds, words = SEPARATED[kind]
    with pytest.raises(UserError, match=words):
        fit(columns, labels, problem, rounds=rounds)


def test_first_order_methods_find_separated_classes_too():
    with pytest.raises(UserError, match="they separate the classes"):
        fit([A + np.sign(A), B, ONE], (A > 0).astype(float), LOGISTIC, **descent(5.0, 200))


def test_what_the_sentences_advise_gives_a_fit():
    assert np.isfinite(fit([A, ONE], EMPTY[1], LOGISTIC).error).all()
    for columns, y in (EMPTY, COMPLETE):
        found = fit(columns, y, LOGISTIC | {"mu": 0.01}, rounds=60)
        assert found.error.max() < 20
        assert "draws coefficients towards 0" in found.notes[0]


OUTLIERS = np.where(np.arange(D) < 3, 100 * np.sign(CLASSES - 0.5), A)
LINE = np.r_[np.linspace(-1, -0.001, D // 2 - 1), -0.0012, np.linspace(0.001, 1, D // 2)]
EVENT = CLASSES * (1 - RARE) + (np.arange(D) == 0)
DETERMINED = {  # samples, labels, problem
    "plain": ([A, B, ONE], CLASSES, LOGISTIC),
    "raw columns": ([1e3 * A, 1e-3 * B, ONE], CLASSES, LOGISTIC),
    "one event in a category": ([A, RARE, ONE], EVENT, LOGISTIC),
    "one sample on the other side": ([LINE, ONE], (np.arange(D) >= D // 2 - 1).astype(float), LOGISTIC),
    "outliers": ([OUTLIERS, ONE], CLASSES, LOGISTIC),
    "three events": ([A, ONE], (np.arange(D) % 100 == 7).astype(float), LOGISTIC),
    "three counts": ([A, ONE], (np.arange(D) % 100 == 7).astype(float), POISSON),
    "raw counts": ([1e3 * A, 1e-3 * B, ONE], COUNTS, POISSON),
    "survival": ([A, B], np.where(CAME, TIMES, -TIMES), "cox"),
}


@pytest.mark.parametrize("kind", DETERMINED)
def test_a_likelihood_with_a_maximum_has_a_fit(kind):
    columns, labels, problem = DETERMINED[kind]
    found = fit(columns, labels, problem, rounds=40)
    assert np.isfinite([found.error, found.robust]).all()
    assert found.decrement < 1e-7


@pytest.mark.parametrize("factor", [1e4, 1e7])
def test_the_unit_of_a_column_changes_its_coefficient_alone(factor, tmp_path):
    """Columns so different that Newton's method refuses them, at the coefficients of the same in other units."""
    plain = fit([A, B, ONE], CLASSES, LOGISTIC)
    np.savez(tmp_path / "start.npz", x=plain.x / [factor, 1 / factor, 1])
    study = {"start": str(tmp_path / "start.npz"), "algorithm": {"name": "gd", "gamma": 1e-300}, "rounds": 1}
    raw = fit([factor * A, B / factor, ONE], CLASSES, LOGISTIC, selection="all", **study)
    np.testing.assert_allclose(raw.error * [factor, 1 / factor, 1], plain.error, rtol=1e-8)


DEPENDENT = {  # samples, labels, problem, the sentence
    "given twice": ([A, B, A], CLASSES, LOGISTIC, "the coefficients of x0 and x2: .* leave one of them out"),
    "only zeros": ([A, 0 * A, ONE], CLASSES, LOGISTIC, "the coefficient of x1: .*0 in all rows; leave it out"),
    "all levels": ([A, RARE, 1 - RARE, ONE], CLASSES, POISSON, "the coefficients of x1, x2 and x3: "),
    "small labels": ([A, B, A], 1e-6 * COUNTS, "least-squares", "the coefficients of x0 and x2: "),
    "few samples": (list(RNG.standard_normal((D + 1, D))), CLASSES, LOGISTIC, f"{D} samples do not determine {D + 1}"),
}


@pytest.mark.parametrize("kind", DEPENDENT)
@pytest.mark.parametrize("gamma", [1e-4, 1e3])  # the latter blows up
def test_columns_that_depend_on_each_other_are_named(kind, gamma):
    columns, labels, problem, words = DEPENDENT[kind]
    with pytest.raises(UserError, match=words):
        fit(columns, labels, problem, **descent(gamma, 1))


def test_scores_of_all_classes_move_together():
    labels = np.digitize(A, [-0.5, 0.5]).astype(float)
    softmax = {"name": "softmax", "lam": 0.01, "bias": True}
    with pytest.raises(UserError, match=r"set problem\.lam above 0, and problem\.bias = false"):
        fit([A, B], labels, softmax, **descent(1.0, 30))
    assert len(fit([A, B], labels, softmax | {"bias": False}, **descent(1.0, 30)).x) == 6


BLOWN = {  # samples, labels, problem, step size
    "logistic": ([30 * A, B, ONE], CLASSES, LOGISTIC, 1e5),
    "poisson": ([A, B, ONE], COUNTS, POISSON, 5.0),
    "cox": ([30 * A, B], np.where(CAME, TIMES, -TIMES), "cox", 1e4),
    "least squares": ([A, B, ONE], COUNTS, "least-squares", 50.0),
}


@pytest.mark.parametrize("kind", BLOWN)
def test_a_run_that_blew_up_is_far_from_the_optimum_and_its_columns_are_not_to_blame(kind):
    columns, labels, problem, gamma = BLOWN[kind]
    with pytest.raises(UserError, match=r"^this model is far from the optimum: f is .* with all coefficients at 0"):
        fit(columns, labels, problem, **descent(gamma, 2))


def test_a_run_that_was_too_short_says_so():
    assert "standard errors from the optimum" in fit([A, B, ONE], CLASSES, LOGISTIC, **descent(0.1, 5)).notes[-1]


def test_a_hessian_without_samples_that_bend_is_no_fault_of_columns():
    with pytest.raises(UserError, match=r"it is far from the optimum, or problem\.delta is too small"):
        fit([A, B], A + 10, {"name": "huber", "delta": 1e-3}, **descent(1e-3, 1))
