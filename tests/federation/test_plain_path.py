"""How narrow the seams of the federation are: fields of requests, traits and methods of algorithms."""

from typing import ClassVar, get_origin, get_type_hints

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.federation.request import Request

TRAITS = ("requires", "participation", "mean_estimate", "upload", "asynchronous")
FAMILIES = (Algorithm, GraphAlgorithm)
METHODS = [Algorithm.member(name, "algorithm") for name in Algorithm.choices]


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
