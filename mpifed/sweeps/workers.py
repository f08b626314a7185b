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
from mpifed.mpi.launcher import read_launcher
from mpifed.mpi.world import World
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import FAILED, STOP, STOPPED, PointEnd, PointRunner, SweepProgress, pack_point, unpack_point

PROGRAM = "from mpifed.sweeps.workers import main; main()"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
WORTH = 1.0  # estimated seconds of work that justify another process
PAUSE = 0.2  # seconds between tests for a signal
TELL = 0.1  # minimum seconds between messages about rounds
GRACE = 10.0  # seconds in which a run may finish its round after the sweep is interrupted
READY, ROUND, NOTE, OVER = range(4)  # kinds of messages


def process_count(todo: Sequence[Point], jobs: int | None) -> int:
    """Return how many processes run ``todo``: ``jobs``, or what cores and work justify; 1 under an MPI launcher."""
    if read_launcher()[0] is not None:
        return 1
    if jobs is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        worth = 1 + int(sum(point.cost for point in todo) / WORTH)
        jobs = min(cores // int(threads) if threads.isdecimal() and int(threads) else cores, worth)
    return max(1, min(jobs, len(todo)))


def run_in_processes(todo: Sequence[Point], runs: PointRunner, jobs: int) -> Iterator[PointEnd]:
    """Run points in ``jobs`` processes, which take them in this order, and yield how each of them ended.

    A process that is killed fails its point alone. After a signal, points stop after their round, and no other begins.
    """
    pool = WorkerPool(todo, runs)
    # a second signal ends this process at once, without any ``finally``: only this hook can end the runs
    signals.before_exit.append(pool.kill)
    runs.progress.lanes = jobs
    try:
        yield from pool.run(jobs)
    except BaseException:
        pool.stop()
        raise
    finally:
        for worker in pool.dismissed:  # these have nothing left to do
            worker.process.wait()
        signals.before_exit.remove(pool.kill)


class Worker:
    """A process with its end of a pipe, and the point that it runs."""

    def __init__(self, runs: PointRunner) -> None:
        self.connection, theirs = Pipe()
        self.ready = False
        self.begun = 0.0
        self.point: Point | None = None
        with theirs, signals.block_signals():  # an interrupt during its imports would end it with a traceback
            # not multiprocessing: fork copies locks held by threads of BLAS, and spawn imports the user's
            # script again, which would start the sweep in every process
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                # no other descriptor is inherited: a worker that held another's pipe would keep it open
                pass_fds=[theirs.fileno()],
                env=dict.fromkeys(THREADS, "1") | os.environ,
            )
        # path: the worker imports files and packages as this process does; argv: results record the command
        self.send((runs.folder, runs.force, sys.path, sys.orig_argv))

    def send(self, message: object) -> None:
        """Send a message to the process; a broken pipe is noticed later."""
        # a broken pipe is found when ``read_message`` reads from it, which reports why the process ended
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def run(self, point: Point) -> None:
        """Send a point to the process."""
        self.point = point
        self.begun = time.monotonic()
        self.send(pack_point(point))


class WorkerPool:
    """The processes of a sweep and the points that are left for them."""

    def __init__(self, todo: Sequence[Point], runs: PointRunner) -> None:
        self.left = deque(todo)
        self.runs = runs
        self.workers: dict[Any, Worker] = {}  # by connection
        self.dismissed: list[Worker] = []

    def run(self, jobs: int) -> Iterator[PointEnd]:
        """Hand out the points, and yield how they ended. A signal is passed on, and then no more points begin."""
        signalled = False
        for _ in range(jobs):
            self.start_worker()
        while self.workers:
            # with a timeout, because wait resumes after a signal and would not return while all are computing
            for connection in wait(list(self.workers), PAUSE):
                yield from self.read_message(self.workers[connection])
            if signals.stop_signal and not signalled:
                signalled = True
                self.left.clear()
                for worker in self.workers.values():
                    worker.process.send_signal(getattr(signal, signals.stop_signal))

    def start_worker(self) -> None:
        """Start a process with the next point, if there is one."""
        if self.left:
            worker = Worker(self.runs)
            self.workers[worker.connection] = worker
            worker.run(self.left.popleft())

    def read_message(self, worker: Worker) -> Iterator[PointEnd]:
        """Read a message of a worker, and give it the next point after one that is over."""
        try:
            kind, *message = worker.connection.recv()
        except (EOFError, OSError):
            yield from self.replace_lost(worker)
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
            ended = PointEnd(point, *message)
            # a batch system may signal one process only, and mean the job
            if ended.status in (STOP, STOPPED):
                self.left.clear()
            if self.left:
                worker.run(self.left.popleft())
            else:
                self.dismiss(worker)
            if ended.status != STOP:
                yield ended

    def replace_lost(self, worker: Worker) -> Iterator[PointEnd]:
        """Fail the point of a process that is gone, and start another process instead."""
        self.dismiss(worker)
        assert worker.point is not None
        code = worker.process.wait()
        why = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        # one that died before it was ready would die again, and starting others might go on for ever
        if not worker.ready:
            raise RunError(f"a process of the sweep {why} before it ran anything")
        seconds = time.monotonic() - worker.begun
        self.start_worker()
        yield PointEnd(worker.point, FAILED, f"its process {why}", seconds)

    def dismiss(self, worker: Worker) -> None:
        """Close the pipe of a worker, which ends it when it waits for a point."""
        del self.workers[worker.connection]
        worker.connection.close()
        self.dismissed.append(worker)

    def stop(self) -> None:
        """Let all runs finish their round, for a while, and then kill them."""
        running = list(self.workers.values())
        # signal all before waiting for any, so that they finish their rounds at the same time
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


class PipeProgress(SweepProgress):
    """Progress that is sent to the process that shows it. If that process is gone, the run stops after its round."""

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
        # no sweep is left to write results for: the run ends as after a signal
        try:
            self.connection.send(message)
        except OSError:
            signals.stop_signal = signals.stop_signal or "SIGTERM"


def main() -> None:
    """Run the points that come through the pipe whose number is the argument, until it is closed."""
    connection = Connection(int(sys.argv[1]))
    # in this order: a signal that came during the imports is pending, and ``unblock_signals`` delivers it
    signals.listen_for_signals()
    signals.unblock_signals()
    progress = PipeProgress(connection)
    try:
        folder, force, sys.path[:], sys.orig_argv[:] = connection.recv()
        runs = PointRunner(folder, World(), force, progress)
        progress.send(READY)
        while True:
            ended = runs.run_point(unpack_point(*connection.recv()))
            progress.send(OVER, *ended[1:])
    except (EOFError, OSError):  # the pipe is closed, or the process at its other end is gone
        return
