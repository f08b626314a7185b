"""Where methods end: at the minimiser of f, though clients differ, some are absent and messages have errors.

By default one method of each kind has a case; the oracles have all of them, round by round.
"""

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.data.sources.synthetic import Synthetic
from mpifed.federation.participation.selection import All, UniformSelection
from mpifed.problems import Logistic, Softmax
from tests.helpers.algorithm_cases import GRAPHED, constant
from tests.helpers.algorithm_runs import M, Run, build, gradients, minimiser
from tests.helpers.curved_runs import COMPRESSORS as HESSIAN_COMPRESSORS
from tests.helpers.curved_runs import curved
from tests.helpers.dual_methods import duals
from tests.helpers.graph_studies import CHANGING, GRAPHS, begun, best

STEP = constant(0.02)
COMPRESSORS = ["natural", {"name": "randk", "k": 3}, {"name": "dither", "s": 2}]
ENDING = [
    ("feddyn", {"k0": 1, "step": STEP, "alpha": 1.0}),
    ("feddyn", {"k0": 5, "step": STEP, "alpha": 1.0}),
    *[("fedadmm-insa", {"c": 0.1, **more}) for more in ({}, {"mu": 1e30}, {"inner_max": 1}, {"memory": 0.3})],
    *[("sisa", more) for more in ({}, {"preconditioner": "smoothness"}, {"rho": 0.0})],
    ("fedadmm", {"k0": 5, "r0": 0.5}),
    ("proxskip", {"p": 0.3}),
    *[(name, {"compressor": compressor}) for name in ("ef21", "diana", "marina") for compressor in COMPRESSORS],
    *[(name, {"compressor": {"name": "topk", "k": 2}}) for name in ("ef21", "ef21-hb")],  # biased
    ("ef21-page", {"compressor": {"name": "topk", "k": 2}, "gamma": 0.02}),  # a worst case makes its own step short
    *[
        ("fedgia", {"adaptive": True, "t": t, **more})
        for t in (0.002, 0.2, 20.0)
        for more in ({"k0": 1}, {"k0": 7}, {"k0": 3, "H": "gram"}, {"k0": 1, "H": "zero"})
    ],
]
ALONE = [  # with all clients
    *[("fedadmm-deep", {"rho": rho, "lr": 0.02, "epochs": 5, "batch_size": 0}) for rho in (0.5, 3.0)],
    ("scaffold", {"k0": 5, "step": STEP}),
    ("gd", {}),
    ("ef21-bc", {"compressor": {"name": "topk", "k": 3}, "down": {"name": "topk", "k": 4}, "gamma": 0.05}),
    ("lbfgs", {}),
    *[("nesterov", more) for more in ({}, {"mu": 0.5})],
    *[
        ("fedopt", {"k0": 1, "step": constant(0.1), "server": server})
        for server in ("momentum", "adagrad", {"name": "adam", "lr": 0.01}, {"name": "yogi", "lr": 0.01})
    ],
]
KEPT = {  # method -> the field that is a client's gradient at the end, and its factor
    "feddyn": ("h", 1),
    "scaffold": ("c", 1),
    **dict.fromkeys(("ef21", "ef21-hb", "ef21-page", "ef21-bc"), ("g", 1)),
    "diana": ("h", 1),
    "proxskip": ("h", 1),
    "fedadmm": ("pi", -1 / M),
    "fedgia": ("pi", -1 / M),
    "fedadmm-insa": ("pi", -1),
    "sisa": ("pi", -1),
    "fedadmm-deep": ("pi", -1),
}


SLOW = pytest.mark.slow
QUICK = ("feddyn", "diana", "fedgia", "scaffold")  # dual variables, compressed differences, inexact ADMM, variates


def cases():
    """The first case of the QUICK, with some clients or all; the rest is slow."""
    left = {*QUICK}
    for name, options in ENDING:
        for share in (0.4, 1.0):
            marks = () if name in left else SLOW
            left.discard(name)
            yield pytest.param(name, options, UniformSelection(share=share), marks=marks)
    for name, options in ALONE:
        marks = () if name in left else SLOW
        left.discard(name)
        yield pytest.param(name, options, All(), marks=marks)


def falls(run, factor=1e-8, most=2000):
    """Whether ‖∇f‖² falls by ``factor``."""
    first = run.measure()[1]
    for _ in range(0, most, 20):
        run.rounds(20)
        if run.measure()[1] <= factor * first:
            return True
    return False


@pytest.mark.parametrize(("name", "options", "selection"), [*cases()], ids=str)
def test_it_ends_at_the_minimiser_and_what_clients_keep_at_their_gradients(name, options, selection):
    run = Run(build(name, options), selection=selection)
    assert falls(run)
    if name in KEPT:
        field, factor = KEPT[name]
        G = gradients(run, minimiser(run))
        assert np.abs(getattr(run.states(), field) - factor * G).max() < 1e-2 * abs(factor) * np.abs(G).max()


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
@pytest.mark.parametrize(
    "problem", ["quadratic", *(pytest.param(name, marks=SLOW) for name in ("softmax", "logistic"))]
)
def test_the_dual_variables_end_at_the_gradients_and_the_model_at_the_minimiser(name, problem):
    data = Synthetic(clients=5, features=4, classes=3 if problem == "softmax" else 2, least=8, most=11, test=0.0)
    problem, data = {
        "quadratic": (problem, duals()[1].data),
        "softmax": (Softmax(lam=0.2, bias=False), data.load(0, "float64")),
        "logistic": (Logistic(mu=0.2, regulariser="whole"), data.load(0, "float64")),
    }[problem]
    run = Run(build(name), problem, data=data, selection=UniformSelection(count=3))
    assert falls(run, 1e-5, 200)
    host = run.hosts[0]
    G = np.concatenate([run.problem.grad(block, run.server.x) for block in host.blocks])[host.slot]
    assert np.allclose(run.states().y, G, atol=2e-2 * np.abs(G).max())


def learning():
    """Each option with another compressor; the rest is slow."""
    for k, option in enumerate(("A", "B", None)):
        for j, compressor in enumerate(HESSIAN_COMPRESSORS):
            yield pytest.param(option, compressor, marks=SLOW if j != k else ())


@pytest.mark.parametrize(("option", "compressor"), [*learning()], ids=str)
def test_with_learned_hessians_the_gradient_vanishes(option, compressor):
    """Of FedNL, and of FedNL-PP, which has no option, with three clients of eight in a round."""
    name, options = ("fednl", {"option": option}) if option else ("fednl-pp", {})
    run = curved(build(name, {"compressor": compressor, **options}), UniformSelection(count=3))
    assert falls(run, 1e-20, 400)


FIXED = [name for name in GRAPHED if Algorithm.member(name, "algorithm").fixed_weights]


def on_graphs():
    """Two methods on one graph each, the rest slow; the FIXED need one that does not change."""
    for name, options in [
        ("lt-admm", {"tau": 1}),
        ("lt-admm", {"tau": 8}),
        ("fedgia-graph", {}),
        ("fedgia-graph", {"k0": 2, "H": "gram"}),
        ("gradient-tracking", {"gamma": 0.05}),
        ("extra", {}),
        ("nids", {}),
        ("led", {"tau": 2}),
        ("k-gt", {"k0": 2}),
        ("aug-dgm", {}),
        ("beer", {"compressor": "natural"}),
        ("motef", {"compressor": {"name": "topk", "k": "0.5n"}, "lam": 0.9}),
    ]:
        graphs = GRAPHS if name in FIXED else [*CHANGING, *GRAPHS]
        for j, graph in enumerate(graphs):
            yield pytest.param(
                name, options, graph, marks=SLOW if j or name not in ("gradient-tracking", "extra") else ()
            )


@pytest.mark.parametrize(("name", "options", "graph"), [*on_graphs()], ids=str)
def test_every_node_ends_at_the_minimiser(name, options, graph):
    run = begun(name, graph, UniformSelection(share=0.5), **options)
    assert falls(run, 1e-12)
    assert np.allclose(run.server.x, best(), rtol=1e-5)
    assert run.row()["consensus_max"] < 1e-7
