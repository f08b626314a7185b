"""The model of a round: what it says where the answer is known, and that it counts the bytes that are sent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.speed import cost_model as model
from benchmarks.speed.cost_model import Machine, Study
from mpifed.federation import sums
from mpifed.mpi import loggp
from mpifed.mpi.channel import LONG
from mpifed.mpi.climb import REPORT
from mpifed.mpi.plan import BIG

MACHINE = Machine(L=1e-6, o=2e-7, G=1e-10, gamma=5e-11, o_round=1e-4, compute=1e-9, turn=1e-3)
ALPHA = MACHINE.L + 2 * MACHINE.o
BYTES = Machine(L=0.0, o=0.0, G=1.0, gamma=0.0)  # its seconds are bytes
COLLECTIVES = [model.broadcast, model.reduce, loggp.reduce_scatter]

sizes = st.integers(0, 10**8)
ranks = st.integers(1, 2000)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_one_rank_communicates_nothing(collective):
    assert collective(MACHINE, 10**6, 1) == 0
    assert loggp.gather(MACHINE, []) == 0


@pytest.mark.parametrize(("count", "stages"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1024, 10)])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_an_empty_message_takes_a_latency_a_stage_of_the_tree(collective, count, stages):
    assert collective(MACHINE, 0, count) == pytest.approx(stages * ALPHA)


def test_a_short_message_goes_down_the_tree_and_a_long_one_in_parts():
    short, long = 100, 10**9
    assert model.broadcast(MACHINE, short, 16) == pytest.approx(4 * (ALPHA + short * MACHINE.G))
    assert model.broadcast(MACHINE, long, 16) == pytest.approx(8 * ALPHA + 2 * 15 / 16 * long * MACHINE.G)
    assert model.reduce(MACHINE, short, 16) == pytest.approx(4 * (ALPHA + short * (MACHINE.G + MACHINE.gamma)))


def test_between_two_ranks_every_collective_is_one_message():
    message = ALPHA + 1000 * MACHINE.G
    assert model.broadcast(MACHINE, 1000, 2) == pytest.approx(message)
    assert loggp.gather(MACHINE, [1000]) == pytest.approx(message)
    assert model.reduce(MACHINE._replace(gamma=0.0), 1000, 2) == pytest.approx(message)


@given(collective=st.sampled_from(COLLECTIVES), size=sizes, more=sizes, count=ranks, further=ranks)
def test_more_bytes_and_more_ranks_never_cost_less(collective, size, more, count, further):
    seconds = collective(MACHINE, size, count) * (1 - 1e-12)
    assert seconds <= collective(MACHINE, size + more, count)
    assert seconds <= collective(MACHINE, size, count + further)


@given(messages=st.lists(sizes, min_size=1), more=sizes)
def test_a_gather_ends_when_every_byte_has_come_in(messages, more):
    assert loggp.gather(BYTES, messages) == sum(messages)
    assert loggp.gather(MACHINE, [*messages, more]) > loggp.gather(MACHINE, messages)


def ways(*cuts):
    return model.choice(cuts, together=True)


@given(m=st.integers(2, 500), hosts=st.integers(1, 40))
def test_on_a_star_rank_0_receives_every_subtree_and_a_report_of_every_host(m, hosts):
    cuts = sums.cuts(np.ones(m), min(hosts, m))
    trees = [sums.nodes(lo, hi, m) for lo, hi in pairwise(cuts)]
    found = ways(*cuts)
    assert found.vectors("sum") == [0, *map(len, trees)]
    count = sum(map(len, trees))
    alone = lambda child, parent: BYTES  # noqa: E731
    assert found.seconds("sum", 80, alone)["star"] == 80 * count + REPORT * len(trees)
    adding = lambda child, parent: BYTES._replace(G=0.0, gamma=1.0)  # noqa: E731
    assert found.seconds("sum", 80, adding)["star"] == 80 * (count - 1)


def test_equal_hosts_send_one_vector_each_and_uneven_ones_more():
    assert ways(0, 16, 32, 48, 64).vectors("sum") == [0, 1, 1, 1, 1]
    assert ways(0, 21, 43, 64).vectors("sum") == [0, 3, 6, 3]
    assert ways(0, 21, 43, 64).vectors("plain sum") == [0, 1, 1, 1]


def test_up_a_tree_of_equal_hosts_a_message_a_stage_is_on_the_way():
    found = ways(*range(0, 65))  # 64 hosts, 6 stages
    link = lambda child, parent: MACHINE  # noqa: E731
    message = ALPHA + (1000 + REPORT) * MACHINE.G
    assert found.seconds("sum", 1000, link)["tree"] == pytest.approx(6 * (message + 1000 * MACHINE.gamma))


def test_of_a_long_sum_every_rank_receives_its_slice_and_the_server_the_slices():
    size, link = 64 * BIG, lambda child, parent: BYTES
    slices = 3 * size / 4 + 3 * size / 4
    for reduce in ("sum", "plain sum"):
        found = ways(0, 1, 2, 3).seconds(reduce, size, link)
        assert slices < found["slices"] <= slices + 3 * REPORT
        assert found["star"] == 3 * size + 3 * REPORT


def test_the_way_of_a_reduction_goes_from_a_star_over_a_tree_to_slices():
    few, many = ways(0, 1, 2), ways(*range(0, 129))
    assert few.way("sum", 80) == "star"
    assert many.way("sum", 80) == "tree"
    assert few.way("sum", 10**8) == many.way("sum", 10**8) == "slices"
    assert ways(0, 8).way("sum", 10**8) == "star"  # a single vector


def test_a_reduction_takes_the_time_of_the_way_that_is_chosen():
    found = ways(*range(0, 129))
    seconds = found.seconds("sum", 80, lambda child, parent: MACHINE)
    assert model.reduction(MACHINE, found, 80) == (seconds["tree"], 7)
    long = found.seconds("sum", 10**8, lambda child, parent: MACHINE)
    assert model.reduction(MACHINE, found, 10**8) == (long["slices"], 7 + 2)


def test_one_rank_computes_all_clients_and_sends_nothing():
    found = model.round_seconds(MACHINE, Study(1, 100, 64, 1000))
    assert found == (64 * 1000 * MACHINE.compute, 0, 0, MACHINE.o_round)
    assert found.total == pytest.approx(64e-6 + 1e-4)


def test_hosts_divide_the_work_and_the_slowest_decides():
    assert model.round_seconds(MACHINE, Study(5, 100, 64, 1000)).compute == pytest.approx(16 * 1000 * MACHINE.compute)
    assert max(np.diff(sums.cuts(np.ones(64), 3))) == 24
    assert model.round_seconds(MACHINE, Study(4, 100, 64, 1000)).compute == pytest.approx(24 * 1000 * MACHINE.compute)


@pytest.mark.parametrize(("cores", "share"), [(None, 1), (100, 1), (5, 1), (4, 2), (2, 3), (1, 5)])
def test_ranks_that_share_a_core_wait_for_each_other(cores, share):
    alone = model.round_seconds(MACHINE, Study(5, 100, 64, 1000))
    found = model.round_seconds(MACHINE, Study(5, 100, 64, 1000, cores=cores))
    seconds, stages = model.reduction(MACHINE, model.choice((0, 16, 32, 48, 64), cores is not None), 800)
    assert found.compute == pytest.approx(share * alone.compute)
    assert found.server == pytest.approx(share * alone.server)
    assert found.broadcast == pytest.approx(alone.broadcast + (share - 1) * MACHINE.turn)
    assert found.reduction == pytest.approx(seconds + stages * (share - 1) * MACHINE.turn)


@pytest.mark.parametrize(("cores", "share"), [(None, 1), (5, 1), (4, 1), (2, 2), (1, 4)])
def test_where_hosts_compute_for_long_waiting_ranks_sleep_and_hosts_alone_share_the_cores(cores, share):
    long = Study(5, 100, 64, 1e5)
    alone = model.round_seconds(MACHINE, long)
    found = model.round_seconds(MACHINE, long._replace(cores=cores))
    assert alone.compute > model.LONG == LONG
    assert found.compute == pytest.approx(share * alone.compute)
    assert found.broadcast == alone.broadcast


def test_a_round_with_nothing_to_do_costs_its_overhead_and_its_messages():
    free = MACHINE._replace(L=0.0, o=0.0, G=0.0, gamma=0.0)
    assert model.round_seconds(free, Study(8, 100, 64, 0)) == (0, 0, 0, MACHINE.o_round)
    assert model.round_seconds(BYTES, Study(2, 100, 64, 0)).total == model.HEAD + 800 + REPORT + 800


@given(
    alpha=st.floats(1e-7, 1e-3),
    o=st.floats(0.01, 0.49),
    G=st.floats(1e-11, 1e-7),
    gamma=st.floats(1e-11, 1e-7),
    o_round=st.floats(1e-6, 1e-2),
    compute=st.floats(1e-12, 1e-8),
)
def test_a_fit_finds_the_machine_that_the_times_were_made_with(alpha, o, G, gamma, o_round, compute):
    k, count, work = np.array([0.0, 1e3, 1e4, 1e5, 1e6]), np.array([1.0, 10.0, 100.0]), np.array([1e3, 1e6, 1e7])
    found = model.fit(
        (k, alpha + k * G), (count, 1e-6 + count * o * alpha), (k, 1e-6 + k * gamma), (work, o_round + work * compute)
    )
    expected = Machine(alpha * (1 - 2 * o), o * alpha, G, gamma, o_round, compute)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-13)


def test_a_fit_gives_nothing_negative_to_times_that_fall():
    found = model.fit(([0, 100], [2e-6, 1e-6]), ([1, 2], [2e-6, 1e-6]), ([0, 100], [2e-6, 1e-6]))
    assert min(found) >= 0
    assert found.G == found.gamma == 0


def test_the_turn_is_found_from_rounds_of_ranks_that_share_cores():
    cases = [Study(p, n, 64, 10, cores=2) for p in (2, 4, 8) for n in (2, 10**5)]
    seconds = [model.round_seconds(MACHINE, case).total for case in cases]
    assert model.fit_turn(MACHINE._replace(turn=0.0), cases, seconds).turn == pytest.approx(MACHINE.turn)
    assert model.fit_turn(MACHINE, cases[:1], seconds[:1]).turn == 0  # nothing waits: it cannot be known


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: model.broadcast(MACHINE, -1, 2), "size = -1 must be at least 0"),
        (lambda: model.reduce(MACHINE, 1, 0), "ranks = 0 at least 1"),
        (lambda: loggp.gather(MACHINE, [3, -2]), "size = -2"),
        (lambda: model.round_seconds(MACHINE, Study(6, 10, 4, 1)), "6 ranks are too many for 4 clients: at most 5"),
        (lambda: model.round_seconds(MACHINE, Study(2, 0, 4, 1)), "n = 0"),
        (lambda: model.round_seconds(MACHINE, Study(2, 10, 4, -1)), "work = -1"),
        (lambda: model.round_seconds(MACHINE, Study(2, 10, 4, 1, cores=0)), "cores = 0"),
        (lambda: model.line([1, 1], [2, 3]), "two different points"),
        (lambda: model.line([1, 2], [2, 0]), "positive times"),
    ],
)
def test_an_impossible_study_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
