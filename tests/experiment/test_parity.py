"""Same seed, same bits: in one process and on any number of ranks."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from mpifed.algorithms.base import Algorithm
from tests.helpers.commands import mpifed

PLAIN = ["data.clients=13", "data.features=23", "rounds=6", "stop.diverged=0"]
LOGISTIC = ["data=gaussian", "data.clients=13", "data.samples=11", "data.features=7", "rounds=5"]
DIGITS = ["data=digits", "data.clients=13", "rounds=4", "stop.gradient=0.0"]
LONG = ["data=gaussian", "data.clients=13", "data.samples=3", "data.features=20011", "rounds=3"]  # reduced in slices
STUDIES = {name: [f"algorithm={name}", *PLAIN] for name in Algorithm.choices} | {
    "fedgia, gram": ["algorithm.H=gram", "selection=cover", *PLAIN],
    "feddcd": ["algorithm=feddcd", *LOGISTIC],
    "accfeddcd": ["algorithm=accfeddcd", *LOGISTIC],
    "fedepm": ["algorithm=fedepm", *LOGISTIC],
    "sfedavg": ["algorithm=sfedavg", *LOGISTIC],
    "sfedprox": ["algorithm=sfedprox", *LOGISTIC],
    "fedavg, mini-batches": ["algorithm=fedavg", "algorithm.batch_size=5", "algorithm.epochs=2", *PLAIN],
    "flame": ["algorithm=flame", *DIGITS],
    "flame, biased": ["algorithm=flame", "selection=biased", "selection.share=0.3", "selection.candidates=7", *DIGITS],
    "fedadmm-deep, network": ["algorithm=fedadmm-deep", "problem=mlp", "problem.hidden=[9]", *DIGITS],
    "fedgia, long": ["algorithm=fedgia", *LONG],
    "fedepm, long": ["algorithm=fedepm", *LONG],
    "sfedprox, long": ["algorithm=sfedprox", *LONG, "dtype=float32"],
    "scaffold, float32": ["algorithm=scaffold", "algorithm.batch_size=4", "dtype=float32", *PLAIN],
}

MANY = ("fedgia", "fedadmm", "fedepm, long", "scaffold, float32")


def bits(path):
    with h5py.File(path) as file:
        rounds = file["rounds"]
        return {name: rounds[name][()].tobytes() for name in ("objective", "grad_norm_sq")} | {
            "x": file["model/x"][()].tobytes(),
            "selection": file["selection"][()].tobytes(),
            "ledger": [
                rounds[name][()].tobytes() for name in ("exchanges", "uploads", "downloads", "bytes_up", "bytes_down")
            ],
        }


@pytest.mark.parametrize("name", STUDIES)
def test_ranks_do_not_change_a_bit(name, tmp_path):
    found = {}
    for ranks in (None, 1, 2, 3, 5) + (8,) * (name in MANY):
        path = tmp_path / f"{ranks}.h5"
        done = mpifed("run", *STUDIES[name], "-q", "-o", path, ranks=ranks)
        assert done.code == 0, done.err
        found[ranks] = bits(path)
    assert all(one == found[None] for one in found.values())


@pytest.mark.parametrize("name", ["fedgia", "fedadmm", "fedavg", "flame", "scaffold, float32"])
def test_plain_sums_differ_by_rounding_only(name, tmp_path):
    found = {}
    for ranks, flag in ((None, "true"), (None, "false"), (4, "false")):
        path = tmp_path / f"{ranks}-{flag}.h5"
        done = mpifed("run", *STUDIES[name], f"reproducible={flag}", "-q", "-o", path, ranks=ranks)
        assert done.code == 0, done.err
        with h5py.File(path) as file:
            found[ranks, flag] = file["model/x"][()], file["rounds/compute_seconds"][1:]
    exact, _ = found[None, "true"]
    for x, seconds in found.values():
        np.testing.assert_allclose(x, exact, rtol=1e-9 if x.dtype == np.float64 else 1e-3, atol=1e-6 * abs(exact).max())
        assert (seconds > 0).all()
