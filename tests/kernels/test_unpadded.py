"""Many clients of few samples are in memory without padding: the same bits, and little more memory than samples."""

import tracemalloc

import numpy as np
import pytest

import mpifed
from mpifed.data import split
from mpifed.data.sources import synthetic
from mpifed.experiment.config import experiment
from mpifed.experiment.housing import build_federation, prepare_in_process
from mpifed.federation import sums
from mpifed.federation.transport import InProcess
from mpifed.kernels import blocks, fill
from mpifed.kernels.blocks import Unpadded
from mpifed.kernels.plan import make_dense_block

EQUAL = {"name": "synthetic", "features": 7, "classes": 3, "least": 5, "most": 5, "clients": 40, "test": 0.2}
SOFTMAX, MIXED = {"data": EQUAL}, {"data": {**EQUAL, "least": 1, "most": 14}}
LOGISTIC = {"data": {"name": "gaussian", "features": 9, "samples": 9, "clients": 40}}
FEW = {"selection": {"name": "uniform", "count": 7}, "rounds": 12}
BATCHES = {"name": "fedavg", "batch_size": 2, "epochs": 2}


@pytest.mark.parametrize(
    "study",
    [
        {**SOFTMAX, "rounds": 12, "algorithm": {"name": "fedgia"}, "dtype": "float32"},
        {**MIXED, **FEW, "algorithm": BATCHES},
        pytest.param({**LOGISTIC, **FEW, "algorithm": BATCHES, "kernels": "compiled"}, marks=pytest.mark.fast),
    ],
    ids=lambda study: f"{study['data']['name']} {study['algorithm']['name']}",
)
def test_the_padding_that_is_left_out_changes_no_bit(study, monkeypatch):
    made = []
    study = {"block_bytes": 1000, "stop": {"gradient": 0.0}, **study}
    before = mpifed.run(None, study, progress=False)
    monkeypatch.setattr(blocks, "LARGE", 0)
    monkeypatch.setattr(Unpadded, "padded", lambda self, of=Unpadded.padded: made.append(self) or of(self))
    after = mpifed.run(None, study, progress=False)
    assert made
    assert after.x.tobytes() == before.x.tobytes()
    for name in ("objective", "accuracy", "grad_norm_sq"):
        assert np.array_equal(after.rounds.get(name), before.rounds.get(name), equal_nan=True)


def test_a_part_of_a_part_is_one_of_the_whole(monkeypatch):
    whole = make_dense_block(np.full(12, 5), 3, float)
    assert whole.unpadded is None
    monkeypatch.setattr(blocks, "LARGE", 0)
    whole = make_dense_block(np.full(12, 5), 3, float)
    stored = whole.unpadded.A
    stored[:] = np.random.default_rng(0).normal(size=(12, 5, 3))
    whole.b[:] = np.arange(12)[:, None]
    for first in (slice(3, 20), np.arange(3, 12)):
        for rows in (slice(2, 6), np.array([0, 5, 8]), np.arange(9) % 2 == 0):
            part = whole.part(first).part(rows)
            clients = np.arange(3, 12)[rows]
            assert part.A.shape == (len(clients), 8, 3)
            assert np.array_equal(part.A[:, :5], stored[clients])
            assert not part.A[:, 5:].any()
            assert np.array_equal(part.b[:, 0], clients)


def test_padding_is_left_out_only_where_it_is_much_of_the_memory():
    many = (10**6, 8, 20)
    assert [blocks.stores_unpadded(d, many, 4) for d in (1, 5, 6, 7, 8)] == [True, True, True, False, False]
    assert not blocks.stores_unpadded(5, (10**5, 8, 20), 4)


def test_many_clients_of_few_samples_take_little_more_memory_than_their_samples(monkeypatch):
    # what does not grow with the clients is made small, so that few of them show what does
    for module, name, value in (
        *((blocks, "LARGE", 0), (fill, "CHUNK_BYTES", 1 << 16)),
        *((synthetic, "AT_ONCE", 1 << 14), (split, "AT_ONCE", 64), (sums, "ROOM", 1 << 16)),
    ):
        monkeypatch.setattr(module, name, value)
    data = {"name": "synthetic", "clients": 40_000, "least": 5, "most": 5, "features": 20, "test": 0.0}
    study = {"data": data, "dtype": "float32", "block_bytes": 1 << 17, "selection": {"name": "uniform", "count": 10}}

    def begun(study):
        parts = prepare_in_process(
            experiment({"problem": {"name": "softmax"}, "algorithm": {"name": "fedavg"}, **study})
        )
        parts.host.join()
        fed = build_federation(experiment(study), InProcess(parts.host), parts)
        fed.begin(0)
        return fed.evaluate(fed.initial())

    begun({**study, "data": {**data, "clients": 10}})  # modules are there
    tracemalloc.start()
    found = begun(study)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.sums["objective"] > 0
    assert peak < 1.3 * data["clients"] * 5 * (20 + 1) * 4
