"""Where methods end: at the minimiser of f, though clients differ, some are absent and messages have errors."""

import numpy as np
import pytest

from mpifed.data.sources.synthetic import Synthetic
from mpifed.federation.participation.selection import All, Uniform
from mpifed.problems import Logistic, Softmax
from tests.helpers.algorithm_cases import constant
from tests.helpers.algorithm_runs import M, Run, build, gradients, minimiser
from tests.helpers.curved_runs import COMPRESSORS as HESSIAN_COMPRESSORS
from tests.helpers.curved_runs import curved
from tests.helpers.dual_methods import duals
from tests.helpers.graph_studies import CHANGING, GRAPHS, begun, best

STEP = constant(0.02)
COMPRESSORS = [{"name": "randk", "k": 3}, "natural", {"name": "dither", "s": 2}]
ENDING = [
    ("feddyn", {"k0": 1, "step": STEP, "alpha": 1.0}),
    ("feddyn", {"k0": 5, "step": STEP, "alpha": 1.0}),
    *[("fedadmm-insa", {"c": 0.1, **more}) for more in ({}, {"mu": 1e30}, {"inner_max": 1}, {"memory": 0.3})],
    *[("sisa", more) for more in ({}, {"preconditioner": "smoothness"}, {"rho": 0.0})],
    ("fedadmm", {"k0": 5, "r0": 0.5}),
    ("proxskip", {"p": 0.3}),
    *[(name, {"compressor": compressor}) for name in ("ef21", "diana", "marina") for compressor in COMPRESSORS],
    ("ef21", {"compressor": {"name": "topk", "k": 2}}),  # biased
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
    *[
        ("fedopt", {"k0": 1, "step": constant(0.1), "server": server})
        for server in ("momentum", "adagrad", {"name": "adam", "lr": 0.01}, {"name": "yogi", "lr": 0.01})
    ],
]
KEPT = {  # method -> the field that is a client's gradient at the end, and its factor
    "feddyn": ("h", 1),
    "scaffold": ("c", 1),
    "ef21": ("g", 1),
    "diana": ("h", 1),
    "proxskip": ("h", 1),
    "fedadmm": ("pi", -1 / M),
    "fedgia": ("pi", -1 / M),
    "fedadmm-insa": ("pi", -1),
    "sisa": ("pi", -1),
    "fedadmm-deep": ("pi", -1),
}


def settings(share):
    """Every second case with all clients, and the others with some; the rest is slow."""
    for k, case in enumerate(ENDING):
        yield pytest.param(*case, Uniform(share=share[k % 2]))
        yield pytest.param(*case, Uniform(share=share[1 - k % 2]), marks=pytest.mark.slow)


def falls(run, factor=1e-8, most=2000):
    """Whether ‖∇f‖² falls by ``factor``."""
    first = run.measure()[1]
    for _ in range(0, most, 20):
        run.rounds(20)
        if run.measure()[1] <= factor * first:
            return True
    return False


@pytest.mark.parametrize(
    ("name", "options", "selection"), [*settings((1.0, 0.4)), *[(*case, All()) for case in ALONE]], ids=str
)
def test_it_ends_at_the_minimiser_and_what_clients_keep_at_their_gradients(name, options, selection):
    run = Run(build(name, options), selection=selection)
    assert falls(run)
    if name in KEPT:
        field, factor = KEPT[name]
        G = gradients(run, minimiser(run))
        assert np.abs(getattr(run.states(), field) - factor * G).max() < 1e-2 * abs(factor) * np.abs(G).max()


@pytest.mark.parametrize(("arrivals", "rounds"), [(1, 500), (5, 60), (12, 30)])
def test_asynchronous_admm_ends_there_however_old_uploads_are(arrivals, rounds):
    slow = {"speed": {"name": "lognormal", "median": 50, "sigma": 1.5}, "passes": 3}
    run, oldest = Run(build("ad-admm"), system=slow, asynchronous={"arrivals": arrivals}), 0
    first = run.measure()[1]
    for _ in range(rounds):
        run.rounds(1)
        oldest = max(oldest, run.fed.staleness.max())
    assert oldest > 20 or arrivals > 1
    assert run.measure()[1] < 1e-3 * first


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
@pytest.mark.parametrize("problem", ["quadratic", "softmax", "logistic"])
def test_the_dual_variables_end_at_the_gradients_and_the_model_at_the_minimiser(name, problem):
    data = Synthetic(clients=5, features=4, classes=3 if problem == "softmax" else 2, least=8, most=11, test=0.0)
    problem, data = {
        "quadratic": (problem, duals()[1].data),
        "softmax": (Softmax(lam=0.2, bias=False), data.load(0, "float64")),
        "logistic": (Logistic(mu=0.2, regulariser="whole"), data.load(0, "float64")),
    }[problem]
    run = Run(build(name), problem, data=data, selection=Uniform(count=3))
    assert falls(run, 1e-5, 200)
    host = run.hosts[0]
    G = np.concatenate([run.problem.grad(block, run.server.x) for block in host.blocks])[host.slot]
    assert np.allclose(run.states().y, G, atol=2e-2 * np.abs(G).max())


@pytest.mark.parametrize("compressor", HESSIAN_COMPRESSORS, ids=str)
@pytest.mark.parametrize("option", ["A", "B", None])
def test_with_learned_hessians_the_gradient_vanishes(option, compressor):
    """Of FedNL, and of FedNL-PP, which has no option, with three clients of eight in a round."""
    name, options = ("fednl", {"option": option}) if option else ("fednl-pp", {})
    run = curved(build(name, {"compressor": compressor, **options}), Uniform(count=3))
    assert falls(run, 1e-20, 400)


def on_graphs():
    """Every method on a third of the graphs, the others slow; EXTRA needs one that does not change."""
    for k, (name, options) in enumerate(
        [
            ("lt-admm", {"tau": 1}),
            ("lt-admm", {"tau": 8}),
            ("fedgia-graph", {}),
            ("fedgia-graph", {"k0": 2, "H": "gram"}),
            ("gradient-tracking", {"gamma": 0.05}),
            ("extra", {}),
        ]
    ):
        for j, graph in enumerate(GRAPHS if name == "extra" else [*GRAPHS, *CHANGING]):
            yield pytest.param(name, options, graph, marks=[pytest.mark.slow] if (j + k) % 3 else [])


@pytest.mark.parametrize(("name", "options", "graph"), [*on_graphs()], ids=str)
def test_every_node_ends_at_the_minimiser(name, options, graph):
    run = begun(name, graph, Uniform(share=0.5), **options)
    assert falls(run, 1e-12)
    assert np.allclose(run.server.x, best(), rtol=1e-5)
    assert run.row()["consensus_max"] < 1e-7


# Fields of clients at a fixed point, besides KEPT, from their state, the minimiser and ∇f_i there.
STILL = {
    "feddyn": ({"step": STEP}, lambda state, x, G: {}),
    "scaffold": ({"step": STEP}, lambda state, x, G: {}),
    "fedadmm-insa": (
        {"c": 0.1},
        lambda state, x, G: {"w": x + 0 * G, "z": np.column_stack([state.beta * x - G, state.z[:, -1]])},
    ),
    "sisa": ({}, lambda state, x, G: {"z": state.s * x - G}),
    "fedadmm-deep": ({"rho": 0.5, "lr": 0.02, "batch_size": 0}, lambda state, x, G: {"z": x - G / 0.5}),
    "ad-admm": ({"rho": 0.4, "gamma": 0.4}, lambda state, x, G: {"lam": -G, "w": x + 0 * G, "z": x - G / 0.4}),
}


@pytest.mark.parametrize("name", STILL)
def test_the_minimiser_is_a_fixed_point_where_clients_keep_their_gradients(name):
    options, fields = STILL[name]
    run = Run(build(name, options))
    host, x = run.hosts[0], minimiser(run)
    G = gradients(run, x)[host.order]
    wanted = fields(host.state, x, G)
    if name in KEPT:
        wanted[KEPT[name][0]] = KEPT[name][1] * G
    for field, value in wanted.items():
        getattr(host.state, field)[:] = value
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-9, atol=1e-9)
    if name in KEPT:
        assert np.allclose(getattr(host.state, KEPT[name][0]), KEPT[name][1] * G, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "options", "fields"),
    [
        *[("feddyn", {"step": STEP, **more}, "h") for more in ({}, {"batch_size": 4}, {"batch_size": 3, "epochs": 2})],
        *[("scaffold", {"step": constant(0.01), **more}, "c") for more in ({}, {"batch_size": 3, "epochs": 2})],
        ("ef21", {"compressor": COMPRESSORS[0], "gamma": 0.01}, "g"),
        ("diana", {"compressor": COMPRESSORS[0], "gamma": 0.01}, "h"),
        ("fednl", {"compressor": HESSIAN_COMPRESSORS[1]}, "H"),
        ("fednl-pp", {"compressor": {"name": "topk", "k": 4}, "alpha": 0.7}, "Hgl"),
    ],
    ids=str,
)
@pytest.mark.parametrize("selection", [All(), Uniform(share=0.4)], ids=["all", "some"])
def test_the_server_knows_the_mean_of_what_all_clients_keep(name, options, fields, selection):
    run = curved(build(name, options), selection) if "fednl" in name else Run(build(name, options), selection=selection)
    run.rounds(12)
    for field in fields:
        kept = getattr(run.states(), field)
        assert np.abs(kept).max() > 1e-4
        assert np.allclose(getattr(run.server, field), kept.mean(axis=0), rtol=1e-11, atol=1e-12)
