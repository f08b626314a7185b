"""Sizes of blocks that the first rounds of a run measure: which of them stays, and that no bit depends on it."""

import functools
from types import SimpleNamespace

import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.engine import block_sizes
from mpifed.engine.block_sizes import BlockSizes, search
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.progress import Progress
from mpifed.experiment.resume import resume
from mpifed.experiment.run import start
from mpifed.federation.host import Host

OWN = 1 << 20  # bytes of a block before anything is measured
TABLE = {  # clients of 512 KB: one in the smallest block, 32 in the largest
    "data": {"name": "gaussian", "clients": 32, "samples": 64, "features": 1024},
    "problem": "logistic",
    "algorithm": {"name": "fedavg", "k0": 1},
    "selection": "all",
    "evaluate": {"every": 7},
    "kernels": "numpy",
}
RAGGED = {"name": "linreg-noniid", "clients": 60, "features": 5}


def walked(costs, first, later=None, spread=()):
    """The position where a search ends, its share, and the positions that it asked for."""
    trials, asked = search(len(costs), first), []
    position = next(trials)
    while True:
        asked.append(position)
        cost = (later or costs if asked.count(position) > 1 else costs)[position]
        try:
            position = trials.send([cost * (1 + off) for off in (0, *spread)])
        except StopIteration as end:
            return *end.value, asked


@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("best", range(7))
def test_a_search_finds_the_least_of_costs_that_fall_and_rise_and_asks_for_few(first, best):
    costs = [1 + abs(k - best) for k in range(7)]
    found, share, asked = walked(costs, first)
    assert (found, share) == (best, costs[best] / costs[first])
    assert len(set(asked)) <= 6


def test_the_first_size_stays_where_others_are_hardly_faster_or_rounds_become_cheaper_or_differ_more_than_sizes():
    assert walked([1.0, 0.97, 0.96, 1.0], 0)[:2] == (0, 1.0)
    assert walked([1.0, 0.97, 0.94, 1.0], 0)[:2] == (2, 0.94)
    costs = [1.0, 0.9, 0.8, 0.7]
    assert walked(costs, 0, later=[0.7] * 4)[:2] == walked(costs, 0, spread=[-0.3, 0.3, -0.3, 0.3])[:2] == (0, 1.0)
    assert walked(costs, 0)[:2] == walked(costs, 0, spread=[-0.1, 0.1, -0.1, 0.1])[:2] == (3, 0.7)


@pytest.fixture
def clock(monkeypatch):
    """A clock for which a block costs a second, and so does each client beyond ``most`` of them."""
    found = SimpleNamespace(now=0.0, most=8, sizes=[], looked_at=0)
    update = FedAvg.update

    @functools.wraps(update)
    def slow(self, f, *args):
        found.sizes.append(len(f))
        found.now += 1 + max(0, len(f) - found.most)
        return update(self, f, *args)

    def look():
        found.looked_at = len(found.sizes)
        return found.now

    monkeypatch.setattr(FedAvg, "update", slow)
    monkeypatch.setattr(block_sizes, "time", SimpleNamespace(thread_time=look))
    size = block_sizes.BlockSize
    monkeypatch.setattr("mpifed.experiment.prepare.choose_block_size", lambda wanted: size(wanted or OWN, "because"))
    return found


def played(**changes):
    return start(Job(experiment(TABLE | changes))).result()


def test_the_first_rounds_try_sizes_and_the_fastest_stays_and_is_recorded(clock):
    """Blocks of eight clients are the fastest: each block costs a second, and so does a client beyond them."""
    result = played(rounds=60)
    assert result.attrs["block_bytes"] == 1 << 22
    said = "in the first rounds they took 0.25 of the time of blocks of 1,048,576 bytes"
    assert result.attrs["block_bytes_reason"] == said
    assert result.ranks["block_bytes"].tolist() == [1 << 22]
    assert {2, 4, 8, 32} <= set(clock.sizes)
    assert set(clock.sizes[-100:]) == {8}
    assert clock.looked_at < len(clock.sizes) - 100  # nobody measures any more


def test_a_size_that_none_is_faster_than_stays(clock):
    clock.most = 2
    attrs = played(rounds=60).attrs
    assert attrs["block_bytes"] == OWN
    assert attrs["block_bytes_reason"] == "because, and no other size was faster in the first rounds"
    assert set(clock.sizes[-100:]) == {2}


@pytest.mark.parametrize("changes", [{"rounds": 9}, {"rounds": 20, "block_bytes": OWN}], ids=["few rounds", "set"])
def test_nothing_is_tried_in_short_runs_and_where_a_size_is_set(clock, changes):
    assert played(**changes).attrs["block_bytes"] == OWN
    assert set(clock.sizes) == {2}


class Own(FedAvg):
    """A method of a user's own."""


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": Own()},
        {"data": RAGGED, "problem": "least-squares", "algorithm": "fednl"},
        {"asynchronous": {"arrivals": 3}, "system": {"speed": 1e9}},
    ],
    ids=["own", "second derivatives", "asynchronous"],
)
def test_nothing_is_tried_where_order_or_bits_could_depend_on_it(changes, monkeypatch):
    monkeypatch.setattr(BlockSizes, "begin", lambda self: pytest.fail("sizes are tried"))
    assert mpifed.run(TABLE | {"rounds": 10} | changes, progress=None).cr == 10


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"data": RAGGED | {"features": 300}, "problem": "least-squares", "algorithm": "fedgia"},
        {"selection": {"name": "uniform", "count": 15}, "algorithm": {"name": "scaffold", "batch_size": 8}},
        pytest.param(
            {"data": {"name": "images", "clients": 30, "size": 12}, "problem": "softmax", "dtype": "float32"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["fedavg", "ragged", "selected, mini-batches", "softmax, test samples"],
)
def test_no_bit_depends_on_what_is_tried(changes, monkeypatch):
    """Every size is tried here, one after the other."""
    cuts, lay = [], Host.index_blocks
    monkeypatch.setattr(Host, "index_blocks", lambda host: lay(host) or cuts.append(len(host.blocks)))
    monkeypatch.setattr(block_sizes, "SIZES", tuple(1 << k for k in range(12, 25)))
    monkeypatch.setattr(block_sizes, "SECONDS", 0.0)
    monkeypatch.setattr(block_sizes, "search", all_of_them)
    result = played(rounds=20, **changes)
    assert len(set(cuts)) > 3
    forced = played(rounds=20, block_bytes=OWN, **changes)
    for column in ("objective", "grad_norm_sq", *({"accuracy"} & result.rounds.keys())):
        assert result.rounds[column].tobytes() == forced.rounds[column].tobytes()
    assert result.x.tobytes() == forced.x.tobytes()


@functools.cache
def whole_run():
    return played(rounds=20, block_bytes=OWN)


@pytest.mark.parametrize("until", [3, *[pytest.param(k, marks=pytest.mark.slow) for k in (1, 8, 15)]])
def test_a_run_that_ends_while_sizes_are_tried_goes_on_with_the_same_bits(until, tmp_path):
    whole = whole_run()
    path = tmp_path / "out.h5"
    part = start(Job(experiment(TABLE | {"rounds": 20, "stop": {"gradient": 0.0}}), path), progress=Until(until))
    assert part.ended[0] == "stopped"
    table, saved, before = resume(path, [])
    result = start(Job(experiment(table), path, True, saved, before)).result()
    assert (saved.round, result.cr) == (until, 20)
    assert result.x.tobytes() == whole.x.tobytes()
    assert result.rounds["objective"].tobytes() == whole.rounds["objective"].tobytes()


class Until(Progress):
    """Asks a run to stop after a round."""

    def __init__(self, round):
        super().__init__(None)
        self.round = round

    def show(self, round, rounds, row):
        self.stop = "asked to" if round == self.round else None


def all_of_them(count, start):
    """A search that goes to every position and stays at the last one."""
    for position in (start, *range(count)):
        costs = yield position
        assert costs
    return count - 1, 0.5
