"""Groups of ranks that work on their own, and messages between the first ranks of the groups."""

from copy import copy
from typing import Any, NamedTuple, cast

from mpi4py import MPI

from mpifed.mpi.communicator import Communicator, patiently
from mpifed.mpi.world import World


class Mailbox:
    """Small messages between the first ranks of groups. Waiting for one does not take the core."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.size = comm.size

    def send(self, value: Any, to: int, tag: int) -> None:
        """Send a message; small ones do not wait until they are received."""
        self.comm.send(value, to, tag)

    def sender(self, tag: int) -> int | None:
        """The rank whose message has arrived, or None."""
        status = MPI.Status()
        return status.Get_source() if self.comm.Iprobe(MPI.ANY_SOURCE, tag, status) else None

    def receive(self, source: int, tag: int) -> Any:
        """The next message of a rank."""
        # recv spins on a core, and a desk may wait for as long as a point runs
        patiently(lambda: self.comm.Iprobe(source, tag))
        return self.comm.recv(source=source, tag=tag)


class Group(NamedTuple):
    """The ranks of a group as a world of their own, and at its first rank the mailbox; both None on ranks left over."""

    world: Communicator | None
    mailbox: Mailbox | None

    def free(self) -> None:
        """Give back what MPI holds for the group; all its ranks call it."""
        if self.mailbox is not None:
            self.mailbox.comm.Free()
        if self.world is not None:
            self.world.comm.Free()


def split(world: World, size: int) -> Group:
    """The group of ``size`` consecutive ranks that this rank belongs to; all ranks call it."""
    # groups are refused where no launcher of MPI started this process, before anything runs
    world = cast(Communicator, world)
    left_over = world.size % size
    mine = world.rank // size if world.rank < world.size - left_over else MPI.UNDEFINED
    # before the split, while all ranks are together: cores are shared with the ranks of other groups as well
    crowded = world.crowded()
    comm = cast(MPI.Intracomm, world.comm.Split(mine, world.rank))
    first = mine != MPI.UNDEFINED and comm.rank == 0
    # every rank takes part in this split too, ranks left over included: it is a collective of the whole world
    leaders = cast(MPI.Intracomm, world.comm.Split(0 if first else MPI.UNDEFINED, world.rank))
    if mine == MPI.UNDEFINED:
        return Group(None, None)
    group = copy(world)
    group.place(comm)
    group.cores_shared = crowded
    return Group(group, Mailbox(leaders) if first else None)
