"""Methods that are one another: in which settings, and how exactly."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from mpifed.federation.participation.selection import All, UniformSelection
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_cases import constant
from tests.helpers.algorithm_runs import N, Run, build, quadratics, systems
from tests.helpers.curved_runs import classes
from tests.helpers.graph_studies import data, smoothness


class Same(NamedTuple):
    """Two methods with the same models, to ``rtol``; ``where`` both run, and where the first alone does (``own``)."""

    names: str
    one: dict[str, Any]
    other: dict[str, Any]
    rounds: int
    rtol: float
    where: dict[str, Any]
    own: dict[str, Any]

    def __str__(self):
        return f"{self.names}-{self.one}"


def same(names, shared=({},), one=None, other=None, rounds=6, rtol=1e-12, own=None, **where):
    """A case for each of the ``shared`` options: those of either method and settings of the run are the others.

    By default the first of them alone is run.
    """
    found = [Same(names, (one or {}) | more, (other or {}) | more, rounds, rtol, where, own or {}) for more in shared]
    return [pytest.param(case, id=str(case), marks=[pytest.mark.slow] * (k > 0)) for k, case in enumerate(found)]


ALL, HALF = {"selection": All()}, {"selection": UniformSelection(share=0.5)}
NODES = {"data": data()}
ONE_NODE = {"problem": "quadratic", "data": quadratics(*systems(1, N))}
CURVED = {"problem": Logistic(mu=0.1, regulariser="whole"), "data": classes()}
RING, COMPLETE = {"graph": {"name": "ring"}}, {"graph": {"name": "complete"}}
TORUS = {"graph": {"name": "torus", "rows": 3}}
ARRIVALS = {"system": {"speed": 50.0, "passes": 3}, "asynchronous": {"arrivals": 12}}
BATCHES = {"epochs": 2, "batch_size": 5}
MOMENTUM = {"name": "momentum", "beta": 0.0}
STEP = {"step": constant(0.01)}
FOUR = {"k0": 4, **STEP}
PLAIN = {"mu": 0.0, "inner": 1}
EVERYTHING = {"compressor": "identity"}
ADAPT = {"order": "adapt-combine"}
SILENT = {"noise": "none", "k0": 3, **STEP}
EPM = {"step_scale": "one", "mu0": 15.0, "k0": 3, "lam": 0.05, "eta": 0.2}
CLIPPED = {"noise": "clipped", "noise_seed": 3, "clip": 20.0, "epsilon": 1e3}
NOISES = [{"noise": "none"}, {"noise": "released", "epsilon": 50.0}, CLIPPED]
METRICS = [{"t": 0.4}, {"k0": 3, "H": "gram", "t": 0.3}, {"k0": 1, "H": "zero", "t": 1.5}]
FREE = {"mixes": 1, "H": "zero", "t": 10 / smoothness(), "average": "plain"}  # no metric: γ = 0.1
INEXACT = {"mu": 1e30, "memory": 0.0, "c": 1e-300, "inner_max": 3}  # a test as strict as ε = 0

EQUAL = [
    # FedAvg, to the bit where rtol is 0
    *same("ditto is fedavg", [{}, {"aggregate": "all"}, BATCHES], rtol=0.0),
    *same("apfl is fedavg", [{}, {"aggregate": "all"}, BATCHES], rtol=0.0),
    *same("fedprox is fedavg", [{}, {"aggregate": "all"}, {"scale": "1/m", "k0": 1}], PLAIN, rtol=0.0),
    *same("local-gd is fedavg", [{"k0": 4}], {"gamma": 0.01}, STEP, rtol=0.0),
    *same("fednova is fedavg", [{}, {"batch_size": 4}, {"scale": "1/m", "epochs": 2}], rtol=1e-13),
    *same("fednova is fedavg", [{"optimizer": MOMENTUM | {"beta": 0.8}}], rtol=1e-13),
    *same("fedrep is fedavg", [{"k0": 3, **STEP}, {"epochs": 2, **STEP}], {"head_steps": 1}, rtol=1e-14),
    *same("fedopt is fedavg", [{}, BATCHES, {"scale": "1/m"}], {"server": MOMENTUM | {"lr": 1.0}}, rtol=1e-14),
    *same("fedopt is fedavg", one={"server": {"name": "fedexp", "eps": 0.0}}, selection=UniformSelection(count=1)),
    *same("malenia is gd", [{"gamma": 0.01}, {}], **ALL),
    *same("ringleader is gd", [{"gamma": 0.01}], **ALL),
    *same("ringmaster is gd", [{"gamma": 0.01}], {"R": 1}),
    *same("rennala is gd", [{"gamma": 0.01}, {}]),
    *same("fedbuff is fedavg", [{"k0": 4}], {"lr": 0.01, "a": 3.0}, STEP),
    *same("sfedavg is fedavg", [FOUR], {"noise": "none"}),
    # FedProx and SFedAvg
    *same("sfedprox is fedprox", [FOUR | {"mu": 0.3, "inner": 3}], {"noise": "none"}),
    *same("sfedprox is sfedavg", [SILENT, SILENT | {"average": "new"}], PLAIN, rtol=0.0),
    *same("sfedprox is sfedavg", [SILENT | {"noise": "matched", "epsilon": 50.0}], PLAIN, rtol=0.0),
    *same("q-fedavg is fedavg", [{"k0": 4}, BATCHES], {"q": 0.0, "lr": 0.01}, STEP),
    # gradient descent
    *same("fedavg is gd", one={"k0": 1, **STEP}, other={"gamma": 0.01}),
    *same("local-gd is gd", one={"k0": 1}, rounds=10),
    *same("nesterov is gd", [{"gamma": 2**-6}], {"mu": 64.0}, rounds=20, **ALL),
    *same("proxskip is gd", [{"gamma": None}, {"gamma": 0.03}], {"p": 1.0}, rounds=30, **ALL),
    *same("ef21 is gd", [{"gamma": 0.02}], {"compressor": "identity"}, rounds=20, **ALL),
    *same("ef21 is gd", [{"gamma": 0.02}], {"compressor": "identity", "start": "full"}, rounds=20, **ALL),
    *same("ef21-hb is ef21", [{}, {"gamma": 0.02}], {"eta": 0.0}, rounds=20, **HALF),
    *same("ef21-bc is ef21", [{"gamma": 0.02}], {"down": "identity"}, rounds=20, **ALL),
    *same("ef21-sgd is ef21", [{}], {"batch_size": 10**6}, rounds=20, **HALF),
    *same("ef21-page is ef21", [{"gamma": 0.02}], {"p": 1.0}, rounds=20, **HALF),
    *same("ef21-page is ef21", [{"gamma": 0.02}], {"p": 1e-9, "batch_size": 10**6}, rounds=20, **HALF),
    *same("diana is gd", [{"gamma": 0.02}], {"compressor": "identity"}, rounds=20, **ALL),
    *same("marina is gd", [{"gamma": 0.02}], {"compressor": "identity"}, rounds=20, **ALL),
    *same("dgd is gd", [{"gamma": 0.1}], rounds=30, own=RING, **ONE_NODE),
    *same("dgd is gd", [{"gamma": 0.1}], ADAPT, rounds=30, own=RING, **ONE_NODE),
    *same("extra is gd", [{"gamma": 0.1}], rounds=30, rtol=1e-11, own=RING, **ONE_NODE),
    *same("gradient-tracking is gd", [{"gamma": 0.1}], rounds=30, rtol=1e-11, own=RING, **ONE_NODE),
    *same("dgd is local-gd", [{"gamma": 0.01, "k0": k} for k in (1, 4)], ADAPT, own=COMPLETE, **ALL),
    # ADMM, also of networks
    *same("fedgia-async is fedgia", [{}, {"H": "gram"}, {"start": "-gradient", "k0": 3}], rtol=1e-10, **ALL),
    *same("ad-admm is ad-admm", own=ARRIVALS, **ALL),
    *same("fedadmm-insa is fedadmm", one=INEXACT, other={"k0": 1, "inner_max": 3, "eps0": 0.0}, rtol=1e-10),
    *same("sisa is sisa", one={"batch_size": 10**6}, other={"batch_size": 0}),
    *same("flame is flame", [{"epochs": 2}], {"batch_size": 25}, {"batch_size": 0}, rtol=1e-9),
    *same("flame-dp is flame", [{"rho": 0.3, "batch_size": 0}], {"clip": 1e6, "noise_multiplier": 0.0}),
    *same("fedadmm-deep is fedadmm-deep", [{"lr": 0.02, "batch_size": 0, "rho": 0.1}], {"optimizer": MOMENTUM}),
    *same("flame is flame", [{"lr": 0.02, "batch_size": 0}], {"optimizer": MOMENTUM}),
    *same("pfedme is pfedme", [{"lr": 0.02, "batch_size": 0}], {"optimizer": MOMENTUM}),
    *same("fedpd is fedpd", [{"step": constant(0.02)}], {"optimizer": MOMENTUM}, rounds=3),
    # dual methods, and Newton's
    *same("fednl-pp is newton", one={"compressor": "identity"}, rtol=1e-8, **ALL, **CURVED),
    # on graphs: W = I − 2β(D − A), and Metropolis weights are 1/(d + 1) = 2β where all nodes have d neighbours
    *same("extra is dgd", [{"gamma": 0.02}], rounds=2, **RING),
    *same("choco is dgd", one={"gamma": 1.0, "eta": 0.02} | EVERYTHING, other={"gamma": 0.02} | ADAPT, **RING),
    *same("motef is beer", [EVERYTHING, {"compressor": "natural"}], {"lam": 1.0}, rounds=20, rtol=1e-9, **RING),
    *same("nids is gd", [{"gamma": 0.1}], rounds=30, rtol=1e-11, own=RING, **ONE_NODE),
    *same("aug-dgm is gd", [{"gamma": 0.1}], rounds=30, rtol=1e-11, own=RING, **ONE_NODE),
    *same("led is local-gd", one={"alpha": 0.1, "tau": 3}, other={"gamma": 0.1, "k0": 3}, own=RING, **ONE_NODE),
    *same("k-gt is local-gd", [{"gamma": 0.1, "k0": 3}], rtol=1e-11, own=RING, **ONE_NODE),
    *same("lt-admm is extra", [{"gamma": 0.05}], {"tau": 1, "beta": 1 / 6}, rounds=40, rtol=1e-9, **RING, **NODES),
    *same("lt-admm is extra", [{"gamma": 0.05}], {"tau": 1, "beta": 1 / 10}, rounds=40, rtol=1e-9, **TORUS, **NODES),
    *same("lt-admm is extra", [{"gamma": 0.05}], {"tau": 1, "beta": 1 / 24}, rounds=40, rtol=1e-9, **COMPLETE, **NODES),
    *same("fedgia-graph is dgd", [{}], FREE, ADAPT | {"gamma": 0.1}, rounds=25, rtol=1e-10, **RING, **NODES, **HALF),
    *same("fedgia-graph is fedgia", METRICS, rounds=20, rtol=1e-11, own=COMPLETE, **NODES, **ALL),
    *same("fedgia-graph is fedgia", METRICS, rounds=20, rtol=1e-11, own=COMPLETE, **NODES, **HALF),
    *same("fedgia-graph is fedgia", METRICS, {"average": "plain"}, rtol=1e-11, own=COMPLETE, **NODES, **HALF),
    *same("fedepm-graph is fedepm", NOISES, EPM, EPM, rounds=12, rtol=1e-9, own=COMPLETE, **NODES, **ALL),
    *same("fedepm-graph is fedepm", NOISES, EPM, EPM, rounds=12, rtol=1e-9, own=COMPLETE, **NODES, **HALF),
]


@pytest.mark.parametrize("case", EQUAL)
def test_a_method_is_another_one(case):
    first, second = case.names.split(" is ")
    one = Run(build(first, case.one), **case.where, **case.own)
    other = Run(build(second, case.other), **case.where)
    for _ in range(case.rounds):
        found = one.rounds(1)[-1]
        right = other.rounds(1)[-1]
        assert np.abs(found - right).max() <= case.rtol * np.abs(right).max()
    for column in {"snr", "epsilon", "consensus_max"} & one.row().keys():
        assert one.row()[column] == pytest.approx(other.row().get(column, 0.0), rel=1e-9, abs=1e-24)
