"""A process that runs points of a sweep, one after another, and tells the process that started it how they end."""

import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from mpifed.core import signals
from mpifed.mpi.world import World
from mpifed.sweeps.overall import Overall
from mpifed.sweeps.runs import Runs, unpacked

PAUSE = 0.1  # seconds from one message about a round to the next
READY, ROUND, NOTE, OVER = range(4)  # kinds of messages


class Remote(Overall):
    """Progress that another process shows. Where that process is gone, the run is stopped after its round."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(None, [])
        self.connection = connection
        self.sent = 0.0

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        now = time.monotonic()
        if now - self.sent >= PAUSE:
            self.sent = now
            self.send(ROUND, self.name, round, rounds)

    def note(self, text: str) -> None:
        self.send(NOTE, text)

    def send(self, *message: Any) -> None:
        """Send a message to the process that started this one."""
        try:
            self.connection.send(message)
        except OSError:
            signals.stop_signal = signals.stop_signal or "SIGTERM"


def main() -> None:
    """Run the points that come through the pipe whose number is the argument, until it is closed."""
    connection = Connection(int(sys.argv[1]))
    signals.listen()
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
