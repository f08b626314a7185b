"""Which algorithm runs on which problem: the table says what a run does, and a refusal names those that can."""

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import RunError, UserError
from mpifed.engine.listed import refuse_study
from mpifed.experiment.config import experiment
from mpifed.extend import LinearModel
from mpifed.features.matching import build_matrix, describe_needs, missing_methods
from mpifed.features.matching import explain_mismatch as sentence
from mpifed.federation.traits import required_methods
from mpifed.problems.problem import Problem
from tests.helpers.algorithm_cases import GRAPHED

TABLE = build_matrix()
DATA = {"name": "gaussian", "clients": 3, "samples": 6, "features": 4}
REGULAR = {"lam": 0.1, "bias": False}
TABLES = {
    "poisson": {"problem": REGULAR | {"name": "poisson"}},
    "gamma": {"problem": REGULAR | {"name": "gamma"}},
    "huber": {"problem": REGULAR | {"name": "huber"}},
    "cox": {"data": {"name": "linreg-noniid", "clients": 3, "features": 4}, "problem": {"name": "cox", "lam": 0.1}},
    "quadratic": {"data": {"name": "quadratic", "clients": 3, "features": 4}},
    "softmax": {"data": DATA, "problem": {"name": "softmax", "lam": 0.1, "bias": False}},
    "logistic": {"data": DATA, "problem": {"name": "logistic", "mu": 0.1}},
}
OPTIONS = {("q-fedavg", "quadratic"): {"q": 0.0}}  # whose f_i fall below 0
NETWORKS = ("cnn", "torch")  # need PyTorch
WITHOUT_BATCHES = {
    note for note, reason in TABLE.notes.items() if "batch_size must be 0" in reason and "no mini-batches" in reason
}


def refused(name, problem, run):
    """What is said to an algorithm on a problem, or None where it goes or even runs."""
    table = {"problem": problem, "data": DATA} | TABLES.get(problem, {})
    table |= {"graph": "ring"} if name in GRAPHED else {}
    batches = TABLE.cells[name][TABLE.problems.index(problem)][-1] in WITHOUT_BATCHES
    options = ({"batch_size": 0} if batches else {}) | OPTIONS.get((name, problem), {})
    table |= {"algorithm": {"name": name} | options, "rounds": 1}
    try:
        if run and problem == "gamma":  # no data set has positive labels
            X = np.random.default_rng(0).standard_normal((18, 4))
            mpifed.run(table | {"data": mpifed.arrays(X, np.exp(X[:, 0]), np.repeat([0, 1, 2], 6))})
        elif run:
            mpifed.run(table)
        else:
            refuse_study(experiment(table))
    except UserError as mistake:
        return str(mistake)
    except RunError:
        assert problem in ("poisson", "gamma")  # a long step leads to a large e^z
    return None


@pytest.mark.parametrize("run", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before data", "run"])
@pytest.mark.parametrize("problem", [name for name in Problem.choices if name not in NETWORKS])
def test_it_says_what_a_run_does(problem, run):
    for name, row in TABLE.cells.items():
        answer = row[TABLE.problems.index(problem)]
        told = refused(name, problem, run)
        assert answer.startswith("no") == (told is not None), f"{name} on {problem}: {row}, {told}"
        if told is not None:
            needs = TABLE.notes[answer[-1]].removeprefix("the algorithm needs ")
            assert told.startswith(f"{name} cannot run on {problem}: it needs {needs}, which {problem} does not have; ")


def test_conditions_are_told_as_the_run_tells_them():
    table = {"data": DATA, "problem": {"name": "softmax"}, "algorithm": "feddcd", "rounds": 1}
    note = TABLE.notes[TABLE.cells["feddcd"][TABLE.problems.index("softmax")][-1]]
    with pytest.raises(UserError, match=r"^feddcd cannot run on softmax as it stands: ") as told:
        mpifed.run(table)
    assert str(told.value).endswith(note)


def refusal(words):
    config = experiment(words)
    return sentence(config.algorithm, config.problem, missing_methods(config.algorithm, type(config.problem)))


def test_a_refusal_names_the_algorithms_that_can_and_an_option_that_asks_for_more():
    assert list(TABLE.cells) == list(Algorithm.choices)
    assert TABLE.problems == list(Problem.choices)
    assert {len(row) for row in TABLE.cells.values()} == {len(TABLE.problems)}
    text = refusal({"algorithm": "fedgia", "problem": "mlp"})
    head, _, others = text.partition("; ")
    assert head == (
        "fedgia cannot run on mlp: it needs lipschitz (an upper bound of the curvature, the norm of ∇²f_i), "
        "which mlp does not have"
    )
    names = others.removesuffix(" can").split(", ")
    assert names == [name for name, row in TABLE.cells.items() if row[TABLE.problems.index("mlp")].startswith("yes")]
    text = refusal({"algorithm": {"name": "fedgia", "H": "gram"}, "problem": "softmax"})
    assert "it needs majorizer_inverse (" in text
    assert "; with its default options it can, and so can accfeddcd, " in text
    assert any(line.startswith('fedgia with H = "gram" needs majorizer_inverse') for line in TABLE.options)
    assert any(line.startswith('fedepm with noise = "clipped" needs clipped_grad') for line in TABLE.options)


def test_every_need_of_an_algorithm_is_in_words():
    every = {need for name in Algorithm.choices for need in required_methods(Algorithm.member(name, "algorithm")())}
    assert every <= Problem.offers.keys()
    assert all(callable(getattr(Problem, name)) for name in Problem.offers)
    assert describe_needs(["hessian", "own"]) == "hessian (products with ∇²f_i) and own"
    assert describe_needs(["a", "b", "c"]) == "a, b and c"


class Bare(LinearModel):
    def loss(self, Z, b):
        return (Z - b) ** 2 / 2

    def slope(self, Z, b):
        return Z - b


def test_a_linear_model_of_ones_own_is_told_what_gives_it_hessians():
    with pytest.raises(UserError, match=r"needs hess \(.*; a LinearModel has them where it defines bends\)"):
        mpifed.run({"algorithm": "newton", "rounds": 1}, problem=f"{__file__}:Bare")
