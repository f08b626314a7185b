"""The commands as a user meets them."""

import argparse
import importlib
import inspect
import re
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

import mpifed as package
from mpifed.cli.arguments import COMMANDS, parser, starts_runs
from mpifed.experiment.config import DEFAULT_STUDY
from tests.helpers.commands import background, execute, mpifed, mpirun

SMALL = ["data.clients=6", "data.features=5", "rounds=4"]


def started(*words, **options):
    """A process of a command that runs beside others."""
    return background([sys.executable, "-m", "mpifed", *words], **options)


def test_without_arguments_the_default_study_runs(tmp_path):
    done = mpifed(cwd=tmp_path)
    assert done.code == 0, done.err
    assert "fedgia" in done.out
    result = package.load(tmp_path / "mpifed-fedgia-linreg-noniid-1.h5")
    assert result.status == "finished"
    assert result.config["data"]["clients"] == 128
    assert 15 <= result.cr <= 40  # enough to see the method at work
    assert np.all(np.diff(result.rounds["objective"]) < 1e-12)
    assert result.rounds["grad_norm_sq"][-1] <= DEFAULT_STUDY["stop"]["gradient"]


def test_a_name_that_is_free_is_found_and_given_back_by_a_run_that_is_refused(tmp_path):
    assert mpifed("run", *SMALL, "selection.count=70", "-q", cwd=tmp_path).code == 2
    assert not list(tmp_path.iterdir())
    for n in (1, 2):
        assert mpifed("run", *SMALL, "-q", cwd=tmp_path).code == 0
        assert (tmp_path / f"mpifed-fedgia-linreg-noniid-{n}.h5").exists()


@pytest.mark.slow
def test_runs_that_start_at_once_take_names_of_their_own(tmp_path):
    """The name of each is taken before any of them has written a result."""
    runs = [started("run", *SMALL, "-q", cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(4)]
    ends = [(run.communicate(timeout=60)[1], run.returncode) for run in runs]
    assert ends == [("", 0)] * 4
    found = sorted(tmp_path.glob("*.h5"))
    assert [path.name for path in found] == [f"mpifed-fedgia-linreg-noniid-{n}.h5" for n in (1, 2, 3, 4)]
    assert [package.load(path).status for path in found] == ["finished"] * 4


def test_an_experiment_file_may_have_any_name(tmp_path):
    (tmp_path / "runn").write_text("rounds = 1\ndata.clients = 3\ndata.features = 2")
    assert mpifed("runn", "-q", "-o", "out.h5", cwd=tmp_path).code == 0
    assert mpifed("run", "runn", "-q", "-o", "again.h5", cwd=tmp_path).code == 0


def test_the_recorded_configuration_runs_again(tmp_path):
    assert mpifed("run", *SMALL, "algorithm=fedprox", "algorithm.step.a=0.002", "-q", "-o", tmp_path / "a.h5").code == 0
    first = package.load(tmp_path / "a.h5")
    (tmp_path / "again.toml").write_text(first.attrs["config"])
    assert mpifed("run", tmp_path / "again.toml", "-q", "-o", tmp_path / "b.h5").code == 0
    np.testing.assert_array_equal(first.x, package.load(tmp_path / "b.h5").x)


FAULTY = """
from mpifed.algorithms.fedgia import FedGiA
class Broken(RuntimeError): pass
class Mine(FedGiA, tag="mine"):
    def update(self, f, client, *args):
        if 5 in f.ids:
            raise Broken("the client's disk is gone")
        return super().update(f, client, *args)
"""
COMMAND = ["-m", "mpifed", "run", *SMALL, "algorithm=faulty.py:Mine", "kernels=numpy", "-q", "-o", "out.h5"]
PYTHON = ["-c", "import mpifed; mpifed.run({'data.clients': 6}, algorithm='faulty.py:Mine', path='out.h5')"]


@pytest.mark.parametrize(
    ("ranks", "words"),
    [(None, COMMAND), *(pytest.param(3, call, marks=pytest.mark.slow) for call in (COMMAND, PYTHON))],
)
def test_an_error_on_one_rank_ends_all_of_them_promptly_with_one_message(ranks, words, tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY)
    done = (
        execute(mpirun(ranks, *words), cwd=tmp_path) if ranks else mpifed(*words[2:], cwd=tmp_path)
    )  # within its limit: the other ranks would wait for ever
    assert done.code != 0
    assert done.err.count("fails in line 7: Broken: the client's disk is gone") == 1
    # not always at the start of a line: Open MPI mixes in its own words
    assert re.search(r"the client method update of faulty.py fails in line 7: Broken", done.err), done.err
    assert not (tmp_path / "out.h5").exists()  # for it is found in round 1


def test_a_signal_lets_runs_finish_and_ends_every_other_command():
    """The parser knows who carries out a command; ``runs`` is asked before the parser is imported."""
    (commands,) = (one.choices for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    assert set(commands) == set(COMMANDS)
    for name, command in commands.items():
        file, _, act = command.get_default("act").partition(":")
        carried_out = getattr(importlib.import_module(f"mpifed.cli.{file}"), act)
        by_all_ranks = "world" in inspect.signature(carried_out).parameters
        assert starts_runs([name, "seed=1"]) == by_all_ranks, name
    assert all(starts_runs(line.split()) for line in ("", "study.toml", "seed=1 -q", "-q"))
    others = ("--version", "-h", "sweep --grid seed=0:2 --dry-run", "sweep --slurm")
    assert not any(starts_runs(line.split()) for line in others)


def test_a_signal_ends_certify_at_once(tmp_path):
    (tmp_path / "slow.py").write_text(
        'import pathlib, time\nimport mpifed\nclass Slow(mpifed.extend.Data):\n    mark: str = ""\n'
        "    def load(self, seed, dtype):\n        pathlib.Path(self.mark).touch()\n        time.sleep(300)\n"
    )
    ends = {"SIGTERM": -signal.SIGTERM, "SIGINT": 1}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background processes ignore it
    words = ("certify", "data=slow.py:Slow")
    processes = {name: started(*words, f"data.mark={name}", cwd=tmp_path, preexec_fn=heard) for name in ends}
    deadline = time.monotonic() + 90
    while not all((tmp_path / name).exists() for name in ends):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for name, process in processes.items():
        process.send_signal(getattr(signal, name))
    assert {name: process.wait(60) for name, process in processes.items()} == ends


def test_a_launcher_of_another_library_is_refused(tmp_path):
    done = mpifed("run", *SMALL, cwd=tmp_path, PMI_SIZE="4", PMI_RANK="0")
    assert done.code == 2
    assert re.search("4 processes.*mpirun", done.err)
    assert not list(tmp_path.iterdir())


NO_LIBRARY = {"MPI4PY_LIBMPI": "/no/libmpi.so"}


def test_without_a_launcher_no_mpi_library_is_needed(tmp_path):
    for launched in ({}, {"PMI_SIZE": "1", "PMI_RANK": "0"}):
        words = ["run", *SMALL, "kernels=numpy", "-q", "-o", "out.h5", "--force"]
        done = mpifed(*words, cwd=tmp_path, **NO_LIBRARY, **launched)
        assert done.code == 0, done.err
        assert launched or package.load(tmp_path / "out.h5").attrs["mpi_library"] == "none"


@pytest.mark.parametrize(
    ("size", "rank"),
    [
        ("PMI_SIZE", "PMI_RANK"),
        pytest.param("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", marks=pytest.mark.slow),
        pytest.param("PALS_SIZE", "PALS_RANKID", marks=pytest.mark.slow),
    ],
)
def test_several_processes_without_an_mpi_library_are_told_so_by_rank_0(size, rank, tmp_path):
    told = 'mpifed: the launcher started 4 processes, but mpi4py finds no MPI library .*pip install "mpifed.mpich."'
    for number in ("0", "1"):
        done = mpifed("run", *SMALL, cwd=tmp_path, **NO_LIBRARY, **{size: "4", rank: number})
        assert done.code == 2
        assert re.match(told, done.err) if number == "0" else not done.err
        assert len(done.err.splitlines()) <= 1
        assert not list(tmp_path.iterdir())
