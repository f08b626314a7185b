"""Nothing is lost: a run that is stopped, killed or fails resumes from its checkpoint, with the same bits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from mpifed.experiment.checkpoint import STATE, find, folder
from tests.experiment.conftest import run, status
from tests.helpers.commands import ROOT, SETTINGS, execute, mpirun
from tests.helpers.killed_runs import STUDY as KILLED
from tests.helpers.killed_runs import children, content, finish, start
from tests.helpers.studies import SEVERAL, endless

KILLS = "tests.helpers.killed_runs"


@pytest.mark.parametrize("name", SEVERAL)
def test_a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(name, tmp_path):
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    run("run", *endless(name), "rounds=7", "-q", "-o", whole)
    run("run", *endless(name), "rounds=3", "checkpoint.keep=true", "-q", "-o", part)
    run("resume", part, "rounds=7", "checkpoint.keep=false", "-q")
    assert content(part) == content(whole)
    assert not folder(part).exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedadmm", "fedepm, long", "flame, biased"])
def test_any_number_of_ranks_goes_on_from_the_checkpoint_of_four(name, tmp_path):
    whole = tmp_path / "whole.h5"
    run("run", *endless(name), "rounds=6", "-q", "-o", whole)
    for ranks in (2, 3, 5):
        part = tmp_path / f"{ranks}.h5"
        run("run", *endless(name), "rounds=3", "checkpoint.keep=true", "-q", "-o", part, ranks=4)
        run("resume", part, "rounds=6", "checkpoint.keep=false", "-q", ranks=ranks)
        assert content(part) == content(whole), ranks
        with h5py.File(part) as file:
            assert file.attrs["ranks"] == ranks
            assert re.fullmatch(rf"\S+ from round 3 on {ranks} ranks", file.attrs["resumed"])


ENDLESS = ["algorithm=fedadmm", "data.clients=13", "rounds=1000000", "stop.gradient=0.0", "evaluate.every=10"]


def started(path, ranks, *words):
    """A run in the background whose result file has rounds."""
    command = [sys.executable] if ranks is None else mpirun(ranks)
    whole = [*map(str, command), "-m", "mpifed", "run", *ENDLESS, *words, "-q", "-o", str(path)]
    process = subprocess.Popen(
        whole,
        env={**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not path.exists() or path.stat().st_size < 20_000:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    "name", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGUSR1", "SIGINT"))]
)
def test_a_signal_lets_the_round_be_finished_and_writes_a_checkpoint(name, tmp_path):
    path = tmp_path / "out.h5"
    process = started(path, None)
    begun = time.monotonic()
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, ""), err
    assert time.monotonic() - begun < 10
    state, reason = status(path)
    assert state == "stopped"
    rounds = int(re.fullmatch(rf"{name} after round (\d+); resume goes on", reason)[1])
    whole = tmp_path / "whole.h5"
    run("run", *ENDLESS, f"rounds={rounds + 20}", "-q", "-o", whole)
    run("resume", path, f"rounds={rounds + 20}", "-q")
    assert content(path) == content(whole)


def test_a_signal_to_a_client_rank_ends_the_run_too(tmp_path):
    path = tmp_path / "out.h5"
    process = started(path, 3)
    ranks = subprocess.run(["pgrep", "-f", str(path)], capture_output=True, text=True, check=True).stdout.split()
    host = max(int(pid) for pid in ranks)
    os.kill(host, signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert status(path)[0] == "stopped"


def test_a_second_signal_ends_at_once(tmp_path):
    """Also in the middle of a round that takes for ever."""
    path, program, inside = tmp_path / "out.h5", tmp_path / "slow.py", tmp_path / "inside"
    program.write_text(
        "import pathlib, sys, time\nfrom mpifed import __main__\nfrom mpifed.algorithms.fedgia import FedGiA\n"
        f"FedGiA.inverse = lambda *_: pathlib.Path({str(inside)!r}).touch() or time.sleep(60)\n"
        "sys.exit(__main__.entry())\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(program), "run", "-q", "-o", str(path)],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS},
    )
    while not inside.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    time.sleep(2.5)
    assert process.poll() is None
    process.terminate()
    assert process.wait(5) == 128 + signal.SIGTERM
    assert status(path)[0] == "running"


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("algorithm.k0=3", "algorithm.k0 = 3 is wrong: .* has 10, and only rounds, stop and checkpoint may change"),
        ("seed=4", "seed = 4 is wrong: .* has 0"),
        ("data.clients=14", "data.clients = 14 is wrong: .* has 13"),
        ("stop.gradiant=1", "unknown key 'stop.gradiant'"),
    ],
)
def test_only_rounds_and_stop_rules_may_change(word, sentence, tmp_path):
    path = tmp_path / "out.h5"
    run("run", "data.clients=13", "rounds=2", "checkpoint.keep=true", "-q", "-o", path)
    before = path.read_bytes()
    assert re.match(f"mpifed: {sentence}", run("resume", path, word, code=2).err)
    assert path.read_bytes() == before


def test_what_is_finished_or_damaged_is_refused(tmp_path):
    path = tmp_path / "out.h5"
    run("run", "data.clients=13", "rounds=2", "-q", "-o", path)
    assert (
        "out.h5 is finished (rounds: 2); a finished run can be resumed if it ran with checkpoint.keep = true"
        in run("resume", path, code=2).err
    )
    run("run", "data.clients=13", "rounds=2", "checkpoint.keep=true", "--force", "-q", "-o", path)
    piece = next(folder(path).glob("*-0.npz"))
    whole = piece.read_bytes()
    piece.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    assert re.match(rf"mpifed: checkpoint file {piece} is damaged", run("resume", path, "rounds=4", "-q", code=2).err)
    piece.unlink()
    missing = run("resume", path, "rounds=4", "-q", code=2).err
    assert re.match(rf"mpifed: checkpoint file {piece} is damaged or missing", missing)
    (folder(path) / STATE).write_text("{")
    assert "cannot be read" in run("resume", path, "rounds=4", code=2).err
    assert "cannot be read" in run("resume", tmp_path / "no.h5", code=2).err


def test_data_that_have_changed_are_noticed(tmp_path):
    path, data = tmp_path / "out.h5", tmp_path / "data.npz"
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(40, 3)), "y": rng.normal(size=40), "sizes": np.full(8, 5)}
    np.savez(data, **arrays)
    run(
        "run",
        "data=file",
        f"data.path={data}",
        "algorithm=fedavg",
        "rounds=3",
        "checkpoint.keep=true",
        "-q",
        "-o",
        path,
    )
    np.savez(data, **arrays | {"y": arrays["y"] + 1})
    assert "the data or the program have changed: after round 3" in run("resume", path, "rounds=5", "-q", code=2).err
    np.savez(data, **arrays | {"sizes": np.full(10, 4)})
    assert "the checkpoint has 8 clients, and now there are 10" in run("resume", path, "rounds=5", "-q", code=2).err


def test_without_a_checkpoint_it_starts_again(tmp_path):
    path, whole = tmp_path / "out.h5", tmp_path / "whole.h5"
    process = started(path, None, "checkpoint.every_seconds=0")
    process.kill()
    process.communicate()
    run("run", *ENDLESS, "rounds=30", "-q", "-o", whole)
    done = run("resume", path, "rounds=30")
    assert "has no checkpoint: starting again" in done.err
    assert content(path) == content(whole)


def test_a_host_that_fails_leaves_a_file_that_says_so_and_can_be_resumed(tmp_path):
    path, whole = tmp_path / "out.h5", tmp_path / "whole.h5"
    program = tmp_path / "faulty.py"
    program.write_text(
        "import functools, sys\nfrom mpifed import __main__\nfrom mpifed.algorithms.fedavg import FedAvg\n"
        "update = FedAvg.update\n"
        "@functools.wraps(update)\ndef broken(self, f, client, x, k):\n"
        "    if k >= 15 and 12 in f.ids: raise OSError('a disk of this node is gone')\n"
        "    return update(self, f, client, x, k)\n"
        "FedAvg.update = broken\n"
        "sys.exit(__main__.entry())\n"
    )
    study = [
        "run",
        "algorithm=fedavg",
        "selection=all",
        "data.clients=13",
        "rounds=9",
        "checkpoint.every_rounds=2",
        "-q",
    ]
    done = execute(mpirun(3, program, *study, "-o", path), 60)
    assert done.code == 1
    assert done.err.count("rank 2 on ") == 1
    assert "failed: OSError: a disk of this node is gone" in done.err
    assert status(path)[0] == "failed"
    assert "a disk of this node is gone" in status(path)[1]
    run(*study, "-o", whole)
    run("resume", path, "-q")
    assert content(path) == content(whole)


def test_a_run_of_which_a_rank_was_killed_is_resumed_with_the_same_bits(tmp_path):
    path, whole = tmp_path / "out.h5", tmp_path / "whole.h5"
    run("run", *KILLED, "rounds=40", "-q", "-o", whole)
    process = start(3, "run", *KILLED, "rounds=40", "-q", "-o", path)
    deadline = time.monotonic() + 60
    while (saved := find(path)) is None or not saved.round:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(children(process)[-1], signal.SIGKILL)
    assert finish(process) != 0
    run("resume", path, "-q")
    assert content(path) == content(whole)
    with h5py.File(path) as file:
        assert re.fullmatch(r"\S+ from round [1-9]\d* on 1 ranks?", file.attrs["resumed"])


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    """SIGKILL of a random rank of three at a random time; python -m tests.helpers.killed_runs --kills 100 for more."""
    done = execute([sys.executable, "-m", KILLS, "--kills", "20"], 400, ROOT, TMPDIR=str(tmp_path))
    kills, runs, equal = map(int, re.match(r"(\d+) kills in (\d+) runs: (\d+) of", done.out).groups())
    assert kills >= 20
    assert equal == runs, done.out + done.err
