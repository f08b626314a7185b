"""Signs of life: what ends a run, what does not, and where nothing is started."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from mpifed.experiment import run
from mpifed.experiment.config import Job, experiment
from mpifed.mpi import signs_of_life
from mpifed.mpi.signs_of_life import MachineWatch, describe_machine, watch_machines
from mpifed.mpi.world import World

PATIENCE = 2
SENTENCE = "h2 (ranks 3 to 5) has given no sign of life for 2 s (patience): the run ends"
SO_ATTACH_FILTER = 26
AT_WORK = """
import ctypes, socket, sys, time
link = socket.create_connection(("localhost", int(sys.argv[1])))
link.sendall(b"x")
ctypes.PyDLL(None).sleep(600)  # with Python's lock held
"""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(signs_of_life, "PASSED_ON", 0.0)


class Ended(MachineWatch):
    """A watch over ``links``, to h2, h3 …, that notes how it ends."""

    def __init__(self, *links, patience=PATIENCE):
        self.codes, self.why, self.begun = [], [], time.monotonic()
        super().__init__({link: f"h{k} (ranks 3 to 5)" for k, link in enumerate(links, 2)}, patience, self.codes.append)
        self.before_end = self.why.append

    def seconds(self, most=20):
        """How long it took until it ended the run."""
        self.thread.join(most)
        assert self.codes == [1], "it has not ended the run"
        return time.monotonic() - self.begun


@pytest.fixture
def pair():
    """Both ends of a connection over TCP."""
    with socket.create_server(("localhost", 0)) as listener, socket.create_connection(listener.getsockname()) as far:
        near, _ = listener.accept()
        with near:
            yield near, far


def cut(link):
    """Have the kernel drop all that comes to this end of a connection, questions for signs of life too."""
    nothing = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\0\0", 8)  # a filter of one instruction: keep 0 bytes
    program = bytes(ctypes.c_ushort(1)).ljust(8, b"\0") + bytes(ctypes.c_void_p(ctypes.addressof(nothing)))
    link.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def test_a_machine_that_falls_silent_ends_the_run_with_a_sentence_that_names_it(pair, capsys):
    near, far = pair
    watch = Ended(near)
    cut(far)
    assert PATIENCE <= watch.seconds() < PATIENCE + 4
    said = capsys.readouterr().err
    assert said.startswith(f"mpifed: {SENTENCE}")
    assert said == f"mpifed: {watch.why[0]}\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["computes with Python's lock", "stopped"])
def test_a_rank_that_computes_for_long_and_one_that_is_stopped_give_signs_of_life(how):
    with socket.create_server(("localhost", 0)) as listener:
        port = str(listener.getsockname()[1])
        with subprocess.Popen([sys.executable, "-c", AT_WORK, port]) as far, listener.accept()[0] as link:
            assert link.recv(1) == b"x"
            if how == "stopped":
                os.kill(far.pid, signal.SIGSTOP)
            watch = Ended(link)
            time.sleep(3 * PATIENCE)
            assert (watch.codes, watch.thread.is_alive()) == ([], True)
            far.kill()
            killed = time.monotonic()
            watch.seconds()
            assert time.monotonic() - killed > 0.9 * PATIENCE  # its launcher has so long to end the run


def test_what_is_said_of_a_silent_machine_reaches_the_others_which_say_nothing(pair, capsys):
    near, far = pair
    there = Ended(near, patience=100)
    here = MachineWatch({}, 100, there.codes.append)
    with socket.socket() as silent:
        here.links = {far: "h3", silent: "h2"}
        here.finish(silent, None)
    there.thread.join(5)
    assert there.codes == [1, 1]
    assert there.why == []
    assert capsys.readouterr().err.count("mpifed:") == 1


def test_the_end_of_a_run_is_no_silence(pair):
    near, far = pair
    there, here = Ended(far, patience=1), Ended(near, patience=1)
    here.close()
    time.sleep(2)
    assert not there.thread.is_alive()
    there.close()
    assert (here.codes, there.codes) == ([], [])


def test_a_run_that_is_over_does_not_wait_for_the_patience_with_a_dead_process(pair):
    near, far = pair
    watch = Ended(near, patience=100)
    far.close()
    time.sleep(0.2)
    watch.close()
    assert watch.codes == []


def test_a_file_on_a_disk_that_is_gone_does_not_keep_the_run(pair, monkeypatch):
    near, far = pair
    monkeypatch.setattr(signs_of_life, "LAST_WORDS", 0.2)
    watch = Ended(near)
    watch.before_end = lambda why: time.sleep(30)
    cut(far)
    assert watch.seconds() < PATIENCE + 4


class Machines(World):
    """A rank of three that is asked where they are."""

    def __init__(self, *nodes):
        self.size = 3
        self.asked = 0
        self.where = list(nodes)

    def nodes(self):
        self.asked += 1
        return self.where


def test_on_one_machine_nothing_is_started():
    before = threading.active_count()
    with watch_machines(Machines(0, 0, 0), 300.0, pytest.fail) as watch:
        assert (threading.active_count(), watch.links) == (before, {})


@pytest.mark.parametrize(("path", "patience", "asked"), [(None, 300.0, 0), ("a.h5", 0.0, 0), ("a.h5", 300.0, 1)])
def test_without_a_file_or_patience_nothing_is_called(path, patience, asked, monkeypatch):
    monkeypatch.setattr(run, "prepare_and_run", lambda *job: None)
    world = Machines(0, 0, 0)
    job = Job(experiment({"patience": patience}), path)
    run.attempt(job, world, SimpleNamespace(note=pytest.fail), None, [])
    assert world.asked == asked


def test_a_machine_is_described_by_its_ranks():
    nodes = [0, 0, 2, 3, 3, 2, 6]
    assert [describe_machine("h", first, nodes) for first in (0, 2, 3, 6)] == [
        "h (ranks 0 to 1)",
        "h (ranks 2, 5)",
        "h (ranks 3 to 4)",
        "h (rank 6)",
    ]


@pytest.mark.mpi(min_size=3)
def test_first_ranks_of_other_machines_are_connected_to_rank_0(world, monkeypatch):
    monkeypatch.setattr(world, "nodes", lambda: [0, 1, 1, *range(3, world.size)])
    with watch_machines(world, 300.0, pytest.fail) as watch:
        name = socket.gethostname()
        others = [f"{name} (ranks 1 to 2)", *(f"{name} (rank {k})" for k in range(3, world.size))]
        wanted = {0: others, 2: []}.get(world.rank, [f"{name} (rank 0)"])
        assert sorted(watch.links.values()) == sorted(wanted)
        world.meet()
    assert not watch.thread.is_alive()


@pytest.mark.mpi(min_size=3)
def test_where_machines_cannot_reach_each_other_the_run_goes_on_and_says_so(world, monkeypatch):
    def refused(*place):
        raise OSError(111, "Connection refused")

    monkeypatch.setattr(world, "nodes", lambda: list(range(world.size)))
    if world.rank == 1:
        monkeypatch.setattr(socket, "create_connection", refused)
    notes = []
    with watch_machines(world, 300.0, notes.append) as watch:
        assert watch.links == {}
    name = socket.gethostname()
    said = "no signs of life between machines, so a silent one is waited for without end: "
    assert notes == ([f"{said}{name} cannot reach {name}: connection refused"] if world.first else [])
