"""Every method with all its options: it descends and keeps its promises about states and traffic.

What options play no part in, such as the number of hosts, is in test_base.py.
"""

from contextlib import nullcontext
from copy import copy
from functools import cache
from math import ceil
from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from mpifed import UserError
from mpifed.algorithms.bases.compressed_differences import CompressedDifferences
from mpifed.engine.listed import refuse_study
from mpifed.experiment.config import experiment
from mpifed.extend import Pool
from mpifed.federation.ledger import Ledger
from tests.helpers import algorithm_cases as given
from tests.helpers import traits
from tests.helpers.algorithm_cases import CASES, CHOSEN, EXCHANGES, GRAPH_CASES, members, start, traffic
from tests.helpers.algorithm_runs import SOURCES, M, N, Run, build, lowest, minimiser, same

ROUNDS = 4
PENALISED = {"fedepm-graph"}  # it ends at the minimiser of f with penalties
EVERY = [(build(*case), None) for case in CASES]
EVERY += [(build(name, options), graph) for name, options, graph in GRAPH_CASES]
FIRST = {algorithm.label(): k for k, (algorithm, _) in reversed([*enumerate(EVERY)])}.values()  # one of each method


def cases(wanted, few=False):
    """Parameters ``place``: the cases of EVERY whose algorithm and graph are wanted; ``few``: by default the FIRST."""
    params = []
    for k, (algorithm, graph) in enumerate(EVERY):
        if wanted(algorithm, graph):
            marks = pytest.mark.slow if few and k not in FIRST else ()
            name = f"{algorithm.label()}-{graph['name']}-{k}" if graph else algorithm.label()
            params.append(pytest.param(k, id=name, marks=marks))
    return pytest.mark.parametrize("place", params)


every = cases(lambda algorithm, graph: True)
one_of_each = cases(lambda algorithm, graph: True, few=True)
with_a_server = cases(lambda algorithm, graph: graph is None)
precise = pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])


class Path(NamedTuple):
    """What the first rounds of a run left behind."""

    run: Run
    begun: Ledger  # before round one
    f: float
    g: float  # ‖∇f‖² before round one
    models: list[np.ndarray]
    states: list  # after every round
    absent: list[np.ndarray]  # (m,) clients that a round did not select
    servers: list  # before every round, with copies of that time


@cache
def path(place, dtype="float64"):
    algorithm, graph = EVERY[place]
    run = start(algorithm, dtype=dtype, graph=graph)
    found = Path(run, copy(run.fed.ledger), *run.measure(), [], [], [], [])
    for _ in range(ROUNDS):
        found.servers.append((run.server, [np.array(value) for value in run.server]))
        found.models.append(run.rounds(1)[-1])
        found.states.append([field.copy() for field in run.states()])
        found.absent.append(~run.fed.mask(run.fed.selected) if graph is None else None)
    run.measure()
    return found


def least_value(run):
    """f at its minimiser."""
    best = lowest(run) if run.problem.label() == "quadratic" else minimiser(run)
    return run.fed.evaluate(best).sums["objective"] / M


@one_of_each
def test_some_rounds_bring_f_and_its_gradient_down(place):
    before = path(place)
    run = start(EVERY[place][0], graph=EVERY[place][1])
    run.rounds((40 if place in FIRST else 60) if EVERY[place][1] else 20)
    f, g = run.measure()
    assert f < before.f - 0.5 * (before.f - least_value(run))
    assert g < 0.2 * before.g


@cases(lambda algorithm, graph: graph is None and traits.selections(algorithm), few=True)
def test_another_seed_gives_other_bits(place):
    models = start(EVERY[place][0], seed=8).rounds(ROUNDS)
    assert models.tobytes() != np.array(path(place).models).tobytes()


@cases(lambda algorithm, graph: graph is None and not traits.all_change(algorithm))
def test_clients_who_are_not_chosen_keep_their_state(place):
    found = path(place)
    for before, after, rest in zip(found.states, found.states[1:], found.absent[1:], strict=False):
        assert rest.sum() == M - CHOSEN
        assert same([field[rest] for field in before], [field[rest] for field in after])


@every
def test_a_server_state_is_left_as_it_is(place):
    for server, copied in path(place).servers:
        assert same([np.asarray(value) for value in server], copied)


@one_of_each
def test_single_precision_is_double_precision_to_rounding(place):
    single, double = (path(place, dtype).models[2] for dtype in ("float32", "float64"))
    assert np.allclose(single, double, rtol=2e-3, atol=2e-4)


@precise
@cases(lambda algorithm, graph: graph is None and not traits.by_coin(algorithm))
def test_the_ledger_is_the_count_by_hand(place, dtype):
    found = path(place, dtype)
    algorithm = EVERY[place][0]
    size = np.dtype(dtype).itemsize
    before = given.BEFORE.get(algorithm.label(), 0)
    assert any(vars(found.begun).values()) == (before > 0)  # mostly what is told before round one is not charged
    exchanges = ROUNDS * EXCHANGES.get(algorithm.label(), 1)
    clients = exchanges * given.called(algorithm)
    up, down = (clients * count for count in traffic(algorithm, size))
    if before:
        exchanges += 1
        clients += M
        up += M * before * size
        down += M * N * size
    ledger, times = found.run.fed.ledger, 1 + (algorithm.label() in given.AGAIN)
    assert (ledger.exchanges, ledger.uploads, ledger.downloads) == (times * exchanges, clients, times * clients)
    assert (ledger.bytes_up, ledger.bytes_down) == (up, times * down)


@precise
@cases(lambda algorithm, graph: graph is not None and not traits.selections(algorithm))
def test_the_ledger_is_what_the_method_says_along_every_edge_that_is_there(place, dtype):
    found, size = path(place, dtype), np.dtype(dtype).itemsize
    assert not any(vars(found.begun).values())  # what nodes agree on before round one is not charged
    algorithm, ledger = EVERY[place][0], found.run.fed.ledger
    rounds = range(2 if algorithm.label() in given.ALONE else 1, ROUNDS + 1)
    ends = sum(2 * found.run.fed.weights.at(round).edges for round in rounds)
    bits = 8 * size * algorithm.message_size(N)[1]
    if isinstance(algorithm, CompressedDifferences):
        bits = algorithm.upload.vectors * algorithm.compressor.bits(N, size)
        assert algorithm.message_size(N)[1] == ceil(algorithm.upload.vectors * algorithm.compressor.bits(N, 8) / 8) / 8
    assert ledger.bytes_down == ledger.bytes_up == ends * ceil(bits / 8)
    assert ledger.bits_down == ledger.bits_up == ends * bits
    assert ledger.uploads == ledger.downloads == ledger.exchanges // len(rounds) * ends


@cases(lambda algorithm, graph: graph is None and not traits.by_coin(algorithm))
def test_what_an_algorithm_says_of_its_traffic_is_what_travels(place):
    """In numbers of 64 bits, for each selection; of a line search the first trial point."""
    algorithm = EVERY[place][0]
    exchanges = EXCHANGES.get(algorithm.label(), 1) / max(1, traits.selections(algorithm))
    up, down = (exchanges * count / 8 for count in traffic(algorithm, 8))
    assert algorithm.message_size(N) == (down, up)


@with_a_server
def test_every_draw_counts_who_was_chosen(place):
    found, times = path(place), np.zeros(M, int)
    selections = traits.selections(EVERY[place][0])
    for round in range(1, ROUNDS + 1):
        for again in range(selections):
            times += found.run.fed.mask(found.run.selector.select(round, again))
    assert np.array_equal(found.run.fed.times_selected, times)
    assert times.sum() == ROUNDS * CHOSEN * selections


@members(CASES)
def test_a_problem_that_lacks_what_an_algorithm_needs_is_refused_by_name(algorithm):
    name = algorithm.label()
    for problem in ("least-squares", "svm", "mlp", "softmax"):
        config = replace(experiment({"algorithm": name, "problem": problem}), algorithm=algorithm)
        lacking = traits.missing_methods(algorithm, type(config.problem))
        sentence = rf"^{name} cannot run on {problem}: it needs {' '.join(lacking[:1])} \("
        with pytest.raises(UserError, match=sentence) if lacking else nullcontext():
            refuse_study(config)


@cases(lambda algorithm, graph: graph is not None and algorithm.label() not in PENALISED, few=True)
def test_one_node_alone_ends_at_its_own_minimiser(place):
    """Without neighbours the method is a local one, whatever the graph."""
    A = np.random.default_rng(0).standard_normal((400, N))
    data = Pool(A, A @ np.arange(1.0, N + 1), None, np.array([400]))
    run = Run(EVERY[place][0], graph={"name": "ring"}, data=data)
    run.rounds(100 if place in FIRST else 800)
    assert np.allclose(run.server.x, np.arange(1, N + 1), atol=1e-3)


@members(
    [
        case
        for case in CASES
        if case[0] not in given.PROBLEMS
        and not case[1].get("weight_decay")
        and case[1].get("noise", "none") == "none"
        and not {"epsilon", "noise_multiplier"} & case[1].keys()
    ]
)
def test_where_nothing_pulls_the_model_of_the_start_stays(algorithm):
    """Also for the share of those who have not trained yet."""
    run = Run(algorithm, given.Still(), data=SOURCES["least-squares"].load(0, "float64"))
    assert np.allclose(run.server.x, np.linspace(-1, 2, N), rtol=1e-14)
    assert np.allclose(run.rounds(4), np.linspace(-1, 2, N), rtol=1e-12)
