"""Whether the samples determine the coefficients of a fit: separated classes, categories without events, and others."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import RunError, UserError

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
SOFTMAX = {"name": "softmax", "lam": 0.01, "bias": True}
NARROW = {"name": "huber", "delta": 1e-3}
SURVIVAL = np.where(CAME, TIMES, -TIMES)


def fit(columns, labels, problem, **more):
    study = {"algorithm": "newton", "rounds": 20, "objective": {"weights": "samples"}} | more
    data = mpifed.arrays(np.column_stack(columns), labels, [D // 2, D // 2])
    return mpifed.run(study, data=data, problem=problem).fit()


def descent(gamma, rounds):
    return {"algorithm": {"name": "gd", "gamma": gamma}, "selection": "all", "rounds": rounds, "stop": {"diverged": 0}}


COMPLETE = ([A, B, ONE], (A + B > 0.3).astype(float))
TIED = ([STEPS, ONE], np.where(STEPS == 0, CLASSES, STEPS > 0).astype(float))
EMPTY = ([A, RARE, ONE], CLASSES * (1 - RARE))
BEST = "of x0 has no best value", "of x1 has no best value"
APART = "they separate the classes"
TWICE = "the coefficients of x0 and x2: .* leave one of them out"
ZEROS = "the coefficient of x1: .*0 in all rows; leave it out"
NONE = r"^at this model 0 of 300 samples have a residual within 0\.001, "
FAR = r"^this model is far from the optimum: f is .* with all coefficients at 0"
WIDE = list(RNG.standard_normal((D + 1, D)))
THREE = np.digitize(A, [-0.5, 0.5]).astype(float)
NO_FIT = {  # samples, labels, problem, rounds of Newton's method or step size and rounds of descent, the sentence
    "all classes, few rounds": (*COMPLETE, LOGISTIC, (8,), APART),
    "all classes": (*COMPLETE, LOGISTIC, (20,), APART),
    "all classes, to the end": (*COMPLETE, LOGISTIC, (80,), APART),
    "all classes, raw": ([1e3 * A, 1e-2 * B, ONE], COMPLETE[1], LOGISTIC, (20,), APART),
    "all classes, by descent": ([A + np.sign(A), B, ONE], (A > 0).astype(float), LOGISTIC, (5.0, 200), APART),
    "all but ties, few rounds": (*TIED, LOGISTIC, (8,), BEST[0]),
    "all but ties": (*TIED, LOGISTIC, (20,), BEST[0]),
    "no event": (*EMPTY, LOGISTIC, (20,), BEST[1]),
    "no event, H all but singular": (*EMPTY, LOGISTIC, (31,), BEST[1]),
    "no event, raw": ([1e2 * A, 1e-2 * RARE, ONE], EMPTY[1], LOGISTIC, (12,), BEST[1]),
    "no event in two": ([A, RARE, ONE, NEXT], EMPTY[1] * (1 - NEXT), LOGISTIC, (20,), "x1 and x3"),
    "no count": ([A, RARE, ONE], COUNTS * (1 - RARE), POISSON, (20,), BEST[1]),
    "no death": ([A, RARE], np.where(CAME & (RARE == 0), TIMES, -TIMES), "cox", (20,), BEST[1]),
    "deaths in order": ([-TIMES, B], SURVIVAL, "cox", (20,), "or order all events"),
    "given twice": ([A, B, A], CLASSES, LOGISTIC, (1e-4, 1), TWICE),
    "given twice, blown up": ([A, B, A], CLASSES, LOGISTIC, (1e3, 1), TWICE),
    "only zeros": ([A, 0 * A, ONE], CLASSES, LOGISTIC, (1e-4, 1), ZEROS),
    "all levels": ([A, RARE, 1 - RARE, ONE], CLASSES, POISSON, (1e3, 1), "the coefficients of x1, x2 and x3: "),
    "small labels": ([A, B, A], 1e-6 * COUNTS, "least-squares", (1e-4, 1), "the coefficients of x0 and x2: "),
    "few samples": (WIDE, CLASSES, LOGISTIC, (1e-4, 1), f"{D} samples do not determine {D + 1}"),
    "all scores": ([A, B], THREE, SOFTMAX, (1.0, 30), r"set problem\.lam above 0, and problem\.bias = false"),
    "logistic, blown up": ([30 * A, B, ONE], CLASSES, LOGISTIC, (1e5, 2), FAR),  # its columns are not to blame
    "poisson, blown up": ([A, B, ONE], COUNTS, POISSON, (5.0, 2), FAR),
    "cox, blown up": ([30 * A, B], SURVIVAL, "cox", (1e4, 2), FAR),
    "least squares, blown up": ([A, B, ONE], COUNTS, "least-squares", (50.0, 2), FAR),
    "nothing bends": ([A, B], A + 10, NARROW, (1e-3, 1), NONE),
}


REPEATED = "all classes; all classes, raw; all but ties; no event, raw; given twice, blown up; cox, blown up; "
REPEATED += "least squares, blown up; raw counts; three counts"


def cases(kinds):
    """Those by default that are not the same as another in other numbers."""
    return [pytest.param(kind, marks=[pytest.mark.slow] * (kind in REPEATED.split("; "))) for kind in kinds]


@pytest.mark.parametrize("kind", cases(NO_FIT))
def test_what_the_samples_do_not_determine_is_named(kind):
    columns, labels, problem, effort, words = NO_FIT[kind]
    study = {"rounds": effort[0]} if len(effort) == 1 else descent(*effort)
    with pytest.raises(UserError, match=words):
        fit(columns, labels, problem, **study)


def test_what_the_sentences_advise_gives_a_fit():
    assert np.isfinite(fit([A, ONE], EMPTY[1], LOGISTIC).error).all()
    assert len(fit([A, B], THREE, SOFTMAX | {"bias": False}, **descent(1.0, 30)).x) == 6
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
    "survival": ([A, B], SURVIVAL, "cox"),
}


@pytest.mark.parametrize("kind", cases(DETERMINED))
def test_a_likelihood_with_a_maximum_has_a_fit(kind):
    columns, labels, problem = DETERMINED[kind]
    found = fit(columns, labels, problem, rounds=40)
    assert np.isfinite([found.error, found.robust]).all()
    assert found.decrement < 1e-7


@pytest.mark.parametrize("factor", [pytest.param(1e4, marks=pytest.mark.slow), 1e7])
def test_the_unit_of_a_column_changes_its_coefficient_alone(factor, tmp_path):
    """Columns so different that Newton's method refuses them, at the coefficients of the same in other units."""
    plain = fit([A, B, ONE], CLASSES, LOGISTIC)
    np.savez(tmp_path / "start.npz", x=plain.x / [factor, 1 / factor, 1])
    study = {"start": str(tmp_path / "start.npz"), "algorithm": {"name": "gd", "gamma": 1e-300}, "rounds": 1}
    raw = fit([factor * A, B / factor, ONE], CLASSES, LOGISTIC, selection="all", **study)
    np.testing.assert_allclose(raw.error * [factor, 1 / factor, 1], plain.error, rtol=1e-8)


SITE = np.arange(D) % 2 + 0.0  # the same in all rows of a client, once rows are sorted by it


@pytest.mark.parametrize("method", ["newton", pytest.param("fednl", marks=pytest.mark.slow)])
def test_a_covariate_of_the_site_is_told_to_cox_and_what_is_advised_gives_the_coefficients(method, tmp_path):
    rows = np.argsort(SITE, kind="stable")
    columns, labels = [A[rows], SITE[rows]], SURVIVAL[rows]
    told = "x1 is the same in all rows of each client, which is a stratum of cox, .*: leave it out, or make one stratum"
    study = {"algorithm": {"name": method}, "rounds": 30}
    with pytest.raises(RunError, match=f"^{method} finds no step: {told}"):
        fit(columns, labels, "cox", **study)
    with pytest.raises(UserError, match=f"^{told}"):
        fit(columns, labels, "cox", **descent(1e-3, 3))
    assert fit(columns[:1], labels, "cox", **study).gradient < 1e-9
    path = tmp_path / "sites.csv"
    lines = [f"{'UJ'[int(s)]},{a},{s},{abs(t)},{int(t > 0)}" for a, s, t in zip(*columns, labels, strict=True)]
    path.write_text("\n".join(["site,a,dose,t,e", *lines]) + "\n")
    source = {"name": "file", "path": str(path), "time": "t", "event": "e"}
    with pytest.raises(RunError, match="finds no step: dose is the same in all rows of each client"):
        mpifed.run(study, data=source | {"client": "site"}, problem="cox")
    for ignore in (["dose"], ["site"]):
        own = {"clients": 1} if ignore == ["site"] else {"client": "site"}
        assert mpifed.run(study, data=source | own | {"ignore": ignore}, problem="cox").fit().gradient < 1e-9


def test_few_rows_of_sketches_are_no_fault_of_columns_and_as_many_as_advised_arrive():
    data = mpifed.arrays(RNG.standard_normal((D, 20)), CLASSES, [D // 2, D // 2])
    study = {"data": data, "problem": LOGISTIC, "rounds": 60}
    for k in (2, 20):
        told = rf"^fedns finds no step: algorithm\.k = {k} rows from each of 2 clients are {2 * k}, too few for 20 "
        with pytest.raises(RunError, match=rf"{told}coefficients: set algorithm\.k = 40, so that they are 4 for each$"):
            mpifed.run(study, algorithm={"name": "fedns", "k": k})
    assert mpifed.run(study, algorithm={"name": "fedns", "k": 40}).rounds["grad_norm_sq"][-1] < 1e-12


AIR = [80, 80, 75, *[62] * 5, *[58] * 6, *[50] * 5, 56, 70]
WATER = [27, 27, 25, 24, 22, 23, 24, 24, 23, 18, 18, 17, 18, 19, 18, 18, 19, 19, 20, 20, 20]
ACID = [89, 88, 90, 87, 87, 87, 93, 93, 87, 80, 89, 88, 82, 93, 89, 86, 72, 79, 80, 82, 91]
LOST = [42, 37, 37, 28, 18, 18, 19, 20, 15, 14, 14, 13, 11, 12, 8, 7, 8, 8, 9, 15, 15]
# statsmodels 0.15.0: RLM(LOST, add_constant(…), M=norms.HuberT()).fit(tol=1e-14, maxiter=500).params and .scale
RLM = [0.8293843346, 0.926065966197, -0.127846724946, -41.0264983524]


OTHERS = [pytest.param(method, marks=pytest.mark.slow) for method in ({"name": "newton"}, {"name": "fedns", "k": 40})]


@pytest.mark.parametrize("method", [{"name": "fednl"}, *OTHERS])
def test_residuals_beyond_delta_are_no_fault_of_columns_and_the_scale_of_residuals_gives_the_robust_fit(method):
    data = mpifed.arrays(np.column_stack([AIR, WATER, ACID]), LOST, [7, 7, 7])
    study = {"algorithm": method, "rounds": 40, "objective": {"weights": "samples"}, "data": data}
    told = "at this model 0 of 21 samples have a residual within 1.345, .*, and there are 4 coefficients: "
    right = 'problem.scale = "residuals" counts delta in their robust scale and begins at least squares'
    with pytest.raises(RunError, match=f"^{method['name']} finds no step: {told}{right}$"):
        mpifed.run(study, problem="huber")
    with pytest.raises(UserError, match=f"^{told}{right}$"):
        mpifed.run(study, problem="huber", **descent(1e-6, 2)).fit()
    result = mpifed.run(study, problem={"name": "huber", "scale": "residuals"})
    np.testing.assert_allclose(result.fit().x, RLM, rtol=1e-8)
    assert "problem.delta is 1.345 × 2.44054 = 3.28252, of the residuals of all samples" in result.attrs["notes"]
    small = {"name": "huber", "scale": "residuals", "delta": 1e-4}
    with pytest.raises(RunError, match=r"a larger problem\.delta, such as the usual 1\.345, has more of them within$"):
        mpifed.run(study, problem=small)


def test_a_robust_scale_counts_frequencies_offsets_and_sites_that_train():
    X, y, counts, shift = np.column_stack([A, B]), 2 * A - B + TIMES, 1 + np.arange(D) % 3, 0.1 * B
    problem = {"name": "huber", "scale": "residuals"}
    study = {"algorithm": "newton", "rounds": 30, "objective": {"weights": "samples"}, "problem": problem}
    half = np.repeat([0, 1], D // 2)
    one = mpifed.run(study, data=mpifed.arrays(X, y, half, frequency=counts, offset=shift))
    often = np.repeat(np.arange(D), counts)
    other = mpifed.run(study, data=mpifed.arrays(X[often], (y - shift)[often], half[often]))
    np.testing.assert_allclose(one.x, other.x, rtol=1e-8)


def test_a_scale_of_exact_labels_is_refused_and_is_no_private_number():
    problem = {"name": "huber", "scale": "residuals"}
    with pytest.raises(UserError, match=r'^problem\.scale = "residuals" is wrong: half of the residuals are 0'):
        fit([A, B], np.where(np.arange(D) % 3 > 0, A + B, COUNTS), problem)
    private = {"name": "fedepm", "noise": "clipped", "epsilon": 0.1}
    with pytest.raises(UserError, match=r'problem.*scale = "labels" takes delta as it is'):
        fit([A, B], COUNTS, problem, algorithm=private, objective={})
