"""Trees of ranks, their sums of all clients, and the desk of a sweep in groups of ranks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.federation import sums
from mpifed.mpi.rank_trees import ALL, SHAPES, Route, binomial_tree, merge_single_vectors, two_level_tree
from mpifed.mpi.reduction_choice import ReductionChoice
from mpifed.mpi.world import World
from mpifed.sweeps import rank_groups as groups
from mpifed.sweeps.grid import points
from mpifed.sweeps.runs import FINISHED, PointRunner, SweepProgress

placed = st.lists(st.integers(0, 5), min_size=2, max_size=70)


def own_of(ranks, m):
    cuts = sums.rank_offsets(np.ones(m), ranks - 1)
    return [[], *(sums.find_subtrees(lo, hi, m) for lo, hi in pairwise(cuts))]


def carried(route, vectors):
    """What rank 0 has when every rank does what its stop says with the vectors of each."""
    sent = {}
    for rank in route.upwards():
        stop = route.task(rank)
        held = [*vectors[rank], *(vector for child, _ in stop.children for vector in sent[child])]
        held += [None] * len(stop.sent)
        assert [len(sent[child]) for child, _ in stop.children] == [count for _, count in stop.children]
        for a, b, place in (step for steps in stop.additions for step in steps):
            assert place >= stop.own  # a rank's own vectors are left as they are
            held[place] = held[a] + held[b]
        for number, place in stop.copies:
            held[place] = held[number]
        sent[rank] = held[len(held) - len(stop.sent) :]
    return sent[0]


@given(nodes=placed, shape=st.sampled_from(sorted(SHAPES)), extra=st.integers(0, 200))
def test_the_sum_at_rank_0_is_that_of_all_clients_to_the_bit(nodes, shape, extra):
    ranks = len(nodes)
    m = ranks - 1 + extra
    rows = np.random.default_rng(m).standard_normal((m, 1)) * 10.0 ** np.arange(m)[:, None] ** 0.5
    own, cuts = own_of(ranks, m), sums.rank_offsets(np.ones(m), ranks - 1)
    vectors = [
        [],
        *(list(sums.sum_subtrees(rows[a:b], None, a, own[r + 1])) for r, (a, b) in enumerate(pairwise(cuts))),
    ]
    (total,) = carried(Route(SHAPES[shape](nodes), own), vectors)
    assert total.tobytes() == sums.sum_subtrees(rows, None, 0, sums.find_subtrees(0, m, m))[0].tobytes()


@given(nodes=placed, shape=st.sampled_from(sorted(SHAPES)))
def test_sums_in_any_order_have_every_rank_once(nodes, shape):
    own = [[] if rank == 0 else [ALL] for rank in range(len(nodes))]
    vectors = [[] if rank == 0 else [1 << rank] for rank in range(len(nodes))]
    assert carried(Route(SHAPES[shape](nodes), own, merge_single_vectors), vectors) == [(1 << len(nodes)) - 2]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 17, 24, 100, 128, 1000, 1024])
def test_up_the_tree_rank_0_receives_a_message_a_stage_and_uneven_runs_send_a_few(ranks):
    m = 10 * ranks + 7
    route = Route(binomial_tree([0] * ranks), own_of(ranks, m))
    assert len(route.children[0]) == sums.tree_depth(ranks - 1) + 1
    assert route.height[0] - 1 <= sums.tree_depth(ranks)
    assert max(len(route.task(rank).sent) for rank in range(1, ranks)) <= 2 * sums.tree_depth(m)


def test_between_nodes_one_message_of_each_node_climbs():
    for nodes in ([r // 16 for r in range(128)], [r % 8 for r in range(128)]):
        parents = two_level_tree(nodes)
        between = [rank for rank in range(1, 128) if nodes[rank] != nodes[parents[rank]]]
        assert len(between) == 7
        assert sum(parent == 0 for parent in parents[1:]) <= 4 + 1 + 3


def test_equal_runs_of_a_power_of_two_of_hosts_send_one_vector_each():
    route = Route(binomial_tree([0] * 65), own_of(65, 256))
    assert all(len(route.task(rank).sent) == 1 for rank in range(1, 65))


def test_a_way_that_is_forced_is_taken_but_by_rows_which_have_no_slices_and_what_was_used_is_told():
    for way in ("star", "tree", "nodes", "slices"):
        choice = ReductionChoice([0, 0, 1], own_of(3, 8), way)
        assert choice.way("sum", 80) == way
        assert (choice.way("rows", 0) == way) == (way != "slices")
    choice.longest |= {"slices": 10**6, "star": 20}
    assert choice.describe_ways() == "star up to 20, slices up to 1000000"


def test_a_tree_of_nodes_is_taken_where_the_ranks_of_a_node_follow_each_other_and_vectors_are_short():
    """Elsewhere it carries more vectors than the tree of ranks."""
    own = own_of(1025, 1024)
    blocks, turns = [rank // 16 for rank in range(1025)], [rank % 64 for rank in range(1025)]
    assert ReductionChoice(blocks, own).way("sum", 80) == "nodes"
    assert ReductionChoice(turns, own).way("sum", 80) == ReductionChoice(turns, own).way("sum", 8000) == "tree"
    assert ReductionChoice(blocks, own).way("sum", 10**9) == "slices"


pytestmark = pytest.mark.mpi


class Mail:
    """A mailbox of two groups in which the other one's messages have all arrived."""

    def __init__(self, *messages):
        self.messages, self.size, self.sent = list(messages), 2, []

    def sender(self, tag):
        return 1 if self.messages else None

    def receive(self, source, tag):
        return self.messages.pop(0)

    def send(self, value, to, tag):
        self.sent.append(value)


def test_a_report_that_arrives_while_the_first_group_looks_for_a_point_is_told(tmp_path):
    todo = points({}, ["data.clients=3", "rounds=1"], ["seed=0"])
    mail = Mail((None, None, []), (0, (FINISHED, "1 round", 0.1), ["a note"]))
    runs = PointRunner(tmp_path, World(), False, SweepProgress(None, [1.0]))
    ended = list(groups.run_desk(todo, runs, World(), groups.Desk(todo, mail, runs.progress)))
    assert [(one.point, one.status) for one in ended] == [(todo[0], FINISHED)]
    assert mail.sent == [(0, False), (None, False)]
    assert runs.progress.notes == ["a note"]
