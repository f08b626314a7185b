"""Runs whose samples have weights and offsets: f_i is what it says, and a frequency is so many rows of one kind."""

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed
from mpifed.api.study import build_table
from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from mpifed.experiment.housing import prepare_in_process
from mpifed.federation.local import Local

SIZES = (7, 12, 7, 9)
D, N = sum(SIZES), 3
RNG = np.random.default_rng(11)
A = np.column_stack([RNG.standard_normal((D, N - 1)), np.ones(D)])
CLIENT = np.repeat(range(len(SIZES)), SIZES)
FREQUENCY = RNG.integers(1, 4, D)
WEIGHT = RNG.uniform(0.2, 3, D)
OFFSET = RNG.uniform(-1, 1, D)
SCORES = A @ [0.4, -0.3, 0.5]
LABELS = {
    "poisson": RNG.poisson(np.exp(SCORES)),
    "gamma": RNG.gamma(2, np.exp(SCORES) / 2),
    "logistic": (RNG.random(D) < 1 / (1 + np.exp(-SCORES))).astype(float),
    "nonconvex-logistic": (RNG.random(D) < 0.5).astype(float),
    "huber": SCORES + RNG.standard_normal(D),
    "least-squares": SCORES + RNG.standard_normal(D),
}
PROBLEMS = {
    "poisson": {"name": "poisson", "bias": False, "lam": 0.1},
    "gamma": {"name": "gamma", "bias": False},
    "logistic": {"name": "logistic", "mu": 0.4},
    "nonconvex-logistic": {"name": "nonconvex-logistic", "mu": 0.4},
    "huber": {"name": "huber", "bias": False, "lam": 0.1},
    "least-squares": {"name": "least-squares"},
}
LOSSES = {
    "poisson": lambda z, b: np.exp(z) - b * z,
    "gamma": lambda z, b: z + b * np.exp(-z),
    "logistic": lambda z, b: np.log1p(np.exp(z)) - b * z,
    "nonconvex-logistic": lambda z, b: np.log1p(np.exp(z)) - b * z,
    "huber": lambda z, b: np.where(abs(z - b) <= 1.345, (z - b) ** 2 / 2, 1.345 * (abs(z - b) - 1.345 / 2)),
    "least-squares": lambda z, b: (z - b) ** 2 / 2,
}
PENALTIES = {  # of a client with weights that add up to v
    "poisson": lambda x, v: 0.05 * x @ x,
    "logistic": lambda x, v: 0.2 * x @ x / v,
    "nonconvex-logistic": lambda x, v: 0.2 * (x * x / (1 + x * x)).sum() / v,
    "huber": lambda x, v: 0.05 * x @ x,
}
STUDY = {"rounds": 6, "objective": {"weights": "samples"}}


def data_of(name, samples=A, **columns):
    return mpifed.arrays(samples, LABELS[name], CLIENT, **columns)


def built(name, data):
    """The clients of a study, one block after the other, and their numbers."""
    table = {"algorithm": "newton", "problem": PROBLEMS[name], "data": {"name": "arrays"}}
    parts = prepare_in_process(experiment(build_table(table | {"data": data}, None, {})))
    return [
        (Local(block, parts.setup, ids, (0, 0), parts.host.local_transforms), ids)
        for _, block, ids in parts.host.full_blocks
    ]


@pytest.mark.parametrize("samples", [A, sp.csr_array(A)], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", LOSSES)
def test_f_and_its_derivatives_are_those_of_weighted_shifted_losses(name, samples):
    X = RNG.standard_normal((len(SIZES), N)) / 2
    step = 1e-6
    for f, ids in built(name, data_of(name, samples, weight=WEIGHT, offset=OFFSET)):
        values, G = f.value_grad(X[ids])
        H = f.hess(X[ids])
        for i, value, g, h in zip(ids, values, G, H, strict=True):
            own = i == CLIENT
            v = WEIGHT[own]
            losses = LOSSES[name](A[own] @ X[i] + OFFSET[own], LABELS[name][own])
            wanted = v @ losses / v.sum() + PENALTIES.get(name, lambda x, v: 0)(X[i], v.sum())
            assert value == pytest.approx(wanted, rel=1e-12)
            here = np.flatnonzero(ids == i)
            for j, e in enumerate(np.eye(N) * step):
                more, less = (f.take(here).value_grad((X[i] + s * e)[None]) for s in (1, -1))
                assert g[j] == pytest.approx((more[0][0] - less[0][0]) / (2 * step), rel=1e-6, abs=1e-8)
                np.testing.assert_allclose(h[j], (more[1][0] - less[1][0]) / (2 * step), rtol=1e-6, atol=1e-7)
        V = RNG.standard_normal(G.shape)
        np.testing.assert_allclose(f.hessian(X[ids])(V), np.matvec(H, V), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(f.grad(X[ids]), G)


METHODS: list = [
    "newton",
    "fednl",
    "gd",
    "fedavg",
    {"name": "fedgia", "H": "gram"},
    {"name": "fedgia", "H": "diagonal"},
]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *[("logistic", method) for method in METHODS],
        *[pytest.param("least-squares", method, marks=pytest.mark.slow) for method in METHODS],
        ("poisson", "newton"),
        *[pytest.param("poisson", method, marks=pytest.mark.slow) for method in ("fednl", "fedavg")],
    ],
    ids=str,
)
def test_a_frequency_is_a_row_that_stands_there_as_often(name, method):
    many = [np.repeat(part, FREQUENCY, axis=0) for part in (A, LABELS[name], CLIENT)]
    study = STUDY | {"problem": PROBLEMS[name], "algorithm": method, "kernels": "numpy"}
    one, other = (mpifed.run(study, data=data) for data in (data_of(name, frequency=FREQUENCY), mpifed.arrays(*many)))
    np.testing.assert_allclose(one.x, other.x, rtol=1e-7)
    for column in ("objective", "objective_samples", "grad_norm_sq"):
        np.testing.assert_allclose(one.rounds[column], other.rounds[column], rtol=1e-7, atol=1e-20)


def test_gradients_of_mini_batches_are_right_on_average():
    (f, _), *_ = built("poisson", data_of("poisson", weight=WEIGHT, offset=OFFSET))
    x = np.array([0.1, -0.2, 0.3])
    found = [batch.grad(x) for key in range(4000) for _, batch, _ in f.with_key((key, 0)).steps(1, 0, 3)]
    np.testing.assert_allclose(np.mean(found, axis=0), f.grad(x), atol=0.05)


def test_deviances_of_test_samples_have_their_weights_and_offsets():
    study = STUDY | {"rounds": 0, "problem": PROBLEMS["poisson"], "algorithm": "newton"}
    half = CLIENT.astype(str)
    data = mpifed.arrays(A, LABELS["poisson"], half, weight=WEIGHT, offset=OFFSET, test=0.4)
    pool = data.load(0, "float64")
    result = mpifed.run(study, data=data)
    found = []
    for i in range(len(SIZES)):
        X, b = pool.rows_test(i, i + 1)
        rows = [int(np.flatnonzero((row == A).all(axis=1))[0]) for row in X]
        o, v = OFFSET[rows], WEIGHT[rows]
        safe = np.where(b > 0, b, 1)
        found.append(v @ (2 * (b * np.log(safe) - b - b * o + np.exp(o))) / v.sum())
    assert result.rounds["deviance"][0] == pytest.approx(np.mean(found), rel=1e-12)


@pytest.mark.parametrize(
    ("columns", "study", "sentence"),
    [
        (
            {"weight": WEIGHT},
            {"problem": "softmax"},
            "^samples have weights, and problem softmax takes none: least-squ",
        ),
        ({"exposure": WEIGHT}, {"problem": "logistic"}, "takes none: poisson, gamma do; data.offset takes the logari"),
        ({"offset": OFFSET}, {"problem": "cox"}, "^samples have offsets, and problem cox takes none"),
        ({"weight": WEIGHT}, {"kernels": "compiled"}, '^kernels = "compiled" is wrong: numpy alone reads weights'),
        ({"weight": WEIGHT}, {"kernels": "torch"}, '^kernels = "torch" is wrong: numpy alone reads weights'),
        (
            {"offset": OFFSET},
            {"algorithm": {"name": "fedepm", "noise": "clipped"}},
            "^samples have weights or offsets, and fedepm needs clipped",
        ),
    ],
)
def test_what_cannot_have_them_is_refused(columns, study, sentence):
    with pytest.raises(UserError, match=sentence):
        mpifed.run({"problem": "logistic", "rounds": 1} | study, data=data_of("logistic", **columns))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"weight": -WEIGHT}, r"^weight has -[\d.]+ in entry 0: a weight is a number above 0: leave out"),
        ({"frequency": WEIGHT}, r"^frequency has [\d.]+ in entry 0: a frequency is a whole number from 1"),
        (
            {"offset": OFFSET * np.inf},
            "^row 0 of offset is not finite: it has a NaN, an infinity or a number too large",
        ),
        ({"exposure": OFFSET[:3]}, "^exposure has 3 entries, but X has 35 rows$"),
        ({"weight": WEIGHT, "frequency": FREQUENCY}, "^weight and frequency are both weights of samples"),
        ({"weights": WEIGHT}, "weights"),
        ({"offset": ["a"] * D}, "^offset holds texts, such as 'a': an offset is a finite number"),
    ],
)
def test_arrays_that_are_none_are_refused(columns, sentence):
    with pytest.raises(UserError, match=sentence):
        data_of("logistic", **columns)


def test_a_run_says_that_numpy_computes_and_why():
    result = mpifed.run(STUDY, problem="logistic", algorithm="newton", data=data_of("logistic", offset=OFFSET))
    assert result.attrs["kernels"] == "numpy"
    assert "samples have offsets, which numpy reads: there are no compiled kernels for them" in result.summary()


class Quartic(mpifed.extend.LinearModel):
    """ℓ(z, b) = (z − b)⁴/4, a loss of a user's own."""

    def loss(self, Z, b):
        return (Z - b) ** 4 / 4

    def slope(self, Z, b):
        return (Z - b) ** 3

    def bends(self, block, Z):
        return 3 * (Z - block.b) ** 2 * block.w


class Written(Quartic):
    def value(self, block, X):
        return super().value(block, X)


def test_a_loss_of_your_own_takes_them_unless_it_computes_scores_itself():
    labels = LABELS["huber"] + 3
    data = mpifed.arrays(A, labels, CLIENT, frequency=FREQUENCY, offset=OFFSET)
    result = mpifed.run(STUDY, problem=Quartic(), algorithm="newton", data=data)
    many = (np.repeat(part, FREQUENCY, axis=0) for part in (A, labels - OFFSET, CLIENT))
    plain = mpifed.run(STUDY, problem=Quartic(), algorithm="newton", data=mpifed.arrays(*many))
    np.testing.assert_allclose(result.x, plain.x, rtol=1e-9)
    assert np.isnan(result.fit().error).all()
    with pytest.raises(UserError, match=r"^samples have frequencies, and problem .*Written takes none: "):
        mpifed.run(STUDY, problem=Written(), algorithm="newton", data=data)
