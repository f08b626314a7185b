"""Every method without a server: it descends, keeps its promises about bits and states, and sends along edges only."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.data.pool import Pool
from tests.algorithms.test_every_algorithm import Guard, Watch, least_value
from tests.helpers.algorithm_cases import GRAPH_CASES, on_graphs, start
from tests.helpers.algorithm_runs import M, N, Run, build, same

PENALISED = {"fedepm-graph"}  # it ends at the minimiser of f with penalties


CUTS = [(0, 6, M), (0, 1, 2, 11, M), range(M + 1)]


@on_graphs(GRAPH_CASES)
def test_rounds_bring_f_and_its_gradient_down(algorithm, graph):
    run = start(algorithm, graph=graph)
    f, g = run.measure()
    run.rounds(60)
    later_f, later_g = run.measure()
    assert later_f < f - 0.5 * (f - least_value(run))
    assert later_g < 0.2 * g


@on_graphs(GRAPH_CASES)
def test_the_same_seed_gives_the_same_bits(algorithm, graph):
    one, again = (start(algorithm, seed=7, graph=graph) for _ in range(2))
    assert one.rounds(5).tobytes() == again.rounds(5).tobytes()
    assert same(one.states(), again.states())


@pytest.mark.parametrize("cuts", CUTS, ids=lambda cuts: f"{len(cuts) - 1} hosts")
@on_graphs(GRAPH_CASES)
def test_the_bits_do_not_depend_on_how_many_hosts_there_are(algorithm, graph, cuts):
    alone, several = start(algorithm, graph=graph), start(algorithm, graph=graph, cuts=cuts)
    assert alone.rounds(5).tobytes() == several.rounds(5).tobytes()
    assert same(alone.states(), several.states())
    assert same(*(run.fed.evaluate(run.server.x).values() for run in (alone, several)))
    assert vars(alone.fed.ledger) == vars(several.fed.ledger)


@on_graphs(GRAPH_CASES)
def test_neither_do_they_depend_on_the_size_of_blocks(algorithm, graph):
    small, large = (start(algorithm, graph=graph, block_bytes=size) for size in (1, 10**8))
    assert small.rounds(4).tobytes() == large.rounds(4).tobytes()
    assert same(small.states(), large.states())


@on_graphs(GRAPH_CASES)
def test_client_methods_leave_their_arguments_as_they_are(algorithm, graph):
    free, guarded = start(algorithm, graph=graph), start(algorithm, graph=graph)
    guarded.hosts[0].algorithm = guard = Guard(algorithm)
    assert guarded.rounds(3).tobytes() == free.rounds(3).tobytes()
    assert same(guarded.states(), free.states())
    assert guard.called


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@on_graphs(GRAPH_CASES)
def test_states_keep_their_type(algorithm, graph, dtype):
    run = start(algorithm, graph=graph, dtype=dtype)
    run.hosts[0].algorithm = watch = Replying(algorithm)
    run.rounds(3)
    assert run.server.x.dtype == dtype
    assert watch.models == {np.dtype(dtype)}
    assert watch.kept


class Replying(Watch):
    """The same, but for ``model``, which replies without a state, as evaluations do."""

    def __getattr__(self, name):
        return getattr(self.algorithm, name) if name == "model" else super().__getattr__(name)


@on_graphs(GRAPH_CASES)
def test_single_precision_is_double_precision_to_rounding(algorithm, graph):
    single, double = (start(algorithm, graph=graph, dtype=dtype).rounds(3)[-1] for dtype in ("float32", "float64"))
    assert np.allclose(single, double, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("itemsize", [8, 4])
@on_graphs([case for case in GRAPH_CASES if not build(*case[:2]).selections])
def test_the_ledger_is_what_the_method_says_along_every_edge_that_is_there(algorithm, graph, itemsize):
    run = start(algorithm, graph=graph, dtype=f"float{8 * itemsize}")
    assert not any(vars(run.fed.ledger).values())  # what nodes agree on before round one is not charged
    run.rounds(3)
    run.measure()
    ends = sum(2 * run.fed.weights.at(round).edges for round in (1, 2, 3))
    ledger = run.fed.ledger
    down, up = algorithm.traffic(N)
    assert (ledger.bytes_down, ledger.bytes_up) == (ends * down * itemsize, ends * up * itemsize)
    assert (ledger.bits_down, ledger.bits_up) == (8 * ledger.bytes_down, 8 * ledger.bytes_up)
    assert ledger.uploads == ledger.downloads == ledger.exchanges // 3 * ends


@on_graphs([case for case in GRAPH_CASES if case[0] not in PENALISED])
def test_one_node_alone_ends_at_its_own_minimiser(algorithm, graph):
    """Without neighbours the method is a local one, whatever the graph."""
    A = np.random.default_rng(0).standard_normal((400, N))
    data = Pool(A, A @ np.arange(1.0, N + 1), None, np.array([400]))
    run = Run(algorithm, graph={"name": "ring"}, data=data)
    run.rounds(800)
    assert np.allclose(run.server.x, np.arange(1, N + 1), atol=1e-3)
