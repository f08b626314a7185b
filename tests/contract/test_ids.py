"""Clients may be named in any order, as a list or by a mask: the result is that of the numbers in rising order."""

from functools import cache

import numpy as np
import pytest

import mpifed
from mpifed.extend import Graph, Selection, Selector
from mpifed.graphs.graph import Edges
from tests.contract.wrong import Descent, Server

STUDY = {"data": {"clients": 7, "features": 5}, "rounds": 2}
WAYS = {
    "a list": [1, 4, 6],
    "not sorted": [6, 1, 4],
    "an array": np.array([4, 6, 1], np.int32),
    "a mask": np.isin(np.arange(7), [1, 4, 6]),
}


class Named(Descent):
    """Calls the clients of WAYS[way], with ``each`` in that order."""

    way: str = "a list"
    kind: str = "call"

    def round(self, fed, server):
        to = WAYS[self.way]
        ids = np.flatnonzero(to) if self.way == "a mask" else np.asarray(to)
        each = 10.0 * ids[:, None] + np.arange(2)
        weights = 1.0 + ids  # of the upload that stands there
        assert fed.mask(to).nonzero()[0].tolist() == [1, 4, 6]
        if self.kind == "arrivals":
            fed.send(self.own, server.x, to=to, each=each)
            fed.arrivals()
            who, G, named = fed.call(of=to)
        else:
            who, G, named = fed.call(self.own, server.x, to=to, each=each)
        assert (who == ids).all()
        assert (named == 10 * ids).all()
        fed.send(self.gradient, server.x, to=to)
        fed.arrivals()
        total = fed.sum(of=to, weights=weights)
        np.testing.assert_allclose(total, weights @ G, rtol=1e-12)
        mean = fed.mean(self.gradient, server.x, to=to)
        np.testing.assert_allclose(mean, G.mean(axis=0), rtol=1e-12)
        return Server(server.x - 0.1 * mean)

    def own(self, f, client, x, e):
        assert (e[:, 0] == 10 * f.ids).all()
        return client, (f.ids.astype(float), f.grad(x), e[:, 0])


class Chosen(Selection):
    way: str = "a list"

    def selector(self, seed, m, rounds):
        return Selector(3, lambda round, again: WAYS[self.way])


class Ring(Graph):
    way: str = "edges"

    def edges(self, m, rng):
        ring = np.array([[i, (i + 1) % m] for i in range(m)])
        weights = np.arange(1, m + 1) / (3 * m)
        return {
            "edges": Edges(ring),
            "an array": ring[::-1],
            "both directions": np.vstack([ring, ring[:, ::-1]]),
            "twice": Edges(np.vstack([ring, ring])),
            "a list": ring.tolist(),
            "weighted": Edges(ring, weights),
            "weighted both ways": Edges(np.vstack([ring[::-1, ::-1], ring]), np.r_[weights[::-1], weights]),
        }[self.way]


@cache
def model(part, way, **options):
    """The model of a run whose method, selection or graph names clients or edges in this way."""
    algorithm = Named(way=way, **options) if part is Named else "fedavg" if part is Chosen else "extra"
    key = {Chosen: "selection", Ring: "graph"}.get(part)
    return mpifed.run(STUDY, algorithm=algorithm, **({key: part(way=way)} if key else {})).x


@pytest.mark.parametrize("kind", ["call", "arrivals"])
@pytest.mark.parametrize("way", WAYS)
def test_replies_come_in_the_order_that_was_asked_for_and_each_goes_along(way, kind):
    np.testing.assert_array_equal(model(Named, way, kind=kind), model(Named, "a list", kind="call"))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "a list"])
def test_a_selection_may_name_clients_in_any_way(way):
    np.testing.assert_array_equal(model(Chosen, way), model(Chosen, "a list"))


@pytest.mark.parametrize(
    ("way", "same"),
    [(way, "edges") for way in ("an array", "both directions", "twice", "a list")]
    + [("weighted both ways", "weighted")],
)
def test_a_graph_may_name_edges_in_any_order(way, same):
    np.testing.assert_array_equal(model(Ring, way), model(Ring, same))
