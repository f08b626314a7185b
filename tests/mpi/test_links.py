"""Rows between hosts: each travels once, only to hosts that need it, and all arrive in rising number."""

from types import SimpleNamespace as State

import h5py
import numpy as np
import pytest

from mpifed.federation import sums
from mpifed.federation.peers.neighbourhood import Neighbourhood
from mpifed.federation.request import Request
from mpifed.federation.transport import RankTraffic
from mpifed.graphs.graph import Graph
from mpifed.graphs.weights import Weights
from mpifed.mpi.links import MPILinks
from tests.helpers.commands import mpifed

pytestmark = pytest.mark.mpi
M, N, ROUNDS = 24, 5, 4
GRAPHS = ["ring", "torus", "star", {"name": "erdos-renyi", "redraw": True, "p": 0.2}, {"name": "complete", "loss": 0.5}]


@pytest.mark.parametrize("patient", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_every_host_mixes_as_one_host_would(graph, dtype, patient, world):
    if world.size < 3 or world.rank == 0:
        return
    cuts = sums.rank_offsets(np.ones(M, int), world.size - 1)
    lo, hi = cuts[world.rank - 1], cuts[world.rank]
    weights, traffic = Weights(Graph.build(graph, "graph"), 0, M), RankTraffic()
    X = np.random.default_rng(0).standard_normal((M, N)).astype(dtype)
    own, alone = (Neighbourhood(weights, a, b, c, X.dtype) for a, b, c in ((lo, hi, cuts), (0, M, [0, M])))
    own.links = MPILinks(world.comm, own, traffic, patient)
    rows = 0
    for round in range(1, ROUNDS + 1):
        W = weights.at(round).W.toarray()
        rows += np.count_nonzero(W[lo:hi].any(axis=0)) - (hi - lo)
        for kind in ("mix", "add"):
            request = Request("", key=(round, 0), request_type=(kind, "x"))
            found = own.receive_fields(request, State(x=X[lo:hi]), None)
            right = alone.receive_fields(request, State(x=X), None)
            assert found.parts[0].tobytes() == right.parts[0][lo:hi].tobytes()
    assert traffic.received == 2 * rows * N * X.itemsize
    assert traffic.calls == 2 * ROUNDS


def test_a_result_counts_what_ranks_send_to_each_other(world, mpi_tmp_path):
    """On a ring a rank needs two rows of its neighbours, however many nodes it has."""
    received = {}
    for rounds in (2, 12):
        path = mpi_tmp_path / f"{rounds}.h5"
        words = ["algorithm=dgd", "graph=ring", "data.clients=24", "data.features=50", "evaluate.every=100"]
        assert mpifed("run", *words, f"rounds={rounds}", "stop.gradient=0.0", "-q", "-o", path).code == 0
        if world.rank == 0:
            with h5py.File(path) as file:
                received[rounds] = file["ranks/mpi_bytes_received"][1:]
    if world.rank == 0 and world.size > 2:
        per_round = (received[12] - received[2]) / 10
        assert (per_round >= 2 * 50 * 8).all()
        assert (per_round < 2 * 50 * 8 + 3000).all()
