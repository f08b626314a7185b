"""Methods that are one another: in which settings, and how exactly."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from mpifed.federation.participation.selection import All, Uniform
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_cases import constant
from tests.helpers.algorithm_runs import N, Run, build, quadratics, systems
from tests.helpers.curved_runs import classes
from tests.helpers.graph_studies import data, smoothness

COMPLETE = {"name": "complete"}
RING = {"name": "ring"}
TORUS = {"name": "torus", "rows": 3}
ONE_NODE = {"problem": "quadratic", "data": quadratics(*systems(1, N))}
BATCHES = {"epochs": 2, "batch_size": 5}


class Same(NamedTuple):
    """Two methods with the same models, to ``rtol``, in these settings; ``own``: those of the first method alone."""

    one: dict[str, Any]
    other: dict[str, Any]
    where: Mapping[str, Any] = MappingProxyType({})
    own: Mapping[str, Any] = MappingProxyType({})
    rounds: int = 6
    rtol: float = 1e-12

    def __str__(self):
        return "-".join(str(value) for value in [*self.one.values(), "is", *self.other.values()])


def table(name, **options):
    return {"name": name, **options}


def plain(name, beta=0.0, **options):
    """Momentum that forgets at once is no momentum."""
    none = {"name": "momentum", "beta": beta}
    return Same(table(name, optimizer=none, **options), table(name, **options), rounds=3)


AS_FEDAVG = [{}, {"aggregate": "all"}, BATCHES]
STEP = constant(0.01)
EQUAL = [
    # FedAvg
    *[Same(table(name, **more), table("fedavg", **more), rtol=0.0) for name in ("ditto", "apfl") for more in AS_FEDAVG],
    *[
        Same(table("fedprox", mu=0.0, inner=1, **more), table("fedavg", **more), rtol=0.0)
        for more in ({}, {"aggregate": "all"}, {"scale": "1/m", "k0": 1})
    ],
    *[
        Same(table("fednova", **more), table("fedavg", **more), rtol=1e-13)
        for more in ({}, {"batch_size": 4}, {"optimizer": table("momentum", beta=0.8)}, {"scale": "1/m", "epochs": 2})
    ],
    *[
        Same(table("fedopt", server=table("momentum", lr=1.0, beta=0.0), **more), table("fedavg", **more), rtol=1e-14)
        for more in ({}, BATCHES, {"scale": "1/m"})
    ],
    Same(table("fedopt", server=table("fedexp", eps=0.0)), table("fedavg"), {"selection": Uniform(count=1)}),
    Same(table("local-gd", k0=4, gamma=0.01), table("fedavg", k0=4, step=STEP), rtol=0.0),
    Same(table("fedbuff", k0=4, lr=0.01, a=3.0), table("fedavg", k0=4, step=STEP)),
    Same(table("sfedavg", noise="none", k0=4, step=STEP), table("fedavg", k0=4, step=STEP)),
    # FedProx
    Same(
        table("sfedprox", noise="none", k0=4, step=STEP, mu=0.3, inner=3),
        table("fedprox", k0=4, step=STEP, mu=0.3, inner=3),
    ),
    *[
        Same(
            table("sfedprox", mu=0.0, inner=1, **{"noise": "none", "step": STEP, "k0": 3, **more}),
            table("sfedavg", **{"noise": "none", "step": STEP, "k0": 3, **more}),
            rtol=0.0,
        )
        for more in ({}, {"average": "new"}, {"noise": "matched", "epsilon": 50.0}, {"k0": 1})
    ],
    # gradient descent
    Same(table("fedavg", k0=1, step=STEP), table("gd", gamma=0.01)),
    Same(table("local-gd", k0=1), table("gd"), rounds=10),
    *[
        Same(table("proxskip", p=1.0, gamma=gamma), table("gd", gamma=gamma), {"selection": All()}, rounds=30)
        for gamma in (None, 0.03)
    ],
    *[
        Same(table(name, compressor="identity", gamma=0.02), table("gd", gamma=0.02), {"selection": All()}, rounds=20)
        for name in ("ef21", "diana", "marina")
    ],
    *[
        Same(table(name, gamma=0.1, **more), table("gd", gamma=0.1), ONE_NODE, {"graph": RING}, 30, 1e-11)
        for name, more in [
            ("dgd", {}),
            ("dgd", {"order": "adapt-combine"}),
            ("extra", {}),
            ("gradient-tracking", {}),
        ]
    ],
    *[
        Same(
            table("dgd", gamma=0.01, order="adapt-combine", k0=k0),
            table("local-gd", gamma=0.01, k0=k0),
            {"selection": All()},
            {"graph": COMPLETE},
            20,
        )
        for k0 in (1, 4)
    ],
    # ADMM
    *[
        Same(table("fedgia-async", **more), table("fedgia", **more), {"selection": All()}, rounds=8, rtol=1e-10)
        for more in ({}, {"H": "gram"}, {"start": "-gradient", "k0": 3})
    ],
    Same(
        table("ad-admm"),
        table("ad-admm"),
        {"selection": All()},
        {"system": {"speed": 50.0, "passes": 3}, "asynchronous": {"arrivals": 12}},
    ),
    Same(
        table("fedadmm-insa", mu=1e30, memory=0.0, c=1e-300, inner_max=3),  # the test is as strict as ε = 0
        table("fedadmm", k0=1, inner_max=3, eps0=0.0),
        rounds=10,
        rtol=1e-10,
    ),
    Same(table("sisa", batch_size=10**6), table("sisa", batch_size=0)),
    Same(table("flame", batch_size=25, epochs=2), table("flame", batch_size=0, epochs=2), rounds=3, rtol=1e-9),
    Same(
        table("flame-dp", clip=1e6, noise_multiplier=0.0, rho=0.3, batch_size=0),
        table("flame", rho=0.3, batch_size=0),
    ),
    plain("fedadmm-deep", lr=0.02, batch_size=0, rho=0.1),
    plain("flame", lr=0.02, batch_size=0),
    plain("pfedme", lr=0.02, batch_size=0),
    plain("fedpd", step=constant(0.02)),
    # dual methods
    *[
        Same(
            table(name, schedule=constant(0.3)),
            table(name, eta=0.3),
            {"problem": "quadratic"},
            rounds=4,
            rtol=0.0,
        )
        for name in ("feddcd", "accfeddcd")
    ],
    # Newton's method
    Same(
        table("fednl-pp", compressor="identity"),
        table("newton"),
        {"problem": Logistic(mu=0.1, regulariser="whole"), "data": classes(), "selection": All()},
        rtol=1e-8,
    ),
    # on graphs: W = I − 2β(D − A), and Metropolis weights are 1/(d + 1) = 2β where all nodes have d neighbours
    Same(table("extra", gamma=0.02), table("dgd", gamma=0.02), {"graph": RING}, rounds=2),
    *[
        Same(
            table("lt-admm", tau=1, gamma=0.05, beta=1 / (2 * (degree + 1))),
            table("extra", gamma=0.05),
            {"graph": graph, "data": data()},
            rounds=40,
            rtol=1e-9,
        )
        for graph, degree in [(RING, 2), (TORUS, 4), (COMPLETE, 11)]
    ],
    Same(
        table("fedgia-graph", average="plain", mixes=1, H="zero", t=10 / smoothness()),
        table("dgd", order="adapt-combine", gamma=0.1),
        {"graph": RING, "data": data(), "selection": Uniform(share=0.5)},
        rounds=25,
        rtol=1e-10,
    ),
    *[
        Same(
            table("fedgia-graph", average=average, **more),
            table("fedgia", **more),
            {"selection": selection, "data": data()},
            {"graph": COMPLETE},
            20,
            1e-11,
        )
        for average in ("tracked", "plain")
        for more in ({"t": 0.4}, {"k0": 3, "H": "gram", "t": 0.3}, {"k0": 1, "H": "zero", "t": 1.5})
        for selection in (Uniform(share=0.5), All())
    ],
    *[
        Same(
            table("fedepm-graph", step_scale="one", mu0=15.0, k0=3, lam=0.05, eta=0.2, **noise),
            table("fedepm", step_scale="one", mu0=15.0, k0=3, lam=0.05, eta=0.2, **noise),
            {"selection": selection, "data": data()},
            {"graph": COMPLETE},
            12,
            1e-9,
        )
        for noise in (
            {"noise": "none"},
            {"noise": "released", "epsilon": 50.0},
            {"noise": "clipped", "noise_seed": 3, "clip": 20.0, "epsilon": 1e3},
        )
        for selection in (Uniform(share=0.5), All())
    ],
]


def begun(algorithm, options):
    return Run(build(algorithm["name"], {k: v for k, v in algorithm.items() if k != "name"}), **options)


@pytest.mark.parametrize("case", EQUAL, ids=str)
def test_a_method_is_another_one(case):
    one = begun(case.one, {**case.where, **case.own})
    other = begun(case.other, case.where)
    for _ in range(case.rounds):
        found = one.rounds(1)[-1]
        right = other.rounds(1)[-1]
        assert np.abs(found - right).max() <= case.rtol * np.abs(right).max()
    for column in {"snr", "epsilon", "consensus_max"} & one.row().keys():
        assert one.row()[column] == pytest.approx(other.row().get(column, 0.0), rel=1e-9, abs=1e-24)
