"""Signs of life between the machines of a run: when one of them falls silent, the run ends instead of waiting for ever.

The first rank of every other machine has a connection to rank 0. The kernels at both ends ask each other for a sign of
life (TCP keepalive) and answer also while a rank computes, holds Python's lock or is stopped, so that only a machine
that is off or cut off is silent. On both sides a thread waits for the verdict. It does not use MPI, nor files: a cable
that carries the messages may be out while a file system on another network still works.
"""

import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from mpifed.core.errors import UserError, printable, reason
from mpifed.mpi.local_processes import end_all
from mpifed.mpi.world import World

TOKEN, NUMBER = 16, 4  # bytes of what a machine must know to be let in, and of its first rank
CONNECT = 10.0  # seconds in which a machine must be reached
OFTEN = 60.0  # seconds from one question to the next, at most
QUESTIONS = 5  # in ``patience``, at least
LAST_WORDS = 10.0  # seconds for the message and the result file, which may be on a disk that is cut off too
PASSED_ON = 1.0  # seconds in which a launcher has passed on the message
IDLE = getattr(socket, "TCP_KEEPIDLE", 0x10)  # macOS calls it TCP_KEEPALIVE
GOODBYE = b"."  # the run is over
END = b"!"  # another machine is silent
GONE = b""  # the process at the other end is dead; its launcher or the survivors see to that first

Links = dict[socket.socket, str]  # connection -> the machine at its other end, with its ranks


class Watch:
    """Waits for what comes of ``links``. ``before_end`` gets the reason before ``end`` ends all processes here."""

    def __init__(self, links: Links, patience: float, end: Callable[[int], None] = end_all) -> None:
        self.links = links
        self.patience = patience
        self.end = end
        self.before_end: Callable[[str], None] = lambda why: None
        self.over = threading.Event()
        # a thread, because the main one may be in MPI for as long as the silent machine is silent; a daemon, so that it
        # does not keep a process that fails
        self.thread = threading.Thread(target=self.listen, daemon=True)
        if links:
            for link in links:
                keep_asking(link, patience)
            self.thread.start()

    def listen(self) -> None:
        """Until the run is over, or a machine is silent."""
        with selectors.DefaultSelector() as selector:
            for link in self.links:
                selector.register(link, selectors.EVENT_READ)
            while selector.get_map() and not self.over.is_set():
                for key, _ in selector.select():
                    ready: Any = key.fileobj
                    word = heard(ready)
                    # a process that died is the launcher's affair, who knows why: this end waits for it first
                    if word == GOODBYE:
                        selector.unregister(ready)
                    elif not self.over.wait(self.patience if word == GONE else 0):
                        return self.finish(ready, word)

    def finish(self, link: socket.socket, word: bytes | None) -> None:
        """End the run on this machine, because ``link`` is silent or said so of another machine."""
        why = ""
        if word != END:
            why = (
                f"{self.links[link]} has given no sign of life for {self.patience:g} s (patience): the run ends, and "
                "resume goes on from the last checkpoint, on any machines"
            )
        # without waiting: the buffer to a second silent machine may be full. The others have connections to rank 0
        # alone, and learn it from here
        for other in self.links.keys() - {link}:
            with suppress(OSError):
                other.send(END, socket.MSG_DONTWAIT)
        # a thread of its own, which is left behind where writing to the result's disk hangs as well
        last = threading.Thread(target=self.leave, args=(why,), daemon=True)
        last.start()
        last.join(LAST_WORDS)
        self.end(1)

    def leave(self, why: str) -> None:
        """Say and record why the run ends."""
        if why:
            sys.stderr.write(f"mpifed: {printable(why)}\n")
            sys.stderr.flush()
            self.before_end(why)
            time.sleep(PASSED_ON)

    def close(self) -> None:
        """The run is over: take leave of the others, whatever they do from now on."""
        # first, so that connections that the others close from now on are no verdict
        self.over.set()
        for link in self.links:
            with suppress(OSError):
                link.send(GOODBYE, socket.MSG_DONTWAIT)
                link.shutdown(socket.SHUT_RD)  # the thread wakes up
        if self.thread.is_alive():
            self.thread.join()
        for link in self.links:
            link.close()


def keep_asking(link: socket.socket, patience: float) -> None:
    """Have the kernel ask for signs of life, and give up when there was none for ``patience`` seconds."""
    every = max(1, round(min(OFTEN, patience / QUESTIONS)), -(-patience // 100))  # a kernel asks at most 127 times
    # a timeout of Python's would look like the verdict of the kernel: recv raises TimeoutError for both
    link.settimeout(None)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, IDLE, int(every))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, int(every))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(1, round(patience / every) - 1))


def heard(link: socket.socket) -> bytes | None:
    """What a connection says; None where there was no sign of life."""
    try:
        return link.recv(1)
    except ConnectionError:
        return GONE
    except OSError:
        return None


@contextmanager
def watched(world: World, patience: float, note: Callable[[str], None]) -> Iterator[Watch]:
    """Watch over the machines of ``world``, all ranks together; nothing is started where there is only one.

    ``note`` says at rank 0 where the machines cannot reach each other: the run then goes on without signs of life.
    """
    links: Links = {}
    nodes = world.nodes()
    if len(set(nodes)) > 1:
        try:
            connect(links, world, nodes)
        except UserError as mistake:
            while links:
                links.popitem()[0].close()
            if world.first:
                note(f"no signs of life between machines, so a silent one is waited for without end: {mistake}")
    watch = Watch(links, patience)
    try:
        yield watch
    finally:
        watch.close()


def connect(links: Links, world: World, nodes: list[int]) -> None:
    """Make the connections of this rank, to rank 0 from the first of each other machine; ``nodes``: where ranks are.

    Raises UserError, the same on all ranks, where one of them cannot be made.
    """
    names = world.share(world.collect(socket.gethostname()))
    machines = {first: described(names[first], first, nodes) for first in sorted(set(nodes))}
    # three steps, each agreed on by all ranks: where one machine cannot listen or connect, none waits for it
    with ExitStack() as stack:
        with world.agreeing(), refusing(f"{names[0]} cannot be reached"):
            listener = stack.enter_context(listening(len(machines))) if world.first else None
        port, token = world.share(None if listener is None else (listener.getsockname()[1], os.urandom(TOKEN)))
        with world.agreeing(), refusing(f"{names[world.rank]} cannot reach {names[0]}"):
            if world.rank in machines and not world.first:
                link = socket.create_connection((names[0], port), CONNECT)
                links[link] = machines[0]
                link.sendall(token + world.rank.to_bytes(NUMBER))
        with world.agreeing(), refusing("a machine has not connected"):
            if listener is not None:
                accept(links, listener, token, machines)


def described(name: str, first: int, nodes: list[int]) -> str:
    """A machine and its ranks: h2 (ranks 3 to 5)."""
    ranks = [rank for rank, node in enumerate(nodes) if node == first]
    if len(ranks) == 1:
        return f"{name} (rank {first})"
    together = ranks[-1] - first + 1 == len(ranks)
    return f"{name} (ranks {first} to {ranks[-1]})" if together else f"{name} (ranks {', '.join(map(str, ranks))})"


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """UserError in place of the system's errors: ``what``, and why."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {reason(error)}") from None


def listening(count: int) -> socket.socket:
    """A socket that so many connections may wait at, on all addresses of this machine."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", 0), family=family, backlog=count, dualstack_ipv6=both)


def accept(links: Links, listener: socket.socket, token: bytes, machines: dict[int, str]) -> None:
    """Take the connections from the first ranks of all other machines; who does not know ``token`` is sent away."""
    listener.settimeout(CONNECT)
    while len(links) < len(machines) - 1:
        link, _ = listener.accept()
        link.settimeout(CONNECT)
        # a port scanner of the site may knock too: who does not know the token is no machine of the run
        said = link.recv(TOKEN + NUMBER, socket.MSG_WAITALL)
        first = int.from_bytes(said[TOKEN:])
        if said[:TOKEN] == token and first in machines:
            links[link] = machines[first]
        else:
            link.close()
