"""Options that make no sense are refused by name, with what would be right."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from tests.helpers.algorithm_runs import build


def wrong(method, values, right="it must be"):
    """Rows of options that are wrong for themselves: the sentence names key, value and what would be right."""
    return [(method, {key: value}, rf"^algorithm\.{key} = .* is wrong: {right}") for key, value in values]


def each(methods, key, value, sentence):
    """The same wrong component of each of the methods."""
    return [(method, {key: value}, sentence) for method in methods.split()]


NUMBER = "it must be a number"
GRADIENTS = "ef21 diana marina"
COMPRESSED = "ef21 diana marina fednl"
EITHER = r"^algorithm\.solver: the solver gd needs either steps or delta$"
UNSEEDED = r'^algorithm\.noise_seed = 4 is wrong: only noise = "clipped"'
ALONE = (
    "^selection takes 1 client a round, but {name} needs at least 2: with one client the mean equals its own model, so "
    "the dual variables never change$"
)
LINEAR = r"optimizer = \w+ is wrong: fednova divides by the weights of a sum of "
REFUSED = [
    *wrong("fedgia", [("adaptive", "yes"), ("adaptive", 1), ("adaptive", None)], "it must be true or false"),
    *wrong("fedgia", [("start", "gradient")], 'it must be "zero" or "-gradient"'),
    *wrong("fedadmm", [("start", "gradient")], 'it must be "zero" or "-gradient"'),
    *wrong("ad-admm", [("rho", 0.0), ("rho", -1.0), ("gamma", -0.1)]),
    *wrong("apfl", [("alpha", -0.1), ("alpha", 1.5)]),
    *wrong("ditto", [("lam", -0.1), ("lr", 0.0), ("inner", 0)]),
    *wrong("pfedme", [("begin", "client")], 'it must be "own" or "server"'),
    *wrong("feddyn", [("alpha", 0), ("alpha", "much"), ("k0", 0), ("batch_size", -1)], "it must be a "),
    *wrong("malenia", [("gamma", 0.0), ("S", 0), ("batch_size", -1)]),
    *wrong("ringleader", [("gamma", 0.0), ("batch_size", -1)]),
    *wrong("ringmaster", [("gamma", 0.0), ("R", 0), ("batch_size", -1)]),
    *wrong("rennala", [("gamma", 0.0), ("B", 0), ("batch_size", -1)]),
    *wrong("fedbuff", [("lr", 0.0), ("server_lr", -1.0), ("a", -0.5), ("k0", 0)]),
    *wrong("fedadmm-insa", [("r0", 0), ("mu", 0.5), ("tau", 1), ("memory", -1), ("c", 0), ("inner_max", 0)]),
    *wrong("gd", [("gamma", 0), ("gamma", -1.0), ("gamma", "much")], NUMBER),
    *wrong("local-gd", [("gamma", 0), ("gamma", -1.0), ("gamma", "much")], NUMBER),
    *wrong("proxskip", [("p", 0), ("p", 1.5), ("gamma", 0), ("gamma", "much"), ("batch_size", -1)]),
    *wrong("sisa", [("sigma", 0), ("gamma", 1.5), ("rho", -1), ("beta", 1), ("batch_size", -1)]),
    *wrong("sisa", [("preconditioner", "newton")]),
    *wrong("lbfgs", [("memory", 0), ("c", 0.0), ("c", 0.5)]),
    *wrong("nesterov", [("gamma", 0), ("mu", -1.0), ("mu", "most")]),
    *wrong("q-fedavg", [("q", -0.5), ("lr", 0.0), ("k0", 0), ("batch_size", -1)]),
    *wrong("newton", [("c", 0), ("c", 0.5), ("c", "half"), ("shrink", 0), ("shrink", 1), ("shrink", -0.5)], NUMBER),
    *wrong("fednew", [("rho", 0.0), ("alpha", -1.0), ("period", -1)]),
    *wrong("fedns", [("k", 0), ("mu", 0.0)]),
    *wrong("fedns", [("regulariser", "none")]),
    *wrong("fednl", [("option", "C")], 'it must be "A" or "B"'),
    *wrong("fednl", [("c", 0.5), ("shrink", 1.0), ("alpha", 0.0)]),
    *wrong("marina", [("p", 1.5), ("gamma", 0)]),
    *wrong("ef21", [("gamma", 0)]),
    *wrong("ef21", [("start", "zero")], 'it must be "compressed" or "full"'),
    *wrong("ef21-hb", [("eta", 1.0), ("eta", -0.1)]),
    *wrong("ef21-page", [("p", 0), ("batch_size", -1)]),
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
    ("feddcd", {"schedule": {"name": "sqrt-samples"}}, "schedule = sqrt-samples is wrong: .* such as constant or log2"),
    ("feddcd", {"scaling": "mine"}, 'scaling = "mine" is wrong'),
    # components: compressors, solvers, optimisers of clients and of the server, steps
    *each(COMPRESSED, "compressor", "topp", r"^unknown compressor 'topp'; did you mean 'topk'\?"),
    *each(COMPRESSED, "compressor", "topk", r"^algorithm\.compressor\.k is missing"),
    *each(COMPRESSED, "compressor", {"name": "topk", "k": 0}, r"^algorithm\.compressor: k = 0 is wrong"),
    *each(COMPRESSED, "compressor", {"name": "topk", "k": "half"}, r"^algorithm\.compressor: k = \"half\" is"),
    *each(COMPRESSED, "compressor", {"name": "dither", "s": 0}, r"^algorithm\.compressor\.s = 0 is wrong"),
    *each("ef21-bc", "down", {"name": "topk", "k": 0}, r"^algorithm\.down: k = 0 is wrong"),
    *each("feddcd", "solver", {"name": "gd"}, EITHER),
    *each("feddcd", "solver", {"name": "gd", "steps": 3, "delta": 0.1}, EITHER),
    *each("feddcd", "solver", {"name": "gd", "steps": 0}, "steps = 0 is wrong"),
    *each("feddcd", "solver", {"name": "gd", "delta": 1.5}, r"delta = 1\.5 is wrong"),
    *each("feddcd", "solver", {"name": "gd", "delta": "theory"}, 'delta = "theory" is wrong'),
    *each("feddcd", "solver", {"name": "newton", "tol": 0.0}, r"tol = 0\.0 is wrong"),
    *each("feddcd", "solver", {"name": "newton", "steps": 0}, "steps = 0 is wrong"),
    *each("feddcd", "solver", {"name": "sgd", "lr": 0.0}, r"lr = 0\.0 is wrong"),
    *each("feddcd", "solver", {"name": "svrg", "epochs": 0}, "epochs = 0 is wrong"),
    *each("feddcd", "solver", {"name": "newtom"}, "did you mean 'newton'"),
    *each("fedavg", "optimizer", "adm", "unknown optimizer 'adm'; did you mean 'adam'"),
    *each("fedavg", "optimizer", {"name": "adam", "beta1": 1}, "beta1 = 1 is wrong: it must be a number >= 0 and < 1"),
    *each("fedavg", "optimizer", {"name": "momentum", "beta": -0.1}, r"algorithm\.optimizer\.beta = -0\.1 is wrong"),
    *each("fedavg", "optimizer", {"name": "sgd", "beta": 0.1}, r"unknown key 'algorithm\.optimizer\.beta'"),
    *each("fedavg", "optimizer", {"name": "adam", "lr": 0.1}, "lr cannot be set: the step size is an option of the al"),
    *each("fedavg", "optimizer", {"name": "adam", "betas": [0.9, 0.99]}, "betas cannot be set: write beta1 and beta2$"),
    *each("fedavg", "optimizer", {"name": "momentum", "momentum": 0.9}, "momentum cannot be set: write beta$"),
    *each("fedavg", "optimizer", {"name": "adam", "eps": 0}, r"optimizer\.eps = 0 is wrong: it must be a number > 0"),
    *each("fednova", "optimizer", "adam", LINEAR),
    *each("fednova", "optimizer", "adamw", LINEAR),
    *each("fednova", "optimizer", {"name": "momentum", "weight_decay": 0.1}, LINEAR),
    *each("fedopt", "server", "admm", "unknown server 'admm'"),
    *each("fedopt", "server", {"name": "momentum", "beta": 1.0}, r"algorithm\.server\.beta = 1\.0 is wrong"),
    *each("fedopt", "server", {"name": "momentum", "lr": 0.0}, r"algorithm\.server\.lr = 0\.0 is wrong"),
    *each("fedopt", "server", {"name": "adam", "tau": 0.0}, r"algorithm\.server\.tau = 0\.0 is wrong"),
    *each("fedopt", "server", {"name": "yogi", "beta2": 1.0}, r"algorithm\.server\.beta2 = 1\.0 is wrong"),
    *each("fedopt", "server", {"name": "adam", "betas": [0.9, 0.9]}, "betas cannot be set: write beta1 and beta2"),
    *each("fedopt", "server", {"name": "fedexp", "eps": -1.0}, r"algorithm\.server\.eps = -1\.0 is wrong"),
    *each("fedopt", "server", {"name": "fedexp", "lr": 1.0}, r"unknown key 'algorithm\.server\.lr'"),
    *each("fedavg", "step", {"name": "constant", "a": 0}, r"step\.a = 0 is wrong: it must be a number > 0"),
    *each("fedavg", "step", {"name": "constant", "a": -1.0}, r"step\.a = -1\.0 is wrong: it must be a number > 0"),
    *each("fedavg", "step", {"name": "constant", "a": np.nan}, r"step\.a = nan is wrong: it must be a finite number"),
    *each("fedavg", "step", {"name": "constant", "a": np.inf}, r"step\.a = inf is wrong: it must be a finite number"),
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
