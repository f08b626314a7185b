"""Several points of a sweep at a time, each on a group of ranks.

The first rank of all is the desk: it hands out the points, and answers the other groups in every round of the point
that its own group runs.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mpifed.core import signals
from mpifed.mpi.communicator import Mailbox, split_ranks
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import STOP, STOPPED, PointEnd, PointRunner, SweepProgress, share_points

ASK, NEXT, HALT = range(1, 4)  # tags of messages
NAP = 0.002  # seconds between polls when there is nothing else to do


class PollingProgress(SweepProgress):
    """Progress that calls ``poll`` in every round, and passes its output on to ``overall``."""

    def __init__(self, poll: Callable[[], None], overall: SweepProgress) -> None:
        super().__init__(None, [])
        self.poll = poll
        self.overall = overall

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.poll()
        self.overall.name = self.name
        self.overall.show(round, rounds, row)

    def note(self, text: str) -> None:
        self.overall.note(text)

    def close(self) -> None:
        self.overall.close()


class Desk:
    """The first rank: the points that are left, the groups at work, and the points that have ended."""

    def __init__(self, points: Sequence[Point], mailbox: Mailbox, progress: SweepProgress) -> None:
        self.points = points
        self.mailbox = mailbox
        self.progress = progress
        self.left = deque(range(len(points)))
        self.ended: list[PointEnd] = []
        self.open = set(range(1, mailbox.size))  # groups that may still ask
        self.halted = False

    # The desk must not end while a group may ask, nor a group while a message to it is under way: one of them would
    # wait for ever. So each question gets one answer, the last of them None, after which that group asks no more.

    def poll(self) -> None:
        """Answer the groups that ask for a point; after a signal, halt all."""
        while (sender := self.mailbox.sender(ASK)) is not None:
            index, report, notes = self.mailbox.receive(sender, ASK)
            for text in notes:
                self.progress.note(text)
            if report is not None:
                self.count(PointEnd(self.points[index], *report))
            following = self.left.popleft() if self.left else None
            if following is None:
                self.open.remove(sender)
            # the answer says whether a HALT is under way too, so that the group receives it before it leaves
            self.mailbox.send((following, self.halted), sender, NEXT)
        if signals.stop_signal:
            self.halt(signals.stop_signal)

    def count(self, ended: PointEnd) -> None:
        """Count a point that ended; one that was stopped stops the sweep."""
        if ended.status in (STOP, STOPPED):
            self.halt("SIGTERM")
        if ended.status != STOP:
            self.ended.append(ended)

    def take_results(self) -> Iterator[PointEnd]:
        """Yield the points that have ended, each once."""
        yield from self.ended
        self.ended.clear()

    def halt(self, name: str) -> None:
        """Hand out no more points, and ask all groups to stop after their round."""
        self.left.clear()
        if not self.halted:
            self.halted = True
            signals.stop_signal = signals.stop_signal or name
            # a separate message, because a group in the middle of a point asks nothing until it has ended
            for group in self.open:
                self.mailbox.send(name, group, HALT)


class Booth:
    """The first rank of another group, which asks the desk for points."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.halted = False

    def poll(self, halted: bool = False) -> None:
        """Stop after this round if the desk says so; ``halted``: a message that says so is under way."""
        if not self.halted and (halted or self.mailbox.sender(HALT) is not None):
            name = self.mailbox.receive(0, HALT)
            self.halted = True
            signals.stop_signal = signals.stop_signal or name

    def ask(self, index: int | None, ended: PointEnd | None, notes: list[str]) -> int | None:
        self.mailbox.send((index, None if ended is None else ended[1:], notes), 0, ASK)
        following, halted = self.mailbox.receive(0, NEXT)
        self.poll(halted)
        return following


def run_in_groups(todo: Sequence[Point], runs: PointRunner, each: int) -> Iterator[PointEnd]:
    """Run points in groups of ``each`` ranks for clients and one for the server; 0: one rank for both.

    Rank 0 alone has ``todo``, and yields how the points ended. Ranks that are left over wait.
    """
    world = runs.world
    if world.first:
        runs.progress.lanes = world.size // (each + 1)
        if left_over := world.size % (each + 1):
            runs.progress.note(f"ranks left over: {left_over} of {world.size}, for a group has {each + 1}")
    # the last collective call of the full world: from now on groups are independent until ``world.meet``
    points = share_points(todo, world)
    group = split_ranks(world, each + 1)
    if group.mailbox is not None and world.first:
        yield from run_desk(points, runs, group.world, Desk(points, group.mailbox, runs.progress))
    elif group.mailbox is not None:
        run_booth(points, runs, group.world, Booth(group.mailbox))
    elif group.world is not None:
        runner = PointRunner(runs.folder, group.world, runs.force, runs.progress)
        while (index := group.world.share(None)) is not None:
            runner.run_point(points[index])
    # ranks left over wait here without using a core, and no communicator is freed while a slower group uses it
    world.meet()
    group.free()


def run_desk(points: Sequence[Point], runs: PointRunner, group: Any, desk: Desk) -> Iterator[PointEnd]:
    """Serve the first rank of all, which is also the server of its own group; yield how points ended."""
    runner = PointRunner(runs.folder, group, runs.force, PollingProgress(desk.poll, runs.progress))
    while True:
        desk.poll()
        index = group.share(desk.left.popleft() if desk.left else None)
        if index is None:
            break
        desk.count(runner.run_point(points[index]))
        yield from desk.take_results()
    # its own group has no point left, but others are still at work
    while desk.open:
        yield from desk.take_results()
        time.sleep(NAP)
        desk.poll()
    yield from desk.take_results()


def run_booth(points: Sequence[Point], runs: PointRunner, group: Any, booth: Booth) -> None:
    """Serve the first rank of another group, whose notes the desk shows, each once."""
    silent = SweepProgress(None, [])
    runner = PointRunner(runs.folder, group, runs.force, PollingProgress(booth.poll, silent))
    index = group.share(booth.ask(None, None, []))
    while index is not None:
        ended = runner.run_point(points[index])
        index = group.share(booth.ask(index, ended, silent.notes))
