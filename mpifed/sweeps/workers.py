"""Several points of a sweep at a time, each in a process of this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from mpifed.core import signals
from mpifed.core.errors import RunError
from mpifed.mpi.launcher import announced
from mpifed.mpi.world import World
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import FAILED, STOP, STOPPED, Ended, Overall, Runs, packed, unpacked

PROGRAM = "from mpifed.sweeps.workers import main; main()"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
WORTH = 1.0  # estimated seconds of work for which another process is started
PAUSE = 0.2  # seconds between looks for a signal
TELL = 0.1  # seconds from one message about a round to the next
GRACE = 10.0  # seconds that a run has to finish its round where the sweep is cut off
READY, ROUND, NOTE, OVER = range(4)  # kinds of messages


def processes(todo: Sequence[Point], jobs: int | None) -> int:
    """How many processes run ``todo``: ``jobs`` or, for None, as many as there are cores and work is worth.

    One where a launcher of MPI started this process: its ranks start no others.
    """
    if announced()[0] is not None:
        return 1
    if jobs is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        worth = 1 + int(sum(point.cost for point in todo) / WORTH)
        jobs = min(cores // int(threads) if threads.isdecimal() and int(threads) else cores, worth)
    return max(1, min(jobs, len(todo)))


def side_by_side(todo: Sequence[Point], runs: Runs, jobs: int) -> Iterator[Ended]:
    """Run points in so many processes, which take them in this order, and yield how each of them ended.

    A process that is killed fails its point alone. After a signal, points stop after their round, and no other begins.
    """
    crew = Crew(todo, runs)
    # a second signal ends this process at once, past all ``finally``: then nobody else would end the runs
    signals.before_exit.append(crew.kill)
    runs.progress.lanes = jobs
    try:
        yield from crew.run(jobs)
    except BaseException:
        crew.stop()
        raise
    finally:
        for worker in crew.dismissed:  # they have nothing more to do
            worker.process.wait()
        signals.before_exit.remove(crew.kill)


class Worker:
    """A process with its end of a pipe, and the point that it runs."""

    def __init__(self, runs: Runs) -> None:
        self.connection, theirs = Pipe()
        self.ready = False
        self.begun = 0.0
        self.point: Point | None = None
        with theirs, signals.blocked():  # an interrupt would end it in its imports, with a traceback
            # not multiprocessing: fork copies locks of the threads of BLAS as they are, and spawn imports the user's
            # script again, which would start the sweep in every process
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                # no other descriptor is passed on: a worker that held another's pipe would keep it from closing
                pass_fds=[theirs.fileno()],
                env=dict.fromkeys(THREADS, "1") | os.environ,
            )
        # path: classes of files and packages are found where this process finds them; argv: results record the command
        self.send((runs.folder, runs.force, sys.path, sys.orig_argv))

    def send(self, message: object) -> None:
        # a pipe that is broken is found when ``hear`` reads from it, which says why the process is gone
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def run(self, point: Point) -> None:
        self.point = point
        self.begun = time.monotonic()
        self.send(packed(point))


class Crew:
    """The processes of a sweep and the points that are left for them."""

    def __init__(self, todo: Sequence[Point], runs: Runs) -> None:
        self.left = deque(todo)
        self.runs = runs
        self.workers: dict[Any, Worker] = {}  # by connection
        self.dismissed: list[Worker] = []

    def run(self, jobs: int) -> Iterator[Ended]:
        """Hand out the points, and yield how they ended. A signal is passed on, and then no more points begin."""
        told = False
        for _ in range(jobs):
            self.hire()
        while self.workers:
            # with a pause, because wait goes on after a signal and would not come back while all are computing
            for connection in wait(list(self.workers), PAUSE):
                yield from self.hear(self.workers[connection])
            if signals.stop_signal and not told:
                told = True
                self.left.clear()
                for worker in self.workers.values():
                    worker.process.send_signal(getattr(signal, signals.stop_signal))

    def hire(self) -> None:
        if self.left:
            worker = Worker(self.runs)
            self.workers[worker.connection] = worker
            worker.run(self.left.popleft())

    def hear(self, worker: Worker) -> Iterator[Ended]:
        """Read a message of a worker, and give it the next point after one that is over."""
        try:
            kind, *message = worker.connection.recv()
        except (EOFError, OSError):
            yield from self.lost(worker)
            return
        point = worker.point
        assert point is not None
        if kind == READY:
            worker.ready = True
        elif kind == NOTE:
            self.runs.progress.note(*message)
        elif kind == ROUND:
            self.runs.progress.name, round, rounds = message
            self.runs.progress.show(round, rounds, {})
        elif kind == OVER:
            ended = Ended(point, *message)
            # a batch system may signal one process alone, and means the job
            if ended.what in (STOP, STOPPED):
                self.left.clear()
            if self.left:
                worker.run(self.left.popleft())
            else:
                self.dismiss(worker)
            if ended.what != STOP:
                yield ended

    def lost(self, worker: Worker) -> Iterator[Ended]:
        """A process is gone: its point fails, and another process takes its place."""
        self.dismiss(worker)
        assert worker.point is not None
        code = worker.process.wait()
        why = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        # one that died before it was ready would die again: hiring another one might go on for ever
        if not worker.ready:
            raise RunError(f"a process of the sweep {why} before it ran anything")
        seconds = time.monotonic() - worker.begun
        self.hire()
        yield Ended(worker.point, FAILED, f"its process {why}", seconds)

    def dismiss(self, worker: Worker) -> None:
        """Close the pipe of a worker, which ends it when it waits for a point."""
        del self.workers[worker.connection]
        worker.connection.close()
        self.dismissed.append(worker)

    def stop(self) -> None:
        """Let all runs finish their round, for a while, and then kill them."""
        running = list(self.workers.values())
        # all are told first and waited for then: they finish their rounds at the same time
        for worker in running:
            self.dismiss(worker)
            worker.process.terminate()
        deadline = time.monotonic() + GRACE
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                for worker in running:
                    worker.process.wait(max(0.0, deadline - time.monotonic()))
        finally:
            self.kill()

    def kill(self) -> None:
        for worker in (*self.workers.values(), *self.dismissed):
            worker.process.kill()


class Remote(Overall):
    """Progress that another process shows. Where that process is gone, the run is stopped after its round."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(None, [])
        self.connection = connection
        self.sent = 0.0

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        now = time.monotonic()
        if now - self.sent >= TELL:
            self.sent = now
            self.send(ROUND, self.name, round, rounds)

    def note(self, text: str) -> None:
        self.send(NOTE, text)

    def send(self, *message: Any) -> None:
        # nobody is there to write results for: the run ends as if it had been asked to
        try:
            self.connection.send(message)
        except OSError:
            signals.stop_signal = signals.stop_signal or "SIGTERM"


def main() -> None:
    """Run the points that come through the pipe whose number is the argument, until it is closed."""
    connection = Connection(int(sys.argv[1]))
    # in this order: a signal that came during the imports is waiting, and is delivered by ``unblock``
    signals.listen()
    signals.unblock()
    progress = Remote(connection)
    try:
        folder, force, sys.path[:], sys.orig_argv[:] = connection.recv()
        runs = Runs(folder, World(), force, progress)
        progress.send(READY)
        while True:
            ended = runs.one(unpacked(*connection.recv()))
            progress.send(OVER, *ended[1:])
    except (EOFError, OSError):  # it is closed, or the process at its other end is gone
        return
