"""Groups of ranks that run studies independently, and messages between the first ranks of groups."""

from copy import copy
from typing import Any, NamedTuple, cast

from mpi4py import MPI

from mpifed.mpi.communicator import Communicator, wait_patiently
from mpifed.mpi.world import World


class Mailbox:
    """A mailbox of small messages between the first ranks of groups; waiting for one takes no core."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.size = comm.size

    def send(self, value: Any, to: int, tag: int) -> None:
        """Send a message; a small one does not wait for its receiver."""
        self.comm.send(value, to, tag)

    def sender(self, tag: int) -> int | None:
        """Return the rank whose message has arrived, or None."""
        status = MPI.Status()
        return status.Get_source() if self.comm.Iprobe(MPI.ANY_SOURCE, tag, status) else None

    def receive(self, source: int, tag: int) -> Any:
        """Receive the next message of a rank."""
        # recv would occupy a core, and the receiver may wait for as long as a run takes
        wait_patiently(lambda: self.comm.Iprobe(source, tag))
        return self.comm.recv(source=source, tag=tag)


class RankGroup(NamedTuple):
    """A group of ranks as a world, with the mailbox at its first rank; both are None on ranks left over."""

    world: Communicator | None
    mailbox: Mailbox | None

    def free(self) -> None:
        """Free the communicators of the group; all its ranks call it."""
        if self.mailbox is not None:
            self.mailbox.comm.Free()
        if self.world is not None:
            self.world.comm.Free()


def split_ranks(world: World, size: int) -> RankGroup:
    """Split all ranks into groups of ``size`` consecutive ones; return this rank's group. All ranks call it."""
    # without an MPI launcher, groups have been refused before
    world = cast(Communicator, world)
    left_over = world.size % size
    color = world.rank // size if world.rank < world.size - left_over else MPI.UNDEFINED
    # before the split, because ranks of other groups may share cores too
    crowded = world.shares_cores()
    comm = cast(MPI.Intracomm, world.comm.Split(color, world.rank))
    first = color != MPI.UNDEFINED and comm.rank == 0
    # all ranks, even those left over, take part in this split, which is collective
    leaders = cast(MPI.Intracomm, world.comm.Split(0 if first else MPI.UNDEFINED, world.rank))
    if color == MPI.UNDEFINED:
        return RankGroup(None, None)
    group = copy(world)
    group.set_ranks(comm)
    group.cores_shared = crowded
    return RankGroup(group, Mailbox(leaders) if first else None)
