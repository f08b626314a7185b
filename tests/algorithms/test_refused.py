"""Options that make no sense are refused by name, with what would be right."""

import pytest

from mpifed.algorithms.parts.step_sizes import Constant, Log2, SqrtSamples, Step
from mpifed.core.errors import UserError
from tests.helpers.algorithm_runs import build


def wrong(method, values, right="it must be"):
    """Rows of options that are wrong for themselves: the sentence names key, value and what would be right."""
    return [(method, {key: value}, rf"^algorithm\.{key} = .* is wrong: {right}") for key, value in values]


NUMBER = "it must be a number"
REFUSED = [
    *wrong("fedgia", [("adaptive", "yes"), ("adaptive", 1), ("adaptive", None)], "it must be true or false"),
    *wrong("fedgia", [("start", "gradient")], 'it must be "zero" or "-gradient"'),
    *wrong("fedadmm", [("start", "gradient")], 'it must be "zero" or "-gradient"'),
    *wrong("ad-admm", [("rho", 0.0), ("rho", -1.0), ("gamma", -0.1)]),
    *wrong("apfl", [("alpha", -0.1), ("alpha", 1.5)]),
    *wrong("ditto", [("lam", -0.1), ("lr", 0.0), ("inner", 0)]),
    *wrong("feddyn", [("alpha", 0), ("alpha", "much"), ("k0", 0), ("batch_size", -1)], "it must be a "),
    *wrong("fedbuff", [("lr", 0.0), ("server_lr", -1.0), ("a", -0.5), ("k0", 0)]),
    *wrong("fedadmm-insa", [("r0", 0), ("mu", 0.5), ("tau", 1), ("memory", -1), ("c", 0), ("inner_max", 0)]),
    *wrong("gd", [("gamma", 0), ("gamma", -1.0), ("gamma", "much")], NUMBER),
    *wrong("local-gd", [("gamma", 0), ("gamma", -1.0), ("gamma", "much")], NUMBER),
    *wrong("proxskip", [("p", 0), ("p", 1.5), ("gamma", 0), ("gamma", "much"), ("batch_size", -1)]),
    *wrong("sisa", [("sigma", 0), ("gamma", 1.5), ("rho", -1), ("beta", 1), ("batch_size", -1)]),
    *wrong("sisa", [("preconditioner", "newton")]),
    *wrong("newton", [("c", 0), ("c", 0.5), ("c", "half"), ("shrink", 0), ("shrink", 1), ("shrink", -0.5)], NUMBER),
    *wrong("fednl", [("option", "C")], 'it must be "A" or "B"'),
    *wrong("fednl", [("c", 0.5), ("shrink", 1.0), ("alpha", 0.0)]),
    *wrong("marina", [("p", 1.5), ("gamma", 0)]),
    *wrong("ef21", [("gamma", 0)]),
    *wrong("diana", [("gamma", 0)]),
    *wrong("fednova", [("aggregate", "all")]),
    *wrong("fedopt", [("aggregate", "all")], 'it must be "chosen"'),
    *wrong("fedepm-graph", [("k0", 0), ("eta", 0.0), ("noise", "gaussian"), ("alpha", 0.5)]),
    *wrong("fedgia-graph", [("k0", 0), ("t", 0.0), ("mixes", 0), ("average", "mean"), ("H", "hessian")]),
    *wrong("lt-admm", [("tau", 0), ("gamma", -1.0), ("beta", 0.0)]),
    *[wrong(name, [("noise", "loud")])[0] for name in ("fedepm", "sfedavg", "sfedprox")],
    *wrong("flame-dp", [("clip", 0.0)]),
    ("lt-admm", {"rho": 1.0}, "rho"),
    ("dgd", {"k0": 3}, r'^algorithm: k0 = 3 needs order = "adapt-combine"$'),
    ("fednl-pp", {"option": "A"}, r"unknown key '?(algorithm\.)?option"),
    ("fednl-pp", {"line_search": "A"}, r"unknown key '?(algorithm\.)?line_search"),
    ("feddcd", {"eta": 0.5, "schedule": {"name": "log2"}}, "eta and schedule exclude each other"),
    ("feddcd", {"schedule": {"name": "sqrt-samples"}}, "schedule = sqrt-samples is wrong: .* must be constant or log2"),
    ("feddcd", {"scaling": "mine"}, 'scaling = "mine" is wrong'),
    # components: compressors, solvers, optimisers of clients and of the server, steps
    *[
        (name, {"compressor": compressor}, sentence)
        for name in ("ef21", "diana", "marina", "fednl")
        for compressor, sentence in [
            ("topp", r"^unknown compressor 'topp'; did you mean 'topk'\?"),
            ("topk", r"^algorithm\.compressor\.k is missing"),
            ({"name": "topk", "k": 0}, r"^algorithm\.compressor: k = 0 is wrong"),
            ({"name": "topk", "k": "half"}, r"^algorithm\.compressor: k = \"half\" is wrong"),
            ({"name": "dither", "s": 0}, r"^algorithm\.compressor\.s = 0 is wrong"),
        ]
    ],
    *[
        ("feddcd", {"solver": solver}, sentence)
        for solver, sentence in [
            ({"name": "gd"}, r"^algorithm\.solver: the solver gd needs either steps or delta$"),
            (
                {"name": "gd", "steps": 3, "delta": 0.1},
                r"^algorithm\.solver: the solver gd needs either steps or delta$",
            ),
            ({"name": "gd", "steps": 0}, "steps = 0 is wrong"),
            ({"name": "gd", "delta": 1.5}, r"delta = 1\.5 is wrong"),
            ({"name": "gd", "delta": "theory"}, 'delta = "theory" is wrong'),
            ({"name": "newton", "tol": 0.0}, r"tol = 0\.0 is wrong"),
            ({"name": "newton", "steps": 0}, "steps = 0 is wrong"),
            ({"name": "sgd", "lr": 0.0}, r"lr = 0\.0 is wrong"),
            ({"name": "svrg", "epochs": 0}, "epochs = 0 is wrong"),
            ({"name": "newtom"}, "did you mean 'newton'"),
        ]
    ],
    *[
        ("fedavg", {"optimizer": optimizer}, sentence)
        for optimizer, sentence in [
            ("adm", "unknown optimizer 'adm'; did you mean 'adam'"),
            (
                {"name": "adam", "beta1": 1.0},
                r"algorithm\.optimizer\.beta1 = 1\.0 is wrong: it must be a number < 1\.0",
            ),
            ({"name": "momentum", "beta": -0.1}, r"algorithm\.optimizer\.beta = -0\.1 is wrong"),
            ({"name": "sgd", "beta": 0.1}, r"unknown key 'algorithm\.optimizer\.beta'"),
            (
                {"name": "adam", "lr": 0.1},
                r"optimizer\.lr cannot be set: the step size is an option of the algorithm, ",
            ),
            ({"name": "adam", "betas": [0.9, 0.99]}, r"optimizer\.betas cannot be set: write beta1 and beta2$"),
            ({"name": "momentum", "momentum": 0.9}, r"optimizer\.momentum cannot be set: write beta$"),
            ({"name": "adam", "eps": 0}, r"algorithm\.optimizer\.eps = 0 is wrong: it must be a number > 0"),
        ]
    ],
    *[
        ("fednova", {"optimizer": optimizer}, r"optimizer = \w+ is wrong: fednova divides by the weights of a sum of ")
        for optimizer in ("adam", "adamw", {"name": "momentum", "weight_decay": 0.1})
    ],
    *[
        ("fedopt", {"server": server}, sentence)
        for server, sentence in [
            ("admm", "unknown server 'admm'"),
            ({"name": "momentum", "beta": 1.0}, r"algorithm\.server\.beta = 1\.0 is wrong"),
            ({"name": "momentum", "lr": 0.0}, r"algorithm\.server\.lr = 0\.0 is wrong"),
            ({"name": "adam", "tau": 0.0}, r"algorithm\.server\.tau = 0\.0 is wrong"),
            ({"name": "yogi", "beta2": 1.0}, r"algorithm\.server\.beta2 = 1\.0 is wrong"),
            ({"name": "adam", "betas": [0.9, 0.9]}, "betas cannot be set: write beta1 and beta2"),
            ({"name": "fedexp", "eps": -1.0}, r"algorithm\.server\.eps = -1\.0 is wrong"),
            ({"name": "fedexp", "lr": 1.0}, r"unknown key 'algorithm\.server\.lr'"),
        ]
    ],
    *[
        ("fedavg", {"step": {"name": "constant", "a": a}}, rf"algorithm\.step\.a = {a} is wrong: {right}")
        for a, right in [
            (0, "it must be a number > 0"),
            (-1.0, "it must be a number > 0"),
            (float("nan"), "it must be a finite number"),
            (float("inf"), "it must be a finite number"),
        ]
    ],
]


@pytest.mark.parametrize(("method", "options", "sentence"), REFUSED, ids=str)
def test_options_that_make_no_sense_are_refused(method, options, sentence):
    with pytest.raises(UserError, match=sentence):
        build(method, options)


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        *[(name, {"compressor": "rank"}, "rank is for symmetric matrices") for name in ("ef21", "diana", "marina")],
        *[
            (
                name,
                {"compressor": {"name": "topk", "k": 2}},
                f'algorithm.compressor = "topk" is wrong: {name} needs an un',
            )
            for name in ("diana", "marina")
        ],
        (
            "fedgia-async",
            {"adaptive": True},
            r"^algorithm\.adaptive = true is wrong: uploads of fedgia-async are from ",
        ),
        *[
            ("fedepm", {"noise": name, "noise_seed": 4}, r'^algorithm\.noise_seed = 4 is wrong: only noise = "clipped"')
            for name in ("released", "matched", "none")
        ],
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_before_round_one(method, options, sentence):
    with pytest.raises(UserError, match=sentence):
        build(method, options).verify(4)


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ({}, Log2()),
        ("constant", Constant()),
        ({"name": "sqrt-samples", "a": 3}, SqrtSamples(a=3.0)),
        ({"a": 0.5}, Log2(a=0.5)),
    ],
    ids=str,
)
def test_a_step_rule_is_named_in_a_table(table, rule):
    assert Step.build(table, "algorithm.step") == rule
