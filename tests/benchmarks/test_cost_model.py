"""The model of a round: what it says where the answer is known, and that it counts the bytes that are sent."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.speed import cost_model as model
from benchmarks.speed.cost_model import Machine, Study
from mpifed.federation import sums
from mpifed.mpi import reduction_choice
from mpifed.mpi.channel import LONG
from mpifed.mpi.plan import BIG
from mpifed.mpi.rank_trees import REPORT

MACHINE = Machine(L=1e-6, o=2e-7, G=1e-10, gamma=5e-11, o_round=1e-4, compute=1e-9, turn=1e-3)
ALPHA = MACHINE.L + 2 * MACHINE.o
BYTES = Machine(L=0.0, o=0.0, G=1.0, gamma=0.0)  # its seconds are bytes
COLLECTIVES = [model.broadcast, model.reduce, reduction_choice.predict_reduce_scatter]
STAGES = {1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 8: 3, 9: 4, 1024: 10}

RANGES = [(1e-7, 1e-3), (0.01, 0.49), (1e-11, 1e-7), (1e-11, 1e-7), (1e-6, 1e-2), (1e-12, 1e-8)]  # α, o/α, G, γ, …
sizes = st.integers(0, 10**8)
ranks = st.integers(1, 2000)


def seconds(found, reduce, size, machine):
    return found.seconds(reduce, size, lambda child, parent: machine)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_an_empty_message_takes_a_latency_a_stage_of_the_tree_and_one_rank_sends_nothing(collective):
    assert collective(MACHINE, 10**6, 1) == reduction_choice.predict_gather(MACHINE, []) == 0
    for count, stages in STAGES.items():
        assert collective(MACHINE, 0, count) == pytest.approx(stages * ALPHA)


def test_a_short_message_goes_down_the_tree_and_a_long_one_in_parts():
    short, long = 100, 10**9
    assert model.broadcast(MACHINE, short, 16) == pytest.approx(4 * (ALPHA + short * MACHINE.G))
    assert model.broadcast(MACHINE, long, 16) == pytest.approx(8 * ALPHA + 2 * 15 / 16 * long * MACHINE.G)
    assert model.reduce(MACHINE, short, 16) == pytest.approx(4 * (ALPHA + short * (MACHINE.G + MACHINE.gamma)))
    message = ALPHA + 1000 * MACHINE.G  # between two ranks every collective is one message
    assert model.broadcast(MACHINE, 1000, 2) == pytest.approx(message)
    assert reduction_choice.predict_gather(MACHINE, [1000]) == pytest.approx(message)
    assert model.reduce(MACHINE._replace(gamma=0.0), 1000, 2) == pytest.approx(message)


@given(m=st.integers(2, 500), hosts=st.integers(1, 40))
def test_on_a_star_rank_0_receives_every_subtree_and_a_report_of_every_host(m, hosts):
    cuts = sums.rank_offsets(np.ones(m), min(hosts, m))
    trees = [sums.find_subtrees(lo, hi, m) for lo, hi in pairwise(cuts)]
    found = model.choice(tuple(cuts), together=True)
    assert found.vectors("sum") == [0, *map(len, trees)]
    count = sum(map(len, trees))
    assert seconds(found, "sum", 80, BYTES)["star"] == 80 * count + REPORT * len(trees)
    assert seconds(found, "sum", 80, BYTES._replace(G=0.0, gamma=1.0))["star"] == 80 * (count - 1)


def test_a_tree_has_a_message_a_stage_and_slices_go_to_every_rank_and_the_way_depends_on_ranks_and_size():
    message = ALPHA + (1000 + REPORT) * MACHINE.G
    tree = seconds(model.choice(range(65), together=True), "sum", 1000, MACHINE)["tree"]  # 64 hosts, 6 stages
    assert tree == pytest.approx(6 * (message + 1000 * MACHINE.gamma))
    size = 64 * BIG
    slices = 3 * size / 4 + 3 * size / 4  # what the busiest rank receives, and the server
    for reduce in ("sum", "plain sum"):
        found = seconds(model.choice(range(4), together=True), reduce, size, BYTES)
        assert slices < found["slices"] <= slices + 3 * REPORT
        assert found["star"] == 3 * size + 3 * REPORT
    few, many, single = (model.choice(cuts, together=True) for cuts in ((0, 1, 2), range(129), (0, 8)))
    assert [found.way("sum", 80) for found in (few, many)] == ["star", "tree"]
    assert [found.way("sum", 10**8) for found in (few, many, single)] == ["slices", "slices", "star"]  # of one vector
    for size, way, stages in ((80, "tree", 7), (10**8, "slices", 7 + 2)):
        assert model.reduction(MACHINE, many, size) == (seconds(many, "sum", size, MACHINE)[way], stages)


def test_hosts_divide_the_work_and_the_slowest_decides_and_without_work_there_are_overhead_and_messages():
    alone = model.round_seconds(MACHINE, Study(1, 100, 64, 1000))
    assert alone == (64 * 1000 * MACHINE.compute, 0, 0, MACHINE.o_round)
    assert alone.total == pytest.approx(64e-6 + 1e-4)
    assert max(np.diff(sums.rank_offsets(np.ones(64), 3))) == 24
    for count, clients in ((5, 16), (4, 24)):
        found = model.round_seconds(MACHINE, Study(count, 100, 64, 1000))
        assert found.compute == pytest.approx(clients * 1000 * MACHINE.compute)
    free = MACHINE._replace(L=0.0, o=0.0, G=0.0, gamma=0.0)
    assert model.round_seconds(free, Study(8, 100, 64, 0)) == (0, 0, 0, MACHINE.o_round)
    assert model.round_seconds(BYTES, Study(2, 100, 64, 0)).total == model.HEAD + 800 + REPORT + 800


@pytest.mark.parametrize(("cores", "share"), [(None, 1), (5, 1), (4, 2), (1, 5)])
def test_ranks_that_share_a_core_wait_for_each_other(cores, share):
    study = Study(5, 100, 64, 1000)
    alone, found = (model.round_seconds(MACHINE, one) for one in (study, study._replace(cores=cores)))
    spent, stages = model.reduction(MACHINE, model.choice((0, 16, 32, 48, 64), cores is not None), 800)
    assert found.compute == pytest.approx(share * alone.compute)
    assert found.server == pytest.approx(share * alone.server)
    assert found.broadcast == pytest.approx(alone.broadcast + (share - 1) * MACHINE.turn)
    assert found.reduction == pytest.approx(spent + stages * (share - 1) * MACHINE.turn)
    # where hosts compute for long, waiting ranks sleep, and hosts alone share the cores
    study = Study(5, 100, 64, 1e5, cores=cores)
    alone, found = (model.round_seconds(MACHINE, one) for one in (study._replace(cores=None), study))
    assert alone.compute > model.LONG == LONG
    assert found.compute == pytest.approx(max(1, 4 / (cores or 4)) * alone.compute)
    assert found.broadcast == alone.broadcast


@given(*(st.floats(*ends) for ends in RANGES))
def test_a_fit_finds_the_machine_that_the_times_were_made_with(alpha, o, G, gamma, o_round, compute):
    k, count, work = np.array([0.0, 1e3, 1e4, 1e5, 1e6]), np.array([1.0, 10.0, 100.0]), np.array([1e3, 1e6, 1e7])
    found = model.fit(
        (k, alpha + k * G), (count, 1e-6 + count * o * alpha), (k, 1e-6 + k * gamma), (work, o_round + work * compute)
    )
    expected = Machine(alpha * (1 - 2 * o), o * alpha, G, gamma, o_round, compute)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-13)


def test_a_fit_gives_nothing_negative_to_times_that_fall_and_finds_the_turn_of_ranks_that_share_cores():
    found = model.fit(([0, 100], [2e-6, 1e-6]), ([1, 2], [2e-6, 1e-6]), ([0, 100], [2e-6, 1e-6]))
    assert min(found) >= 0
    assert found.G == found.gamma == 0
    cases = [Study(p, n, 64, 10, cores=2) for p in (2, 4, 8) for n in (2, 10**5)]
    spent = [model.round_seconds(MACHINE, case).total for case in cases]
    assert model.fit_turn(MACHINE._replace(turn=0.0), cases, spent).turn == pytest.approx(MACHINE.turn)
    assert model.fit_turn(MACHINE, cases[:1], spent[:1]).turn == 0  # nothing waits: it cannot be known


def test_an_impossible_study_is_refused():
    with pytest.raises(ValueError, match="6 ranks are too many for 4 clients: at most 5"):
        model.round_seconds(MACHINE, Study(6, 10, 4, 1))
    with pytest.raises(ValueError, match="two different points"):
        model.line([1, 1], [2, 3])
