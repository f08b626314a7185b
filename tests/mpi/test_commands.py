"""The commands on several ranks: rank 0 speaks and writes, all end together, also of wrong and hostile input."""

import functools
import re
import time

import h5py
import numpy as np
import pytest

import mpifed as package
from mpifed.algorithms import FedAvg
from mpifed.experiment.checkpoint import checkpoint_folder as checkpoint_of
from tests.core.test_plugins import METHODS, STUDY_PY, STUDY_TOML
from tests.helpers.commands import alone, mpifed
from tests.helpers.killed_runs import content
from tests.hostile.test_refusals import CASES, QUIET, filled, listing

pytestmark = pytest.mark.mpi(min_size=3)
SMALL = ["data.clients=6", "data.features=5", "rounds=4"]


@pytest.fixture
def folder(world, mpi_tmp_path, monkeypatch):
    """A folder with the guide's files, the current one on every rank."""
    if world.rank == 0:
        (mpi_tmp_path / "my_methods.py").write_text(METHODS, "utf-8")
        (mpi_tmp_path / "my_study.py").write_text(STUDY_PY, "utf-8")
        (mpi_tmp_path / "study.toml").write_text(STUDY_TOML, "utf-8")
        (mpi_tmp_path / "elsewhere").mkdir()
    world.meet()
    monkeypatch.chdir(mpi_tmp_path)
    return mpi_tmp_path


def refused(world, done, pattern, code=2):
    """Every rank ends with the code, rank 0 with a sentence too."""
    assert not done.out
    if world.rank:
        assert not done.err
    else:
        assert done.code == code
        assert re.fullmatch(f"mpifed: {pattern}\n", done.err), done.err


def test_only_rank_0_speaks_and_quiet_is_quiet_and_the_result_file_says_everything(world, folder):
    words = ["run", *SMALL, "selection.share=0.5", "-o", "out.h5"]
    loud, quiet = mpifed(*words), mpifed(*words, "-q", "--force")
    assert loud.code == 0
    assert loud.out.count("written to") == (world.rank == 0)
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    if world.rank:
        return
    with h5py.File("out.h5") as file:
        assert file.attrs["status"] == "finished"
        assert file.attrs["ranks"] == world.size
        assert "MPI" in file.attrs["mpi_library"].upper()
        rounds = file["rounds"]
        np.testing.assert_array_equal(rounds["round"], np.arange(5))
        np.testing.assert_array_equal(rounds["exchanges"], np.arange(5))
        np.testing.assert_array_equal(rounds["bytes_up"], np.arange(5) * 6 * 5 * 8)  # FedGiA: all 6 clients upload
        assert (np.diff(rounds["elapsed_seconds"]) > 0).all()
        assert (rounds["client_seconds"][1:] >= rounds["compute_seconds"][1:]).all()
        np.testing.assert_array_equal(file["ranks/clients"][()].sum(), 6)
        np.testing.assert_array_equal(file["ranks/clients"][0], 0)
        assert (file["ranks/mpi_calls"][()] > 0).all()
        assert (file["ranks/mpi_messages_received"][()] > 0).all()
        assert file.attrs["reduction"].startswith("star up to ")
        assert file["selection"].shape == (5, 3)
        assert (file["selection"][0] == -1).all()
        times = np.bincount(file["selection"][1:].ravel(), minlength=6)
        np.testing.assert_array_equal(times, file["clients/times_selected"])
        assert (file["clients/compute_seconds"][()] > 0).all()
        assert file["model/x"].shape == (5,)


@pytest.mark.parametrize(
    ("study", "below"),
    [
        (["algorithm=my_methods.py:GradientDescent", "algorithm.gamma=0.1", *SMALL], "."),
        (["../study.toml"], "elsewhere"),
    ],
    ids=["a file", "a study in another folder"],
)
def test_classes_of_the_guide_have_the_same_bits_on_ranks(study, below, world, folder, monkeypatch):
    monkeypatch.chdir(folder / below)
    assert mpifed("run", *study, "-q", "-o", folder / "ranks.h5").code == 0
    if world.rank == 0:
        with alone():
            assert mpifed("run", *study, "-q", "-o", folder / "alone.h5").code == 0
        assert content(folder / "ranks.h5") == content(folder / "alone.h5")


def test_a_file_that_fails_on_one_rank_only_ends_all_of_them(world, folder):
    fails = "from mpifed.mpi.communicator import Communicator\nassert Communicator().rank != 1, 'not here'\n"
    if world.rank == 0:
        (folder / "fails.py").write_text(fails + METHODS, "utf-8")
    world.meet()
    sentence = (
        '"fails.py:GradientDescent" is wrong: fails.py cannot be imported: AssertionError: not here (fails.py, line 2)'
    )
    done = mpifed("run", "algorithm=fails.py:GradientDescent", *SMALL, "-q")
    refused(world, done, re.escape(f"algorithm = {sentence}"))


def test_a_damaged_checkpoint_is_refused(world, folder):
    path = folder / "out.h5"
    assert mpifed("run", *SMALL, "-q", "-o", path).code == 0
    if world.rank == 0:
        next(checkpoint_of(path).glob("*-0.npz")).unlink()
    world.meet()
    refused(world, mpifed("resume", path, "rounds=6", "-q"), r"checkpoint file \S+ is damaged or missing.*")


def test_a_host_that_fails_leaves_a_file_that_says_so_and_can_be_resumed(world, folder, monkeypatch):
    path, whole, update = folder / "out.h5", folder / "whole.h5", FedAvg.update

    @functools.wraps(update)
    def broken(self, f, client, x, k):
        if k >= 15 and 12 in f.ids:
            raise OSError("a disk of this node is gone")
        return update(self, f, client, x, k)

    study = ["algorithm=fedavg", "selection=all", "data.clients=13", "rounds=9", "checkpoint.every_rounds=2", "-q"]
    with monkeypatch.context() as patch:
        patch.setattr(FedAvg, "update", broken)
        done = mpifed("run", *study, "-o", path)
    if world.rank:
        assert not done.err
        return
    assert done.code == 1
    assert done.err.count(f"rank {world.size - 1} on ") == 1
    assert "failed: OSError: a disk of this node is gone" in done.err
    failed = package.load(path)
    assert failed.status == "failed"
    assert "a disk of this node is gone" in failed.stop_reason
    with alone():
        assert mpifed("run", *study, "-o", whole).code == 0
        assert mpifed("resume", path, "-q").code == 0
    assert content(path) == content(whole)


TWICE = """
from mpifed.algorithms import FedAvg
class Twice(FedAvg, tag="twice"):
    def update(self, f, client, x, *args):
        super().update(f, client, x, *args)
        return super().update(f, client, x, *args)
"""


def test_the_counted_time_of_a_method_of_a_file_is_the_same_on_ranks(world, folder):
    if world.rank == 0:
        (folder / "twice.py").write_text(TWICE, "utf-8")
    world.meet()
    words = ["run", "algorithm=twice.py:Twice", *SMALL, "system.speed=1000", "-q", "-o"]
    assert mpifed(*words, "ranks.h5").code == 0
    if world.rank == 0:
        with alone():
            assert mpifed(*words, "alone.h5").code == 0
        assert content(folder / "ranks.h5") == content(folder / "alone.h5")
        result = package.load("ranks.h5")
        assert "a rehearsal of 3 rounds with 6 of 6 clients has counted" in result.attrs["notes"]
        assert result.rounds["simulated_seconds"][-1] > 0


def test_numbers_that_are_not_finite_end_the_run_and_name_the_client(world, folder):
    words = ["algorithm=fedavg", "algorithm.step=constant", "algorithm.step.a=1e200", "stop.diverged=0", "rounds=9"]
    done = mpifed("run", *words, "data.clients=13", "-q", "-o", "out.h5")
    sentence = r"the (reply|loss or gradient) of client \d+ is not finite in round \d, .* look at algorithm\.step"
    refused(world, done, sentence, 1)


def test_a_point_of_a_sweep_that_fails_does_not_stop_the_rest(world, folder):
    """One diverges, one has not so many clients to choose; both are failures of these points alone."""
    study = ["algorithm=fedavg", "data.clients=6", "data.features=5", "rounds=4", "stop.gradient=0.0"]
    words = [*study, "algorithm.step=constant", "--zip", "algorithm.step.a=1e-3,9.0,1e-3;selection.count=2,2,70"]
    done = mpifed("sweep", *words, "--grid", "seed=0:2", "-o", "ranks")
    if world.rank:
        assert (done.out, done.err) == ("", "")
        return
    assert done.code == 1
    failed = re.findall(r"^mpifed: (\S+)\.h5  failed: (.*)$", done.err, re.M)
    points = ["a=0.001,seed=0,count=70", "a=9.0,seed=0,count=2", "a=9.0,seed=1,count=2"]
    assert sorted(name for name, _ in failed) == points
    assert any("f diverges" in why for _, why in failed)
    assert any("selection.count = 70 is wrong" in why for _, why in failed)
    for sentence in (
        r"2 points failed: selection\.count = 70 is wrong: .*; first: a=0.001,seed=0,count=70",
        r"2 of 6 finished, 4 failed: a=\S+; .*; run the same command again to continue",
    ):
        assert re.search(f"^mpifed: {sentence}$", done.err, re.M)
    assert done.out.count("finished (rounds: 4)") == 2
    name = folder / "ranks" / "a=0.001,seed=1,count=2.h5"
    point = ["algorithm.step=constant", "algorithm.step.a=1e-3", "seed=1", "selection.count=2"]
    with alone():
        assert mpifed("run", *study, *point, "-q", "-o", "alone.h5").code == 0
    assert content(name) == content(folder / "alone.h5")
    assert package.load(name).attrs["ranks"] == world.size


def test_more_ranks_than_a_point_can_use_are_one_sentence(world, folder):
    few = world.size - 2
    done = mpifed("sweep", "data.features=5", "--grid", f"data.clients=9,{few}")
    refused(world, done, f"{world.size} ranks are too many for point clients={few} of {few} clients?: start at most .*")
    assert not (folder / "results").exists()


SECONDS = 20
HOSTILE = ["wrong table", "wrong strangers", "wrong no recording", "wrong few later", "key 7", "command 39"]
HOSTILE += ["study braces.toml", "replay objects.npz", "run endless.h5", "run external.h5", "run bomb.npz"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder of hostile files, the same one on every rank."""
    from mpifed.mpi.communicator import Communicator

    world = Communicator()
    return world.share(filled(tmp_path_factory.mktemp("hostile")) if world.rank == 0 else None)


@pytest.mark.parametrize("name", [*HOSTILE, "more ranks than clients"])
def test_wrong_and_hostile_input(name, world, hostile):
    few = [*QUIET, f"data.clients={world.size - 2}"], "ranks are too many for .*start at most"
    words, told = few if name == "more ranks than clients" else CASES[name]
    world.meet()  # until rank 0 has removed the file that claimed a name
    before = listing(hostile)
    world.meet()
    begun = time.monotonic()
    done = mpifed(*words, cwd=hostile)
    assert time.monotonic() - begun < SECONDS
    world.meet()
    assert done.code == 2, done.err
    refused(world, done, r"[^\n]*")
    assert world.rank or re.search(told, done.err), done.err
    world.meet()  # rank 0 may still give back the name that it had claimed
    assert listing(hostile) == before
