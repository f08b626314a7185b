"""beyond/graphs: the optimum of a study on a graph is that of the same data with a server."""

from __future__ import annotations

import pytest

from benchmarks.optimum import minimum
from mpifed.data.cache import Cache
from mpifed.experiment.config import experiment


def test_a_graph_does_not_change_the_optimum():
    table = {"data": {"name": "linreg-noniid", "clients": 6, "features": 4}}
    graph = experiment({**table, "graph": "ring", "algorithm": "dgd"})
    assert minimum(graph, Cache()) == pytest.approx(minimum(experiment(table), Cache()), rel=1e-12)
