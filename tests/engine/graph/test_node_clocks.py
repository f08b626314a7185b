"""Clocks of nodes: times written out by hand, and what waits for what."""

import numpy as np
import pytest

import mpifed
from mpifed.engine.graph import NodeClocks
from mpifed.graphs.graph import Graph
from mpifed.graphs.weights import Weights
from tests.helpers.devices import devices

SIZES = np.array([10, 20, 30, 40])


def clocks(sizes=SIZES, **system):
    """All nodes have computed, with one sample gradient for each of their samples."""
    watch = NodeClocks(devices(sizes, **system), all_work=True)
    watch.begin(1)
    return watch


def mixing(graph, m=4):
    return Weights(Graph.build(graph, "graph"), 0, m).at(1)


def test_a_round_is_computing_then_sending_then_receiving():
    """Node 0 of a star has three neighbours, the others have one."""
    watch = clocks(speed=10.0, latency=0.5, bandwidth_up=100.0, bandwidth_down=200.0)
    assert np.allclose(watch.t, SIZES / 10)
    watch.note_exchange(mixing("star"), 40, None)
    left = SIZES / 10 + 0.5 + np.array([3, 1, 1, 1]) * 0.4
    right = [left.max() + 0.5 + 3 * 0.2, *(max(left[0], left[i]) + 0.5 + 0.2 for i in (1, 2, 3))]
    assert np.allclose(watch.t, right)
    assert watch.row() == {"simulated_seconds": pytest.approx(max(right))}


def test_a_slow_node_is_felt_one_edge_farther_with_every_exchange_and_every_message_costs_time():
    watch = clocks([1] * 9)
    watch.t[0] = 100
    for hops in (1, 2, 3, 4):
        watch.note_exchange(mixing("ring", 9), 8, None)
        assert np.count_nonzero(watch.t == 100) == 2 * hops + 1

    def seconds(graph):
        table = {"data": {"clients": 16, "features": 8}, "algorithm": "dgd", "graph": graph, "rounds": 5}
        return mpifed.run(table | {"system": {"bandwidth_up": 1e3}}).rounds["simulated_seconds"][-1]

    assert seconds("ring") == pytest.approx(5 * 2 * 64 / 1e3)
    assert seconds("complete") == pytest.approx(5 * 15 * 64 / 1e3)


def test_nodes_wait_only_for_those_that_send_and_for_nobody_where_edges_are_lost():
    watch = clocks(speed=10.0, latency=1.0)
    lost = mixing({"name": "ring", "loss": 0.999999})
    assert lost.edges == 0
    watch.note_exchange(lost, 8, None)
    assert np.allclose(watch.t, SIZES / 10)
    watch.note_exchange(mixing("ring"), 8, np.array([True, False, False, False]))
    assert np.allclose(watch.t, [1 + 1, 2 + 1, 3, 4 + 1])
