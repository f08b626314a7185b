"""A program under mpirun gets the same result on every rank, of a run, a continued run and a sweep."""

import numpy as np
import pytest

import mpifed

pytestmark = pytest.mark.mpi
X = np.arange(24.0).reshape(12, 2) % 7
ARRAYS = {"data": mpifed.arrays(X, X.sum(axis=1), 4), "problem": "least-squares", "kernels": "numpy"}
STUDY = {"data": {"name": "synthetic", "clients": 6}, "problem": "softmax", "rounds": 2}


def seen(world, result):
    """What a program may look at, as rank 0 has it too."""
    numbers = (result.status, result.path, result.cr, result.m, result.config, result.rounds["objective"].tolist())
    assert numbers == world.share(numbers)
    np.testing.assert_array_equal(result.x, world.share(result.x))
    assert result.summary() == world.share(result.summary())
    return result


def test_run_returns_it_in_memory_and_of_a_file(world, mpi_tmp_path):
    options = {"algorithm": {"name": "ditto"}, "record": {"personal": True}}
    memory = seen(world, mpifed.run(STUDY, options, progress=False, callback=lambda round, row: round == 1))
    assert (memory.status, memory.cr) == ("stopped", 1)
    np.testing.assert_array_equal(memory.personal, world.share(memory.personal))
    file = seen(world, mpifed.run(STUDY, {"evaluate.clients": True}, path=mpi_tmp_path / "out.h5", progress=False))
    assert file.path == str(mpi_tmp_path / "out.h5")
    np.testing.assert_array_equal(file.by_client["accuracy"], world.share(file.by_client["accuracy"]))


def test_it_keeps_the_arrays_of_the_program(world):
    result = mpifed.run(algorithm="newton", rounds=8, progress=False, **ARRAYS)
    assert len(result.fit().x) == 2


def test_resume_and_sweep_return_it(world, mpi_tmp_path):
    path = mpi_tmp_path / "out.h5"
    mpifed.run(STUDY, path=path, checkpoint={"keep": True}, progress=False)
    assert seen(world, mpifed.resume(path, rounds=4, progress=False)).cr == 4
    results = mpifed.sweep(STUDY, {"algorithm": ["gd", "fedavg"]}, path=mpi_tmp_path / "sweep", progress=False)
    assert [seen(world, one).config["algorithm"]["name"] for one in results] == ["gd", "fedavg"]
