"""Local steps with Gram matrices of samples: the same models as on the parameters, in any company, for less work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mpifed
from mpifed.kernels import sample_space
from mpifed.kernels.plan import make_dense_block
from mpifed.kernels.products import DenseProducts
from mpifed.kernels.sample_space import SampleSpace, pays, pays_by_hessian
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic

M, N = 5, 40
CLASSES = {"name": "synthetic", "clients": M, "features": N, "classes": 3, "least": 5, "most": 15}
BINARY = CLASSES | {"classes": 2}
NUMBERS = {"name": "gaussian", "clients": M, "features": N, "samples": 9, "task": "linear"}
FULL = {"batch_size": 0}
METHODS = {
    "fedavg": {"selection": {"count": 3}},
    "fedavg, momentum": {"optimizer": {"name": "momentum", "nesterov": True, "weight_decay": 0.01}},
    "fedavg, clip": {"optimizer": {"name": "sgd", "clip": 0.05}},
    "fedavg, cosine": {"step": {"name": "cosine", "a": 0.1, "over": 9}},
    "fedprox": {"begin": "own", "scale": "1/m"},
    "scaffold": {"objective": {"weights": "samples"}},
    "feddyn": {},
    "fedpd": {},
    "fednova": {"optimizer": "momentum"},
    "fedadmm": {"inner_max": 8, "objective": {"l1": 0.01}},
    "fedadmm-deep": FULL,
    "local-gd": {},
    "q-fedavg": {},
    "apfl": {},
    "ditto": FULL,
    "pfedme": FULL,
    "flame": FULL,
    "fedbuff": {"asynchronous": {"arrivals": 2}, "system": {"latency": 0.1}},
    "led": {"graph": "ring"},
    "lt-admm": {"graph": "ring"},
    "k-gt": {"graph": "ring"},
    "proxskip": {},
    "feddcd": {"solver": {"name": "gd", "steps": 6}},
}
PASSES = {"batch_size": 4, "epochs": 1.5}
BATCHES = {
    "fedavg": PASSES | {"step": {"name": "cosine", "a": 0.1, "over": 9}},
    "fedavg, drawn anew": {"batch_size": 4, "k0": 7, "optimizer": "momentum", "objective": {"weights": "samples"}},
    "fedavg, merge": PASSES | {"last_batch": "merge", "optimizer": {"name": "sgd", "clip": 0.05}},
    "fedavg, drop": PASSES | {"last_batch": "drop", "selection": {"count": 3}},
    "fedprox": PASSES | {"inner": 2, "begin": "own"},
    "scaffold": PASSES,
    "feddyn": PASSES,
    "fednova": PASSES,
    "fedadmm-deep": PASSES,
    "q-fedavg": PASSES,
    "apfl": PASSES,
    "ditto": {"batch_size": 4, "k0": 7},
    "pfedme": PASSES,
    "flame": PASSES,
    "fedbuff": PASSES | {"asynchronous": {"arrivals": 2}, "system": {"latency": 0.1}},
    "proxskip": {"batch_size": 4, "p": 0.2},
    "feddcd": {"solver": {"name": "sgd", "batch_size": 4, "epochs": 2}},
    "accfeddcd": {"solver": {"name": "svrg", "batch_size": 4, "epochs": 2}},
}
PROBLEMS = {
    "logistic": {"problem": {"name": "logistic", "mu": 0.1}, "data": BINARY},
    "softmax": {"problem": {"name": "softmax", "lam": 0.1, "bias": False}, "data": CLASSES},
    "softmax with bias": {"problem": "softmax", "data": CLASSES},
}
TABLES = ("selection", "objective", "asynchronous", "system", "graph")


def study(name, problem="logistic", methods=METHODS, **more):
    options = methods[name]
    tables = {key: value for key, value in options.items() if key in TABLES}
    own = {key: value for key, value in options.items() if key not in TABLES}
    base = {"rounds": 6, "stop": {"gradient": 0.0, "diverged": 0}, "progress": False}
    return base | PROBLEMS[problem] | {"algorithm": {"name": name.partition(",")[0]} | own} | tables | more


def run(*args, **more):
    return mpifed.run(**study(*args, **more))


@pytest.fixture
def spaces(monkeypatch):
    """The spaces that runs make."""
    made = []
    begin = SampleSpace.__init__
    monkeypatch.setattr(SampleSpace, "__init__", lambda self, *args: made.append(self) or begin(self, *args))
    return made


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        *((name, "logistic") for name in METHODS),
        *((name, "softmax") for name in ("fedavg", "fedadmm", "fedpd", "apfl")),
    ],
)
def test_models_are_those_of_steps_on_the_parameters(name, problem, spaces):
    scores = run(name, problem, space="samples")
    assert spaces
    assert all("K" in vars(space) for space in spaces[-1:])
    made = len(spaces)
    plain = run(name, problem, space="parameters")
    assert len(spaces) == made
    assert np.allclose(scores.x, plain.x, rtol=0, atol=1e-12 * np.abs(plain.x).max())


@pytest.mark.parametrize(
    ("name", "problem"),
    [*((name, "logistic") for name in BATCHES), *((name, "softmax") for name in ("fedavg", "scaffold", "apfl"))],
)
def test_mini_batches_take_rows_of_the_gram_matrices(name, problem, spaces):
    """Rests of a pass too, which are filled up with samples that may be in them: sizes are 5 to 15."""
    scores = run(name, problem, BATCHES, space="samples")
    assert any("K" in vars(space) for space in spaces)
    plain = run(name, problem, BATCHES, space="parameters")
    assert np.allclose(scores.x, plain.x, rtol=0, atol=1e-12 * np.abs(plain.x).max())


def test_work_decides_for_mini_batches_too(spaces):
    """Three passes over the samples pay, one mini-batch does not."""
    wide = {"data": BINARY | {"features": 200}}
    mpifed.run(**study("fedavg") | wide | {"algorithm": {"name": "fedavg", "batch_size": 4, "k0": 1}})
    assert not any("K" in vars(space) for space in spaces)
    mpifed.run(**study("fedavg") | wide | {"algorithm": {"name": "fedavg", "batch_size": 4, "epochs": 3}})
    assert any("K" in vars(space) for space in spaces)


def test_a_mini_batch_on_scores_copies_no_samples(monkeypatch):
    copied = []
    take = DenseProducts.take_rows
    monkeypatch.setattr(DenseProducts, "take_rows", lambda self, *args: copied.append(args) or take(self, *args))
    run("fedavg", methods=BATCHES, space="parameters")
    assert copied
    copied.clear()
    run("fedavg", methods=BATCHES, space="samples")
    assert not copied


MANY = {"data": NUMBERS | {"features": 12, "samples": 44}, "problem": {"name": "least-squares"}}


@pytest.fixture
def by_hessians(monkeypatch):
    """How many calls took second derivatives."""
    calls = []
    begin = LeastSquares.quadratics
    monkeypatch.setattr(LeastSquares, "quadratics", lambda *args: calls.append(1) or begin(*args))
    return calls


@pytest.mark.parametrize(
    "name", ["fedavg", "fedavg, momentum", "fedprox", "scaffold", "fedadmm", "fedpd", "apfl", "led"]
)
def test_quadratics_of_many_samples_take_their_second_derivatives(name, by_hessians):
    found = mpifed.run(**study(name) | MANY)
    assert by_hessians
    calls = len(by_hessians)
    plain = mpifed.run(**study(name, space="parameters") | MANY)
    assert len(by_hessians) == calls
    assert np.allclose(found.x, plain.x, rtol=0, atol=1e-12 * np.abs(plain.x).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["fedavg", "fedadmm", "scaffold"])
def test_who_shares_a_block_changes_no_bit_of_second_derivatives(name, dtype, by_hessians):
    one, many = (mpifed.run(**study(name, dtype=dtype, block_bytes=size) | MANY).x for size in (1, 10_000_000))
    assert by_hessians
    assert np.array_equal(one, many)


def test_second_derivatives_count_weights_offsets_and_regularisers():
    class Ridge(LeastSquares):
        def weight(self, d):
            return 0.1 * d

    block = make_dense_block(np.array([7, 8]), 3, np.float64)
    rng = np.random.default_rng(0)
    block.A[...], block.b[...], block.offset = rng.normal(size=(2, 8, 3)), rng.normal(size=(2, 8)), np.ones((2, 8))
    block.w[0, :7], block.w[1] = rng.uniform(size=7), rng.uniform(size=8)
    X = rng.normal(size=(2, 3))
    H, g = Ridge().quadratics(block)
    assert np.allclose(np.matvec(H, X) + g, Ridge().grad(block, X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["fedavg", "scaffold"])
def test_a_bias_is_a_feature_of_ones(name, spaces):
    assert np.allclose(run(name, "softmax with bias", space="samples").x, run(name, "softmax with bias").x, atol=1e-13)
    assert spaces


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("methods", [METHODS, BATCHES], ids=["all samples", "mini-batches"])
@pytest.mark.parametrize("name", ["fedavg", "fedadmm", "scaffold", "apfl"])
def test_who_shares_a_block_changes_no_bit(name, methods, dtype):
    name = name if name in methods else "fedavg, merge"
    one, many = (
        run(name, methods=methods, space="samples", dtype=dtype, block_bytes=size).x for size in (1, 10_000_000)
    )
    assert np.array_equal(one, many)


STIFF = {
    "ill-conditioned": {"data": BINARY | {"least": 15}, "problem": {"name": "logistic", "mu": 9.0}},
    "least squares": {"data": NUMBERS, "problem": "least-squares"},
    "many samples": MANY,
    "mini-batches": {
        "algorithm": {"name": "fedavg", "batch_size": 4, "epochs": 2, "step": {"name": "constant", "a": 0.02}}
    },
    "100,000 features": {"data": NUMBERS | {"features": 100_000, "samples": 3}, "problem": "least-squares"},
}


@pytest.mark.parametrize("case", STIFF)
def test_single_precision_keeps_five_digits_over_a_hundred_rounds(case):
    rounds = 20 if "100" in case else 100
    form = "auto" if case == "many samples" else "samples"
    for dtype, digits in (("float64", 1e-12), ("float32", 1e-5)):
        step = {"step": {"name": "constant", "a": 1e-6 if "100" in case else 0.02}}
        config = study("fedavg", rounds=rounds, dtype=dtype, algorithm={"name": "fedavg"} | step) | STIFF[case]
        scores, plain = (mpifed.run(**config | {"space": space}).x for space in (form, "parameters"))
        assert np.abs(scores - plain).max() <= digits * np.abs(plain).max()


def test_what_is_not_linear_in_scores_or_gradients_stays_on_the_parameters(spaces):
    """Adam goes by coordinates, and λ is not of a bias."""
    adam = {"algorithm": {"name": "fedavg", "optimizer": "adam"}}
    bias = PROBLEMS["softmax"] | {"problem": {"name": "softmax", "lam": 0.1}}
    curved = {"problem": "nonconvex-logistic"}
    for more in (adam, bias, curved):
        mpifed.run(**study("fedavg", space="samples") | more)
    assert not spaces


def test_gram_matrices_are_those_of_clients_that_train():
    found = mpifed.run(**study("fedavg", space="samples", rounds=1, selection={"count": 2}))
    assert found.ranks["sample_space_clients"].tolist() == [2]
    assert found.attrs["local_steps"] == "with Gram matrices of samples for 2 of 5 clients"


def test_work_decides():
    assert pays(D=70, n=1024, steps=5, vectors=1)
    assert not pays(D=70, n=1024, steps=1, vectors=1)  # nothing to save
    assert not pays(D=600, n=1024, steps=5, vectors=1)  # K would take more than half of the memory of the samples
    assert not pays(D=20, n=20, steps=5, vectors=1)
    assert not pays(D=5000, n=20_000, steps=5, vectors=1)  # K would take as long as hundreds of rounds
    assert pays(D=5000, n=20_000, steps=20, vectors=1)
    assert pays(D=70, n=1024, steps=1, vectors=1, batches=True)
    assert not pays(D=70, n=1024, steps=0.7, vectors=1, batches=True)
    assert not pays(D=200, n=400, steps=3, vectors=1, batches=True)
    assert pays_by_hessian(D=500, n=50, steps=10)
    assert not pays_by_hessian(D=12, n=6, steps=10)  # few such clients gain nothing
    assert not pays_by_hessian(D=90, n=50, steps=10)  # H would take more than half of the memory of the samples
    assert not pays_by_hessian(D=20_000, n=5000, steps=10)  # H would take as long as hundreds of rounds


@st.composite
def combinations(draw):
    return draw(st.lists(st.tuples(st.sampled_from("+-*/gw"), st.floats(-2, 2), st.integers(0, 1)), max_size=7))


@settings(max_examples=60, deadline=None)
@given(combinations(), st.integers(0, 2**31))
def test_points_are_combined_as_arrays_are(steps, seed):
    """Sums, differences, products, gradients and choices by client, in any order."""
    rng = np.random.default_rng(seed)
    block = make_dense_block(np.array([3, 4]), 6, np.float64)
    block.A[0, :3], block.A[1] = rng.normal(size=(3, 6)), rng.normal(size=(4, 6))
    block.b[...] = rng.integers(0, 2, block.b.shape)
    problem = Logistic(mu=0.3)
    vectors = rng.normal(size=6), rng.normal(size=(2, 6))
    space = SampleSpace(block, problem, None)
    p, w = space.point(vectors[0]), np.tile(vectors[0], (2, 1))
    for kind, c, k in steps:
        u = vectors[k]
        column = np.array([[c], [1.0]]) if k else c
        if kind == "+":
            p, w = u + p, u + w
        elif kind == "-":
            p, w = u - p, u - w
        elif kind == "*":
            p, w = column * p, column * w
        elif kind == "/":
            p, w = p / 3.0, w / 3.0
        elif kind == "g":
            p, w = p - 0.5 * space.gradient(p, block), w - 0.5 * problem.grad(block, w)
        else:
            chosen = np.array([[True], [False]])
            p, w = sample_space.NAMESPACE.where(chosen, p - u, p), np.where(chosen, w - u, w)
    size = 1 + np.abs(w).max()
    assert np.allclose(space.array(p), w, rtol=0, atol=1e-11 * size)
    assert np.allclose(sample_space.NAMESPACE.vecdot(p, p), np.vecdot(w, w), rtol=1e-7, atol=1e-11 * size**2)
