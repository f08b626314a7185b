"""Options that make no sense are refused by name, with what would be right."""

from typing import Literal, get_args, get_origin

import pytest

from mpifed.algorithms.parts import Step
from mpifed.checking.families import KINDS
from mpifed.core.component import fields_of, walk_type
from mpifed.core.errors import UserError
from tests.helpers.algorithm_runs import build

PARTS = ("algorithms", "steps", "solvers", "optimizers", "server_optimizers", "compressors")
AT_A_LIMIT = {"gt": 0, "lt": 0, "ge": -1, "le": 1}  # key of a limit -> the direction from it to a value outside


def wrong_values(type_):
    """A value just outside of each limit of a number, a text that is no choice, and what is not true or false."""
    parts = [*walk_type(type_)]
    metas = [meta for part in parts for meta in getattr(part, "__metadata__", ())]
    limits = [(getattr(meta, key, None), more) for meta in metas for key, more in AT_A_LIMIT.items()]
    values = [limit + more * max(1, abs(limit)) for limit, more in limits if limit is not None]
    if bool in parts:
        values += ["yes", 1]
    elif {str, Step}.isdisjoint(parts) and (
        {int, float} & {*parts} or any(get_origin(part) is Literal for part in parts)
    ):
        values += ["neither", float("nan")]
    texts = [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]
    return [value for value in values if value not in texts]


def options():
    """Every option of every member of the families that methods are made of, with values that it cannot have."""
    for kind in PARTS:
        for name in KINDS[kind].choices:
            for key, field in fields_of(KINDS[kind].member(name, kind)).items():
                if values := wrong_values(field.type):
                    yield pytest.param(kind, name, key, values, id=f"{name}-{key}")


@pytest.mark.parametrize(("kind", "name", "key", "values"), [*options()])
def test_a_value_that_an_option_cannot_have_is_refused_with_what_would_be_right(kind, name, key, values):
    for value in values:
        with pytest.raises(UserError, match=rf"^here\.{key} = .* is wrong: it must be "):
            KINDS[kind].build({"name": name, key: value}, "here")


def each(methods, key, value, sentence):
    """The same wrong component of each of the methods."""
    return [(method, {key: value}, sentence) for method in methods.split()]


GRADIENTS = "ef21 diana marina"
EITHER = r"^algorithm\.solver: the solver gd needs either steps or delta$"
UNSEEDED = r'^algorithm\.noise_seed = 4 is wrong: only noise = "clipped"'
ALONE = (
    "^selection takes 1 client a round, but {name} needs at least 2: with one client the mean equals its own model, so "
    "the dual variables never change$"
)
LINEAR = r"optimizer = \w+ is wrong: fednova divides by the weights of a sum of "
REFUSED = [
    ("lt-admm", {"rho": 1.0}, "rho"),
    ("dgd", {"k0": 3}, r'^algorithm: k0 = 3 needs order = "adapt-combine"$'),
    ("fednl-pp", {"option": "A"}, r"unknown key '?(algorithm\.)?option"),
    *each("feddcd", "eta", -1, "^algorithm.eta = -1 is wrong: it must be a number > 0"),
    *each("feddcd", "eta", True, '^algorithm.eta = true is wrong: it must be a number > 0, or a rule such as "log2"'),
    *each("feddcd", "eta", "sqrt-samples", '^algorithm.eta = "sqrt-samples" is wrong: a rate is one number for all cl'),
    *each("ef21 fednl", "compressor", "topp", r"^unknown compressor 'topp'; did you mean 'topk'\?"),
    *each("ef21 fednl", "compressor", "topk", r"^algorithm\.compressor\.k is missing"),
    *each("ef21 fednl", "compressor", {"name": "topk", "k": 0}, r"^algorithm\.compressor: k = 0 is wrong"),
    *each("ef21 fednl", "compressor", {"name": "topk", "k": "half"}, r"^algorithm\.compressor: k = \"half\" is"),
    *each("ef21-bc", "down", {"name": "topk", "k": 0}, r"^algorithm\.down: k = 0 is wrong"),
    *each("feddcd", "solver", {"name": "gd"}, EITHER),
    *each("feddcd", "solver", {"name": "gd", "steps": 3, "delta": 0.1}, EITHER),
    *each("feddcd", "solver", {"name": "newtom"}, "did you mean 'newton'"),
    *each("fedavg", "optimizer", "adm", "unknown optimizer 'adm'; did you mean 'adam'"),
    *each("fedavg", "optimizer", {"name": "sgd", "beta": 0.1}, r"unknown key 'algorithm\.optimizer\.beta'"),
    *each("fedavg", "optimizer", {"name": "adam", "lr": 0.1}, "lr cannot be set: the step size is an option of the al"),
    *each("fedavg", "optimizer", {"name": "adam", "betas": [0.9, 0.99]}, "betas cannot be set: write beta1 and beta2$"),
    *each("fedavg", "optimizer", {"name": "momentum", "momentum": 0.9}, "momentum cannot be set: write beta$"),
    *each("fedavg", "step", {"name": "cosine", "a": 0.1, "least": 0.2}, "least = 0.2 is wrong: γ falls from a = "),
    *each("fedavg", "step", {"name": "warmup", "then": "linear"}, "unknown then 'linear'"),
    *each("fednova", "optimizer", "adam", LINEAR),
    *each("fednova", "optimizer", "adamw", LINEAR),
    *each("fednova", "optimizer", {"name": "momentum", "weight_decay": 0.1}, LINEAR),
    *each("fedopt", "server", "admm", "unknown server 'admm'"),
    *each("fedopt", "server", {"name": "adam", "betas": [0.9, 0.9]}, "betas cannot be set: write beta1 and beta2"),
    *each("fedopt", "server", {"name": "fedexp", "lr": 1.0}, r"unknown key 'algorithm\.server\.lr'"),
]


@pytest.mark.parametrize(("method", "options", "sentence"), REFUSED, ids=str)
def test_options_that_make_no_sense_are_refused(method, options, sentence):
    with pytest.raises(UserError, match=sentence):
        build(method, options)


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        *each(GRADIENTS, "compressor", "rank", "rank is for symmetric matrices"),
        *each("ef21-bc", "down", "rank", "rank is for symmetric matrices"),
        *each("diana marina", "compressor", {"name": "topk", "k": 2}, '"topk" is wrong: .* needs an unbiased'),
        *each("fedgia-async", "adaptive", True, r"^algorithm\.adaptive = true is wrong: uploads of fedgia-async "),
        *[("fedepm", {"noise": name, "noise_seed": 4}, UNSEEDED) for name in ("released", "matched", "none")],
        *[(name, {}, ALONE.format(name=name)) for name in ("feddcd", "accfeddcd")],
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_before_round_one(method, options, sentence):
    with pytest.raises(UserError, match=sentence):
        build(method, options).verify(1)
