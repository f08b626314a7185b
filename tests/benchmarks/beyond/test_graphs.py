"""beyond/graphs: the optimum of a study on a graph is that of the same data with a server; what an edge carries."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from benchmarks.beyond.measures import kilobytes_an_edge, spectral_gap
from benchmarks.optimum import minimum
from mpifed.data.cache import Cache
from mpifed.experiment.config import experiment


def test_a_graph_does_not_change_the_optimum():
    table = {"data": {"name": "linreg-noniid", "clients": 6, "features": 4}}
    graph = experiment({**table, "graph": "ring", "algorithm": "dgd"})
    assert minimum(graph, Cache()) == pytest.approx(minimum(experiment(table), Cache()), rel=1e-12)


def test_an_edge_carries_a_vector_each_way_in_a_round_unless_it_is_lost():
    study = {"data": {"name": "linreg-noniid", "clients": 6, "features": 5}, "rounds": 50, "stop": {"gradient": 0.0}}
    ring, lossy = (mpifed.run({**study, "algorithm": "dgd", "graph": {"name": "ring", "loss": p}}) for p in (0.0, 0.5))
    assert kilobytes_an_edge(ring) == pytest.approx(np.arange(51) * 2 * 5 * 8 / 1e3)
    assert 0.3 < kilobytes_an_edge(lossy)[-1] / kilobytes_an_edge(ring)[-1] < 0.7
    assert spectral_gap(ring) == spectral_gap(lossy) == pytest.approx(1 / 3)
    served = mpifed.run(study | {"rounds": 2})
    assert np.isnan(kilobytes_an_edge(served)).all()
    assert np.isnan(spectral_gap(served))
