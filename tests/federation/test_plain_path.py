"""The plain path: what a round without further features calls, and how narrow the seams of the federation are."""

from typing import ClassVar, get_origin, get_type_hints

import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.experiment import rounds
from mpifed.federation.request import Request
from tests.helpers import meters

MOST_FUNCTIONS, MOST_FILES = 68, 20
TRAITS = ("requires", "participation", "mean_estimate", "upload", "asynchronous")
FAMILIES = (Algorithm, GraphAlgorithm)
METHODS = [Algorithm.member(name, "algorithm") for name in Algorithm.choices]


@pytest.fixture(scope="module")
def called():
    """The functions that round 2 of plain FedGiA calls in one process to begin, play and evaluate it."""
    codes, evaluate = set(), rounds.evaluate

    def played(algorithm, fed, round, server, redrawn):
        if round == 0:
            fed.begin(round)
            return algorithm.init_server(fed), 0.0
        with meters.traced(codes if round == 2 else set()):
            fed.begin(round)
            return algorithm.round(fed, server), 0.0

    def evaluated(algorithm, fed, server):
        with meters.traced(codes if fed.round == 2 else set()):
            return evaluate(algorithm, fed, server)

    table = {"algorithm": "fedgia", "data": {"clients": 8, "features": 5}, "rounds": 3, "kernels": "numpy"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "play_round", played)
        patch.setattr(rounds, "evaluate", evaluated)
        assert mpifed.run(table, progress=None).cr == 3
    return sorted(f"{meters.file_of(code)}: {code.co_qualname}" for code in codes)


def test_a_plain_round_calls_no_function_of_a_feature_that_is_off(called):
    assert "federation/schedule.py: Schedule.select" in called
    assert not [name for name in called if name.startswith("features/") or meters.OFF.match(name)]


def test_a_plain_round_calls_few_functions_in_few_files(called):
    """Those of modules and classes: no lambdas, comprehensions, functions in others, and __methods__."""
    names = [name for name in called if "<" not in name and "__" not in name]
    files = {name.partition(":")[0] for name in names}
    told = f"{len(names)} functions, at most {MOST_FUNCTIONS}; {len(files)} files, at most {MOST_FILES}:\n"
    assert (len(names) > MOST_FUNCTIONS, len(files) > MOST_FILES) == (False, False), told + "\n".join(names)


def test_requests_and_algorithms_have_few_fields_traits_and_methods():
    own = vars(Algorithm)
    hints = get_type_hints(Algorithm)
    traits = {key for key in own["__annotations__"] if get_origin(hints[key]) is ClassVar}
    methods = [name for name, value in own.items() if callable(value) and not name.startswith("_")]
    assert len(Request.__struct_fields__) <= 11
    assert len(traits - {"choices", "default", "kind"}) <= 11
    assert len(methods) <= 16


def test_no_method_says_otherwise_what_one_of_its_bases_has_said():
    families = {*FAMILIES, *(base for family in FAMILIES for base in family.__mro__)}
    classes = {cls for method in METHODS for cls in method.__mro__} - families
    again = [
        f"{cls.__name__}.{trait} is {base.__name__}'s already"
        for cls in classes
        for trait in TRAITS
        for base in cls.__mro__[1:]
        if trait in vars(cls) and base not in families and trait in vars(base)
    ]
    assert not again, "\n".join(sorted(again))
