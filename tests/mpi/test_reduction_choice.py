"""The way of replies is the fastest by the LogGP model, whose times count messages, bytes and additions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.federation import sums
from mpifed.mpi.plan import BIG
from mpifed.mpi.rank_trees import REPORT
from mpifed.mpi.reduction_choice import Link, ReductionChoice, predict_gather, predict_reduce_scatter

LINK = Link(L=1e-6, o=2e-7, G=1e-10, gamma=5e-11)
ALPHA = LINK.L + 2 * LINK.o
BYTES = Link(L=0.0, o=0.0, G=1.0, gamma=0.0)  # its seconds are bytes


def choice(offsets, together=True):
    """The ways of replies from hosts with these runs of clients, all on one machine or each on its own."""
    trees = [sums.find_subtrees(lo, hi, offsets[-1]) for lo, hi in pairwise(offsets)]
    return ReductionChoice([0] * len(offsets) if together else range(len(offsets)), [[], *trees])


def seconds(ways, reduce, size, link):
    return ways.seconds(reduce, size, lambda child, parent: link)


def test_collectives_take_a_latency_a_stage_and_one_rank_sends_nothing():
    assert predict_reduce_scatter(LINK, 10**6, 1) == predict_gather(LINK, []) == 0
    for ranks, stages in {1: 0, 2: 1, 3: 2, 5: 3, 8: 3, 1024: 10}.items():
        assert predict_reduce_scatter(LINK, 0, ranks) == pytest.approx(stages * ALPHA)
    assert predict_gather(LINK, [1000]) == pytest.approx(ALPHA + 1000 * LINK.G)


@given(m=st.integers(2, 500), hosts=st.integers(1, 40))
def test_on_a_star_rank_0_receives_every_subtree_and_a_report_of_every_host(m, hosts):
    offsets = sums.rank_offsets(np.ones(m), min(hosts, m))
    trees = [sums.find_subtrees(lo, hi, m) for lo, hi in pairwise(offsets)]
    ways, count = choice(offsets), sum(map(len, trees))
    assert ways.vectors("sum") == [0, *map(len, trees)]
    assert seconds(ways, "sum", 80, BYTES)["star"] == 80 * count + REPORT * len(trees)
    assert seconds(ways, "sum", 80, BYTES._replace(G=0.0, gamma=1.0))["star"] == 80 * (count - 1)


def test_a_tree_has_a_message_a_stage_and_slices_have_the_bytes_of_the_busiest_rank():
    message = ALPHA + (1000 + REPORT) * LINK.G
    tree = seconds(choice(range(65)), "sum", 1000, LINK)["tree"]  # 64 hosts, 6 stages
    assert tree == pytest.approx(6 * (message + 1000 * LINK.gamma))
    size = 64 * BIG
    slices = 3 * size / 4 + 3 * size / 4  # what the busiest rank receives, and the server
    for reduce in ("sum", "plain sum"):
        found = seconds(choice(range(4)), reduce, size, BYTES)
        assert slices < found["slices"] <= slices + 3 * REPORT
        assert found["star"] == 3 * size + 3 * REPORT


def test_the_fastest_way_is_taken_and_depends_on_ranks_and_size():
    few, many, single = choice((0, 1, 2)), choice(range(129)), choice((0, 8))
    assert [ways.way("sum", 80) for ways in (few, many)] == ["star", "tree"]
    assert [ways.way("sum", 10**8) for ways in (few, many, single)] == ["slices", "slices", "star"]  # of one vector
    for ways in (few, many, choice(range(17), together=False)):
        for size in (80, 10**8):
            found = ways.seconds("sum", size, ways.link)
            assert found[ways.way("sum", size)] == min(found.values())
