"""Several points of a sweep at a time, each on a group of ranks.

The first rank of all is the desk: it hands out the points, and looks after the others' requests in every round of the
point that its own group runs.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mpifed.core import signals
from mpifed.mpi.groups import Mailbox, split
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import STOP, STOPPED, Ended, Overall, Runs, everywhere

ASK, NEXT, HALT = range(1, 4)  # tags of messages
NAP = 0.002  # seconds between looks where there is nothing else to do


class Watched(Overall):
    """Progress that calls ``look`` in every round, and passes on what it shows to ``whole``."""

    def __init__(self, look: Callable[[], None], whole: Overall) -> None:
        super().__init__(None, [])
        self.look = look
        self.whole = whole

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.look()
        self.whole.name = self.name
        self.whole.show(round, rounds, row)

    def note(self, text: str) -> None:
        self.whole.note(text)

    def close(self) -> None:
        self.whole.close()


class Desk:
    """At the first rank: the points that are left, the groups at work, and the points that have ended."""

    def __init__(self, points: Sequence[Point], mailbox: Mailbox, progress: Overall) -> None:
        self.points = points
        self.mailbox = mailbox
        self.progress = progress
        self.left = deque(range(len(points)))
        self.ended: list[Ended] = []
        self.open = set(range(1, mailbox.size))  # the groups that may still ask
        self.halted = False

    # The desk must not end while a group may ask, nor a group while a message to it is under way: MPI would keep one of
    # them waiting. So each question gets one answer, the last of them None, after which that group asks no more.

    def look(self) -> None:
        """Answer the groups that ask for a point; after a signal, halt all."""
        while (sender := self.mailbox.sender(ASK)) is not None:
            index, report, notes = self.mailbox.receive(sender, ASK)
            for text in notes:
                self.progress.note(text)
            if report is not None:
                self.count(Ended(self.points[index], *report))
            following = self.left.popleft() if self.left else None
            if following is None:
                self.open.remove(sender)
            # the answer says whether a HALT is on its way too, so that the group can receive it before it leaves
            self.mailbox.send((following, self.halted), sender, NEXT)
        if signals.stop_signal:
            self.halt(signals.stop_signal)

    def count(self, ended: Ended) -> None:
        """Count a point that ended; one that was stopped stops the sweep."""
        if ended.what in (STOP, STOPPED):
            self.halt("SIGTERM")
        if ended.what != STOP:
            self.ended.append(ended)

    def told(self) -> Iterator[Ended]:
        """Yield the points that have ended, each once."""
        yield from self.ended
        self.ended.clear()

    def halt(self, name: str) -> None:
        """Hand out no more points, and ask all groups to stop after their round."""
        self.left.clear()
        if not self.halted:
            self.halted = True
            signals.stop_signal = signals.stop_signal or name
            # a message of its own, because a group in the middle of a point asks nothing until it has ended
            for group in self.open:
                self.mailbox.send(name, group, HALT)


class Booth:
    """At the first rank of another group: what it asks the desk for."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.halted = False

    def look(self, halted: bool = False) -> None:
        """Stop after this round if the desk says so; ``halted``: the message that says it is on its way."""
        if not self.halted and (halted or self.mailbox.sender(HALT) is not None):
            name = self.mailbox.receive(0, HALT)
            self.halted = True
            signals.stop_signal = signals.stop_signal or name

    def ask(self, index: int | None, ended: Ended | None, notes: list[str]) -> int | None:
        self.mailbox.send((index, None if ended is None else ended[1:], notes), 0, ASK)
        following, halted = self.mailbox.receive(0, NEXT)
        self.look(halted)
        return following


def in_groups(todo: Sequence[Point], runs: Runs, each: int) -> Iterator[Ended]:
    """Run points in groups of ``each`` ranks for clients and one for the server; 0: one rank for both.

    Rank 0 alone has ``todo``, and yields how the points ended. Ranks that are left over wait.
    """
    world = runs.world
    if world.first:
        runs.progress.lanes = world.size // (each + 1)
        if left_over := world.size % (each + 1):
            runs.progress.note(f"ranks left over: {left_over} of {world.size}, for a group has {each + 1}")
    # collectives of the whole world end here: from now on groups go their own ways until ``world.meet``
    points = everywhere(todo, world)
    group = split(world, each + 1)
    if group.mailbox is not None and world.first:
        yield from at_desk(points, runs, group.world, Desk(points, group.mailbox, runs.progress))
    elif group.mailbox is not None:
        at_booth(points, runs, group.world, Booth(group.mailbox))
    elif group.world is not None:
        own = Runs(runs.folder, group.world, runs.force, runs.progress)
        while (index := group.world.share(None)) is not None:
            own.one(points[index])
    # ranks left over wait without a core; and no communicator is freed while a message of a slower group uses it
    world.meet()
    group.free()


def at_desk(points: Sequence[Point], runs: Runs, group: Any, desk: Desk) -> Iterator[Ended]:
    """The first rank of all, which is the server of its own group."""
    own = Runs(runs.folder, group, runs.force, Watched(desk.look, runs.progress))
    while True:
        desk.look()
        index = group.share(desk.left.popleft() if desk.left else None)
        if index is None:
            break
        desk.count(own.one(points[index]))
        yield from desk.told()
    # its own group has nothing left, and others are still at work
    while desk.open:
        yield from desk.told()
        time.sleep(NAP)
        desk.look()
    yield from desk.told()


def at_booth(points: Sequence[Point], runs: Runs, group: Any, booth: Booth) -> None:
    """The first rank of another group, whose notes the desk tells, each once."""
    silent = Overall(None, [])
    own = Runs(runs.folder, group, runs.force, Watched(booth.look, silent))
    index = group.share(booth.ask(None, None, []))
    while index is not None:
        ended = own.one(points[index])
        index = group.share(booth.ask(index, ended, silent.notes))
