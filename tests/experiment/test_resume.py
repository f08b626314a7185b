"""Nothing is lost: a run that is stopped, killed or fails resumes from its checkpoint, with the same bits."""

import os
import re
import shutil
import signal
import sys
import time

import h5py
import numpy as np
import pytest

from mpifed.cli.arguments import EXAMPLES
from mpifed.core import checksummed
from mpifed.experiment.checkpoint import STATE, Checkpoint, CheckpointWriter, checkpoint_folder, read_checkpoint
from mpifed.results.result import load
from tests.experiment.conftest import chosen, goes_on, run, status
from tests.helpers.commands import PIPES, ROOT, background, execute, mpifed, mpirun, within_seconds
from tests.helpers.killed_runs import STUDY as KILLED
from tests.helpers.killed_runs import children, content, finish, last_words, rank, start
from tests.helpers.studies import STUDIES, endless

RESUMED = [  # by default: each kind of state that a checkpoint has, but those of the test after the next
    "fedgia, adaptive, compressed",
    "fedadmm, masked",
    "flame, biased",
    "fedopt, importance",
    "fednl",
    "dgd, redrawn",
    "rennala, asynchronous, stopped",
    "ringleader, asynchronous, batch",
]
KILLS = "tests.helpers.killed_runs"


@pytest.mark.parametrize("name", chosen(STUDIES, *RESUMED))
def test_a_finished_run_goes_on_with_the_bits_of_one_that_had_all_rounds_from_the_start(name, tmp_path):
    """Also where its last round was evaluated and stored only because it was the last one, and with personal models."""
    personal = ["record.personal=true"] if name.split(",")[0] in ("flame", "pfedme", "ditto", "apfl") else []
    goes_on(tmp_path, [*endless(name), "evaluate.every=2", "record.models=2", *personal], 3, 7)


@pytest.mark.parametrize("more", [["system.least=2"], ["asynchronous.arrivals=2"]])
def test_a_run_whose_clients_come_and_go_goes_on_with_the_same_bits(more, tmp_path):
    system = "system={speed=100,latency=0.1,availability={name='diurnal',period=3.0,share=0.4}}"
    goes_on(tmp_path, ["algorithm=fedavg", "data.clients=13", "stop.gradient=0.0", system, *more], 5, 12)


@pytest.mark.parametrize(
    ("name", "numbers", "evaluate", "models", "checkpoint"),
    [("scaffold, flaky", [0, 4, 9], 3, 4, 3), ("accfeddcd, flaky", [1, 3, 4], 4, 0, 2), ("fedepm", [2, 7], 1, 3, 0)],
)
def test_any_numbers_of_rounds_one_after_the_other_are_one_run(name, numbers, evaluate, models, checkpoint, tmp_path):
    """run(a), resume to b and resume to c equal run(c), whatever is evaluated, stored and saved on the way."""
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    words = [f"evaluate.every={evaluate}", f"record.models={models}", f"checkpoint.every_rounds={checkpoint}"]
    study = [*endless(name), *words, "-q"]
    first, *more = numbers
    run("run", *study, f"rounds={first}", "--force", "-o", part)
    for rounds in more:
        run("resume", part, f"rounds={rounds}", "-q")
    run("run", *study, f"rounds={numbers[-1]}", "--force", "-o", whole)
    assert content(part) == content(whole)


TIMES = {"stop.seconds=0": ["stop.seconds=1e-9"]}
TIMES |= {"stop.simulated_seconds=1.2": ["system.latency=0.1", "stop.simulated_seconds=0.5"]}


@pytest.mark.parametrize("more", TIMES)
def test_a_run_that_ended_for_lack_of_time_goes_on(more, tmp_path):
    path, rule = tmp_path / "part.h5", more.split("=")[0]
    study = ["algorithm=fedadmm", "data.clients=13", "rounds=9", "stop.gradient=0.0", *TIMES[more]]
    run("run", *study, "-q", "-o", path)
    done, before = load(path), path.read_bytes()
    assert (done.status, f"stop.{done.stop_reason.split(':')[0]}") == ("finished", rule)
    assert f"would end at once ({done.stop_reason}): to go on, write another {rule}" in run("resume", path, code=2).err
    assert path.read_bytes() == before
    run("resume", path, more, "-q")
    run("run", *study, more, "-q", "-o", tmp_path / "whole.h5")
    assert content(path) == content(tmp_path / "whole.h5")
    assert load(path).cr > done.cr


def test_the_commands_of_the_help_work_one_after_the_other(tmp_path):
    (tmp_path / "study.toml").write_text("rounds = 4\n[data]\nclients = 6\n[stop]\ngradient = 1e-30\n", "utf-8")
    commands = re.findall(r"python -m mpifed ((?:run study|resume).*?)(?:  .*)?\n", EXAMPLES)
    assert [line.split()[0] for line in commands] == ["run", "resume"]
    for line in commands:
        words = line.replace("2000", "6").split()
        assert mpifed(*words, "-q", cwd=tmp_path).code == 0
    assert load(tmp_path / "out.h5").cr == 6


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A run of six rounds, and its checkpoint."""
    place = tmp_path_factory.mktemp("finished")
    np.savez(place / "sel.npz", sel=np.arange(24).reshape(8, 3))
    study = ["data.clients=24", "stop.gradient=0.0", "selection=replay", f"selection.path={place / 'sel.npz'}"]
    run("run", *study, "rounds=6", "-q", "-o", place / "out.h5")
    return place / "out.h5"


@pytest.fixture
def finished(original, tmp_path):
    """A copy of it, of which no refusal changes a byte."""
    path = tmp_path / "out.h5"
    shutil.copy(original, path)
    shutil.copytree(checkpoint_folder(original), checkpoint_folder(path))
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before
    assert load(path).status == "finished"


NO_MORE = "is finished, with all of its 6 rounds: write a larger number to go on, such as rounds=12"
REFUSED = {
    "": NO_MORE,
    "rounds=6": NO_MORE,
    "rounds=4": "rounds = 4 is wrong: .* has 6 rounds already, so write a larger number to go on",
    "rounds=9": "has 8 rows in 'sel', but rounds = 9",
    "algorithm.k0=3": "algorithm.k0 = 3 is wrong: .* has 10, and only rounds, stop, reduction, .* may change",
    "seed=4": "seed = 4 is wrong: .* has 0",
    "data.clients=14": "data.clients = 14 is wrong: .* has 24",
    "start=x.npz": 'start = "x.npz" is wrong: ',
    "stop.gradiant=1": "unknown key 'stop.gradiant'",
}


def test_without_new_rounds_or_as_another_run_it_is_refused_and_the_file_stays(finished):
    for word, sentence in REFUSED.items():
        assert re.search(rf"^mpifed: .*{sentence}", run("resume", finished, *word.split(), "-q", code=2).err), word


def test_a_run_that_has_converged_keeps_a_checkpoint_only_on_wish_and_others_unless_it_is_not_wanted(tmp_path):
    path, whole = tmp_path / "out.h5", tmp_path / "whole.h5"
    study = ["data.clients=13", "stop.gradient=1e-3", "-q"]
    run("run", *study, "-o", path)
    assert not checkpoint_folder(path).exists()
    sentence = run("resume", path, "rounds=2000", code=2).err
    assert re.search(r"has converged \(gradient: .*\) and such a run keeps no checkpoint: run it again with", sentence)
    assert "another stop.gradient (0 switches it off), or with checkpoint.keep = true to go on later" in sentence
    run("run", *study, "checkpoint.keep=true", "--force", "-o", path)
    assert "would end at once (gradient: " in run("resume", path, "rounds=2000", code=2).err
    run("resume", path, "stop.gradient=1e-6", "checkpoint.keep=false", "-q")
    run("run", *study, "stop.gradient=1e-6", "-o", whole)
    assert content(path) == content(whole)
    assert not checkpoint_folder(path).exists()
    run("run", "data.clients=13", "rounds=2", "checkpoint.keep=false", "-q", "--force", "-o", path)
    assert not checkpoint_folder(path).exists()
    sentence = run("resume", path, "rounds=4", code=2).err
    assert re.search(
        r"is finished \(rounds: 2\) and the checkpoint to go on from, \S+\.h5\.checkpoint, is not there", sentence
    )
    assert "not kept (checkpoint.keep = false), so run it again with more rounds" in sentence


ENDLESS = ["algorithm=fedadmm", "data.clients=13", "rounds=1000000", "stop.gradient=0.0", "evaluate.every=10"]
ENDLESS += ["kernels=numpy"]


def wait(process, done):
    """Wait until something is done, while the process goes on."""
    deadline = time.monotonic() + 60
    while not done():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


SIGNALS = [("SIGUSR1", None), ("SIGINT", None), ("SIGTERM", 3)]


@pytest.mark.parametrize(
    ("name", "ranks"), [("SIGTERM", None), *(pytest.param(*case, marks=pytest.mark.slow) for case in SIGNALS)]
)
def test_a_signal_lets_the_round_be_finished_and_writes_a_checkpoint(name, ranks, tmp_path):
    """Also one that a client rank gets. Before, a run that is under way cannot be resumed."""
    path = tmp_path / "out.h5"
    command = [sys.executable] if ranks is None else mpirun(ranks)
    words = ["-m", "mpifed", "run", *ENDLESS, "checkpoint.every_rounds=50", "-q", "-o", path]
    process = background([*command, *words], **PIPES)
    try:
        wait(process, lambda: getattr(read_checkpoint(path), "round", 0))
        told = run("resume", path, "-q", code=2).err
    finally:
        os.kill(process.pid if ranks is None else max(children(process)), getattr(signal, name))
        _, err = process.communicate(timeout=60)  # without the signal it would never end
    assert told == f"mpifed: {path} is being written by another run: resume it when that has ended; SIGTERM ends it\n"
    assert process.returncode == 0, err
    assert ranks or err == ""
    state, reason = status(path)
    assert state == "stopped"
    rounds = int(re.fullmatch(rf"{name} after round (\d+); resume goes on", reason)[1])
    whole = tmp_path / "whole.h5"
    run("run", *ENDLESS, f"rounds={rounds + 20}", "-q", "-o", whole)
    run("resume", path, f"rounds={rounds + 20}", "-q")
    assert content(path) == content(whole)
    with h5py.File(path) as file:
        assert f" from round {rounds} on " in file.attrs["resumed"]


def test_a_second_signal_ends_at_once_and_without_a_checkpoint_the_run_starts_again(tmp_path):
    """Also in the middle of a round that takes for ever."""
    path, whole, inside, program = (tmp_path / name for name in ("out.h5", "whole.h5", "inside", "slow.py"))
    program.write_text(
        "import functools, pathlib, sys, time\nfrom mpifed import __main__\n"
        "from mpifed.algorithms.fedadmm import FedADMM\nfrom mpifed.core import signals\n"
        "signals.REPEAT_SECONDS = 0.2\nupdate = FedADMM.update\n"
        "@functools.wraps(update)\ndef stuck(self, f, *args):\n"
        f"    if f.round == 5: pathlib.Path({str(inside)!r}).touch(); time.sleep(60)\n"
        "    return update(self, f, *args)\n"
        "FedADMM.update = stuck\nsys.exit(__main__.entry())\n"
    )
    process = background([sys.executable, program, "run", *ENDLESS, "checkpoint.every_seconds=0", "-q", "-o", path])
    wait(process, inside.exists)
    process.terminate()
    time.sleep(0.5)  # longer than what counts as one signal
    assert process.poll() is None
    process.terminate()
    assert process.wait(5) == 128 + signal.SIGTERM
    assert status(path)[0] == "running"
    run("run", *ENDLESS, "rounds=8", "-q", "-o", whole)
    assert "has no checkpoint: starting again" in run("resume", path, "rounds=8").err
    assert content(path) == content(whole)


def test_what_is_damaged_is_refused(finished):
    def told(path=finished):
        return run("resume", path, "rounds=8", "-q", code=2).err

    piece = next(checkpoint_folder(finished).glob("*-0.npz"))
    whole = bytearray(piece.read_bytes())
    whole[len(whole) // 2] ^= 1
    piece.write_bytes(whole)
    assert re.match(rf"mpifed: checkpoint file {piece} is damaged", told())
    piece.unlink()
    assert re.match(rf"mpifed: checkpoint file {piece} is damaged or missing", told())
    (checkpoint_folder(finished) / STATE).write_text("{")
    assert "cannot be read" in told()
    assert "cannot be read" in told(finished.with_name("no.h5"))


def test_a_pipe_in_the_place_of_a_result_or_of_a_part_of_its_checkpoint_is_refused_at_once(finished, tmp_path):
    place, pipe = checkpoint_folder(finished), tmp_path / "pipe.h5"
    os.mkfifo(pipe)
    with within_seconds(30):
        assert f"{pipe} is not a result file: it is a pipe or a device" in run("resume", pipe, "-q", code=2).err
    for part in (place / STATE, next(place.glob("*-0.npz")), next(place.glob("*-server.npz"))):
        whole = part.read_bytes()
        part.unlink()
        os.mkfifo(part)
        with within_seconds(30):
            err = run("resume", finished, "rounds=8", "-q", code=2).err
        assert re.fullmatch(rf"mpifed: checkpoint .*{part.name} .*it is a pipe or a device.*\n", err), err
        part.unlink()
        part.write_bytes(whole)


TAMPERED = {
    "other names": ("server", lambda x: {"y": x.pop("x")} | x, "the state of its server has y, but Server has no such"),
    "other fields": ("0", lambda x: x | {"more": x["pi"]}, "the state of its clients has .*more, but must have pi, w"),
    "a shape": ("0", lambda x: x | {"pi": x["pi"][:, :5]}, r"pi of its clients has type float64 and shape \(24, 5\)"),
    "a type": ("0", lambda x: x | {"pi": x["pi"] * 1j}, "complex128"),
    "rows": ("0", lambda x: x | {"pi": x["pi"][:7]}, "pi of the clients 0 to 23 has"),
    "a model": ("server", lambda x: x | {"x": x["x"][:3]}, "the model x has type float64 and shape"),
    "a number": ("server", lambda x: x | {"sigma": np.zeros(3)}, "sigma of its server has type float64 and shape"),
    "no counts": ("server", lambda x: {k: v for k, v in x.items() if k != "times selected"}, "KeyError: 'times sel"),
    "counts": ("server", lambda x: x | {"times selected": np.full(24, -1)}, "times selected are below 0"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_checkpoint_with_other_arrays_and_the_right_checksum_is_refused_in_a_sentence(what, finished):
    owner, change, told = TAMPERED[what]
    part = next(checkpoint_folder(finished).glob(f"*-{owner}.npz"))
    checksummed.write(part, change(checksummed.read(part)))
    err = run("resume", finished, "rounds=8", "-q", code=2).err
    assert re.fullmatch(rf"mpifed: the checkpoint in {checkpoint_folder(finished)} does not fit this run: .*\n", err), (
        err
    )
    assert re.search(told, err), err


def test_what_a_result_says_reaches_the_terminal_without_control_characters(finished, tmp_path):
    path = tmp_path / "copy.h5"
    shutil.copy(finished, path)
    shutil.copytree(checkpoint_folder(finished), checkpoint_folder(path))
    with h5py.File(path, "r+") as file:
        file.attrs["numpy"] = "\x1b]0;owned\x07\x1b[31m"
    err = run("resume", path, "rounds=7").err
    assert r"numpy (\x1b]0;owned\x07\x1b[31m → " in err
    assert "\x1b" not in err


def test_a_kill_while_a_checkpoint_is_removed_leaves_none_or_all_of_it(tmp_path, monkeypatch):
    path = tmp_path / "out.h5"
    run("run", "data.clients=13", "rounds=2", "-q", "-o", path)
    keeper, remove = CheckpointWriter(Checkpoint(), path, read_checkpoint(path), [0, 13]), shutil.rmtree

    def killed(place, ignore_errors=False):
        if os.path.isdir(place):
            os.unlink(os.path.join(place, os.listdir(place)[0]))
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        keeper.drop()
    assert "is finished" in run("resume", path, code=2).err
    monkeypatch.setattr(shutil, "rmtree", remove)
    keeper.drop()
    assert os.listdir(tmp_path) == ["out.h5"]


def test_data_that_have_changed_are_noticed(tmp_path):
    path, data = tmp_path / "out.h5", tmp_path / "data.npz"
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(40, 3)), "y": rng.normal(size=40), "sizes": np.full(8, 5)}
    np.savez(data, **arrays)
    run("run", "data=file", f"data.path={data}", "algorithm=fedavg", "rounds=3", "-q", "-o", path)
    np.savez(data, **arrays | {"y": arrays["y"] + 1})
    assert "the data or the program have changed: after round 3" in run("resume", path, "rounds=5", "-q", code=2).err
    np.savez(data, **arrays | {"sizes": np.full(10, 4)})
    assert "the checkpoint has 8 clients, and now there are 10" in run("resume", path, "rounds=5", "-q", code=2).err


def resumed_after_a_kill(folder, ranks, victim, *words, **options):
    """The file of a run whose ``victim`` was killed, resumed with the bits of the whole run; how it ended."""
    path, whole = folder / "out.h5", folder / "whole.h5"
    study = ["run", *KILLED, "rounds=40", "kernels=numpy", "-q", "-o"]
    run(*study, whole)
    process = start(ranks, *study, path, *words, **options)
    wait(process, lambda: getattr(read_checkpoint(path), "round", 0))
    os.kill(victim(children(process)), signal.SIGKILL)
    ended = last_words(process)[1] if words else finish(process)
    run("resume", path, "-q")
    assert content(path) == content(whole)
    return path, ended


def test_a_run_of_which_a_rank_was_killed_is_resumed_with_the_same_bits(tmp_path):
    path, code = resumed_after_a_kill(tmp_path, 2, lambda pids: pids[-1])
    assert code != 0
    with h5py.File(path) as file:
        assert re.fullmatch(r"\S+ from round [1-9]\d* on 1 ranks?", file.attrs["resumed"])


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--asynchronous"]], ids=["rounds", "asynchronous"])
def test_ten_kills(more, tmp_path):
    """SIGKILL of a random rank of three at a random time; python -m tests.helpers.killed_runs --kills 100 for more."""
    done = execute([sys.executable, "-m", KILLS, "--kills", "10", *more], 400, ROOT, TMPDIR=str(tmp_path))
    kills, runs, equal = map(int, re.match(r"(\d+) kills in (\d+) runs: (\d+) of", done.out).groups())
    assert kills >= 10
    assert equal == runs, done.out + done.err


def test_where_the_launcher_ends_all_ranks_it_is_refused(tmp_path):
    done = mpifed("run", "--survive", "-q", "-o", tmp_path / "out.h5")
    assert done.code == 2
    assert (
        "mpifed: --survive needs Open MPI's mpirun --with-ft ulfm, for other launchers end all ranks when" in done.err
    )
    assert not list(tmp_path.iterdir())


def skip_unless_it_survives():
    """Open MPI from version 5 has ``--with-ft``; other launchers end all ranks with one."""
    version = re.search(r"\(Open MPI\) (\d+)", execute([mpirun(1)[0], "--version"]).out)
    if version is None or int(version[1]) < 5:
        pytest.skip("this MPI library does not survive a dead rank")


def test_runs_that_survive_a_lost_rank_end_with_the_same_bits(tmp_path):
    skip_unless_it_survives()
    done = execute([sys.executable, "-m", KILLS, "--survive", "4"], 200, ROOT, TMPDIR=str(tmp_path))
    assert "4 of 4 runs of four ranks that lost one equal the undisturbed one to the bit" in done.out, done.err


def test_a_run_that_lost_its_server_says_so_once_and_is_resumed_with_the_same_bits(tmp_path):
    skip_unless_it_survives()

    def server(pids):
        return next(pid for pid in pids if rank(pid) == 0)

    _, told = resumed_after_a_kill(tmp_path, 4, server, "--survive", launch=("--with-ft", "ulfm"))
    assert told.count("mpifed: ") == 1, told
    assert "mpifed: rank 0, the server, died, and other ranks cannot take its place: the run ends, and resume" in told
