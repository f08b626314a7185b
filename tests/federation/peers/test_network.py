"""The verbs of a network: what nodes get of their neighbours, what is charged, and what is refused without a server."""

from typing import NamedTuple

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.algorithms.dgd import DGD, Server
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.traits import Upload
from tests.helpers.algorithm_runs import M, N, Run

RING = {"name": "ring"}
PARTS = {"name": "erdos-renyi", "p": 0.1}  # some nodes have no neighbours


class Client(NamedTuple):
    x: Array
    y: Array
    seen: Array


class Verbs(GraphAlgorithm, tag="verbs"):
    """Whatever a test does in a round."""

    def init_client(self, f):
        x = np.stack([np.full(f.n, float(i)) for i in f.ids]) ** 2 + np.arange(f.n)
        return Client(x=x, y=-x, seen=f.zeros())

    def init_server(self, net):
        return Server(net.initial(), 1.0)

    def round(self, net, server):
        return server

    def keep(self, f, client, *parts):
        return client._replace(seen=sum(k * part for k, part in enumerate(parts, 1))), None

    def collect(self, f, client, near, gamma):
        sums = np.zeros_like(client.x)
        for k in range(len(f)):
            for row in near.rows[near.first[k] : near.first[k + 1]]:
                sums[k] += gamma * row
        return client._replace(seen=sums), None

    def weigh(self, f, client, near):
        owner = np.repeat(np.arange(len(f)), np.diff(near.first))
        sums = np.zeros_like(client.x)
        np.add.at(sums, owner, near.weights[:, None] * near.rows)
        return client._replace(seen=sums), None

    def count(self, f, client):
        return client._replace(seen=client.seen + f.neighbours), None

    def draw(self, f, client):
        return client._replace(seen=np.stack([rng.standard_normal(f.n) for rng in f.rng])), None

    def upload(self, f, client):
        return client, client.x


@pytest.fixture(params=[(0, M), (0, 5, 6, M)], ids=["one host", "three hosts"])
def network(request):
    """A network in round 1, and its first state X."""

    def begun(graph=RING, **options):
        run = Run(Verbs(), graph=graph, cuts=request.param, **options)
        run.fed.begin(1)
        return run, run.states().x, run.fed.weights.at(1).W.toarray()

    return begun


@pytest.mark.parametrize("graph", [RING, PARTS, {"name": "star", "loss": 0.3}], ids=str)
def test_nodes_get_what_the_graph_says(graph, network):
    """Mixed with W; or added up without the node itself and the weights; or the rows themselves with their weights."""
    run, X, W = network(graph)
    off = W - np.diag(W.diagonal())
    A = off > 0
    net, method = run.fed, run.algorithm
    for wanted, verb in (
        (W @ X, lambda: net.mix("x", method.keep)),
        (A @ X, lambda: net.add("x", method.keep)),
        (A @ X + A.sum(axis=1)[:, None], lambda: net.local(method.count)),
        (2 * A @ X, lambda: net.gather("x", method.collect, 2.0)),
        (off @ X, lambda: net.gather("x", method.weigh)),
    ):
        verb()
        assert np.allclose(run.states().seen, wanted, rtol=1e-13)
        assert (run.states().x == X).all()
    net.mix("x")
    assert np.allclose(run.states().x, W @ X, rtol=1e-14)


def test_several_fields_travel_as_one_message_and_only_nodes_that_send_are_charged(network):
    run, X, W = network({"name": "star"})
    run.fed.mix(("x", "y"), run.algorithm.keep)
    assert np.allclose(run.states().seen, W @ X - 2 * W @ X, rtol=1e-13)
    ledger, edges = run.fed.ledger, M - 1
    assert (ledger.uploads, ledger.exchanges, ledger.bytes_up) == (2 * edges, 1, 2 * edges * 2 * N * 8)
    run.fed.mix("x", run.algorithm.keep, of=np.array([0, 3]))
    assert ledger.uploads == ledger.downloads == 2 * edges + edges + 1
    assert np.allclose(run.states().seen, W @ X, rtol=1e-14)


def test_a_sum_runs_over_neighbours_in_rising_number(network):
    """To the bit: 1e16 and −1e16 next to small numbers make any other order another sum."""
    run, X, W = network({"name": "complete"})
    for host in run.hosts:
        host.state = host.state._replace(x=np.array([1.0, 1e16, -1e16])[host.ids % 3][:, None] + np.zeros((1, N)))
    X = run.states().x
    run.fed.mix("x")
    for i in range(M):
        total = np.zeros(N)
        for j in range(M):
            total += W[i, j] * X[j]
        assert run.states().x[i].tobytes() == total.tobytes()


def test_some_nodes_may_work_alone(network):
    run, *_ = network()
    run.fed.local(run.algorithm.keep, to=np.array([0, 5, 7]))
    run.fed.local(run.algorithm.draw, to=np.array([5, 7]))
    assert np.flatnonzero(run.states().seen.any(axis=1)).tolist() == [5, 7]
    assert not any(vars(run.fed.ledger).values())


def test_the_recorded_model_is_the_mean_of_the_nodes_and_nothing_is_charged_for_it_nor_before_round_one(network):
    run, X, _ = network()
    before = run.fed.calls
    assert np.allclose(run.fed.transform_state(run.server).x, X.mean(axis=0), rtol=1e-14)
    assert run.fed.calls == before + 1
    run.fed.begin(0)
    run.fed.mix("x")
    assert not any(vars(run.fed.ledger).values())


WRONG = {
    "verbs calls upload through a server in round 1": lambda net, method: net.mean(method.upload),
    "the client method upload returns an upload": lambda net, method: net.local(method.upload),
    "the client method keep gets an array as an argument, and nodes have no server that could send it": (
        lambda net, method: net.local(method.keep, np.zeros(N))
    ),
    "'z' cannot travel between nodes: it must be a field": lambda net, method: net.mix("z"),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_takes_a_server_is_refused(sentence):
    run = Run(Verbs(), graph=RING)
    run.fed.begin(1)
    with pytest.raises(UserError, match=f"^{sentence}"):
        WRONG[sentence](run.fed, run.algorithm)


class Averaged(DGD):
    """DGD with a trait of methods that have a server."""

    upload = Upload(averaged=True)


@pytest.mark.parametrize("weights", ["samples", [3.0, 1.0, 2.0, 2.0]])
def test_weights_of_a_mean_at_a_server_are_refused_where_there_is_none(weights):
    table = {"data": {"clients": 4}, "graph": "ring", "rounds": 1, "objective": {"weights": weights}}
    with pytest.raises(UserError, match=r"^objective\.weights = .* is wrong: .*:Averaged says Upload\(averaged=True\)"):
        mpifed.run(table, algorithm=Averaged())
    for right in ({"algorithm": DGD()}, {"algorithm": Averaged(), "objective": {}}):  # as the sentence advises
        assert mpifed.run(**(table | right)).cr == 1
