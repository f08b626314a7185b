"""Same seed, same bits: in one process and on any number of ranks, also where a run is resumed."""

import re

import h5py
import numpy as np
import pytest

from mpifed.engine import block_sizes
from mpifed.mpi import plan
from mpifed.results.result import load
from tests.helpers.commands import alone, mpifed
from tests.helpers.killed_runs import content
from tests.helpers.studies import STUDIES, endless

pytestmark = pytest.mark.mpi
QUICK = {  # studies of different kinds, beside those of the tests below; the others are slow
    *("dgd", "feddcd, importance", "fedgia, long", "fedavg, flaky", "fedadmm, masked"),
    *("fedavg, trimmed", "flame, asynchronous", "newton, cox"),
}


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


def run(*words):
    done = mpifed(*words, "-q")
    assert (done.code, done.err) == (0, "")


def compared(study, world, folder, ranks=(), one=()):
    """A study on all ranks and in one process, each with words of its own, has the same bits."""
    run("run", *study, *ranks, "-o", folder / "ranks.h5")
    if world.rank == 0:
        with alone():
            run("run", *study, *one, "-o", folder / "alone.h5")
        assert content(folder / "ranks.h5") == content(folder / "alone.h5")
        with h5py.File(folder / "ranks.h5") as file:
            assert file.attrs["ranks"] == world.size


@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in STUDIES])
def test_ranks_do_not_change_a_bit(name, world, mpi_tmp_path):
    compared(STUDIES[name], world, mpi_tmp_path)


@pytest.mark.parametrize("more", ["selection=all", "asynchronous.arrivals=2"])
def test_neither_do_ranks_where_clients_come_and_go(more, world, mpi_tmp_path):
    if world.rank == 0:
        (mpi_tmp_path / "trace.csv").write_text("client,from,until\n0,0,2\n1,1,3\n2,0,1.5\n3,2.5,4\n")
    words = ["algorithm=fedavg", "data.clients=5", "rounds=8", "system.latency=0.2", "system.speed=100", more]
    compared([*words, f"system.availability={mpi_tmp_path / 'trace.csv'}"], world, mpi_tmp_path)


@pytest.mark.parametrize("name", ["fedavg", *map(slow, ["fedadmm", "flame"])])
def test_neither_do_ranks_with_blocks_of_another_size(name, world, mpi_tmp_path):
    compared(STUDIES[name], world, mpi_tmp_path, ["block_bytes=1"], ["block_bytes=100_000_000"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedavg", "fedgia"])
def test_neither_do_ranks_of_which_each_measures_the_size_of_its_blocks(name, world, mpi_tmp_path, monkeypatch):
    monkeypatch.setattr(block_sizes, "SIZES", tuple(1 << k for k in range(8, 16)))
    monkeypatch.setattr(block_sizes, "SECONDS", 0.0)
    compared(STUDIES[name], world, mpi_tmp_path, ["rounds=60"], ["rounds=60", "block_bytes=2_000"])


@pytest.mark.parametrize(
    "name", ["fedgia", *map(slow, ["fedavg, mini-batches", "scaffold", "flame, biased", "fedepm"])]
)
def test_neither_does_memory_that_ranks_share(name, world, mpi_tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "BIG", 1)
    compared(STUDIES[name], world, mpi_tmp_path)


RESUMED = ["flame, biased", "fedepm, long", "fedadmm, flaky", "dgd, redrawn", "fedgia-graph, redrawn", "gd, clipped"]
RESUMED += ["lt-admm, redrawn", "fedepm-graph, clipped"]


@pytest.mark.parametrize("name", ["fedadmm", "gradient-tracking, lossy", *map(slow, RESUMED)])
def test_a_run_is_resumed_by_more_and_by_fewer_ranks(name, world, mpi_tmp_path):
    whole, up, down = (mpi_tmp_path / f"{part}.h5" for part in ("whole", "up", "down"))
    if world.rank == 0:
        with alone():
            run("run", *endless(name), "rounds=6", "-o", whole)
            run("run", *endless(name), "rounds=3", "-o", up)
    world.meet()
    run("run", *endless(name), "rounds=3", "-o", down)
    run("resume", up, "rounds=6")
    if world.rank == 0:
        with alone():
            run("resume", down, "rounds=6")
        assert content(up) == content(down) == content(whole)
        for path, ranks in ((up, world.size), (down, 1)):
            with h5py.File(path) as file:
                assert file.attrs["ranks"] == ranks
                assert re.fullmatch(rf"\S+ from round 3 on {ranks} ranks?", file.attrs["resumed"])


@pytest.mark.fast
def test_neither_do_ranks_with_compiled_kernels(world, mpi_tmp_path):
    compared([*STUDIES["fedadmm"], "kernels=compiled"], world, mpi_tmp_path)
    if world.rank == 0:
        one, other = (load(mpi_tmp_path / f"{name}.h5").attrs for name in ("ranks", "alone"))
        assert one["kernels"] == other["kernels"] == "compiled"
        assert one["numba"] == other["numba"]


CLASSES = "data=synthetic data.clients=12 data.features=4 data.classes=3 data.least=20 data.most=40 data.test=0.3"
FLAME = "problem=softmax algorithm=flame algorithm.lr=0.1 algorithm.batch_size=5 evaluate.clients=true rounds=4"


@pytest.mark.parametrize("count", [slow(3), 1])
def test_neither_do_ranks_change_numbers_of_clients_also_where_one_has_none_that_never_trains(
    count, world, mpi_tmp_path
):
    compared([*f"{CLASSES} {FLAME}".split(), f"evaluate.unseen={count}"], world, mpi_tmp_path)
    if world.rank == 0:
        one, several = (load(mpi_tmp_path / f"{name}.h5") for name in ("alone", "ranks"))
        assert len(one.unseen["data_client"]) == count
        for found, right in ((several.unseen, one.unseen), (several.by_client, one.by_client)):
            assert found.keys() == right.keys()
            assert all(found[name].tobytes() == right[name].tobytes() for name in right)


def test_a_run_that_started_from_a_model_is_resumed_by_one_rank_without_it(world, mpi_tmp_path):
    """The checkpoint has all that it needs; and the file may have become another one by then."""
    whole, part, model = (mpi_tmp_path / name for name in ("whole.h5", "part.h5", "x.npz"))
    study = ["data.clients=6", "data.features=5", f"start={model}"]
    if world.rank == 0:
        np.savez(model, x=[0.5, -1.0, 2.0, 0.25, 3.0])
    world.meet()
    run("run", *study, "rounds=4", "-o", part)
    if world.rank == 0:
        with alone():
            run("run", *study, "rounds=7", "-o", whole)
            model.unlink()
            run("resume", part, "rounds=7")
        assert content(part) == content(whole)


@pytest.mark.parametrize("name", ["scaffold, float32", *map(slow, ["fedgia", "fedadmm", "fedavg", "flame"])])
def test_plain_sums_differ_by_rounding_only(name, world, mpi_tmp_path):
    exact, plain, several = (mpi_tmp_path / f"{part}.h5" for part in ("exact", "plain", "several"))
    run("run", *STUDIES[name], "reproducible=false", "-o", several)
    if world.rank:
        return
    with alone():
        run("run", *STUDIES[name], "-o", exact)
        run("run", *STUDIES[name], "reproducible=false", "-o", plain)
    with h5py.File(exact) as file:
        x = file["model/x"][()]
    for path in (plain, several):
        with h5py.File(path) as file:
            other, seconds = file["model/x"][()], file["rounds/compute_seconds"][1:]
        np.testing.assert_allclose(other, x, rtol=1e-9 if x.dtype == np.float64 else 1e-3, atol=1e-6 * abs(x).max())
        assert (seconds > 0).all()
