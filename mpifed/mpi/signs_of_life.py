"""Signs of life between the machines of a run: if a machine falls silent, the run ends instead of waiting for ever.

The first rank of every other machine has a connection to rank 0. The kernels at both ends probe each other (TCP
keepalive), also while a rank computes, holds Python's lock or is stopped, so only a machine that is off or disconnected
is silent. On both sides a thread waits for the kernel's verdict. It uses neither MPI nor files, because the network of
messages may fail while a file system on another network still works.
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

from mpifed.core.errors import UserError, escape_unprintable, reason
from mpifed.mpi.program_end import kill_local_run
from mpifed.mpi.world import World

TOKEN, NUMBER = 16, 4  # bytes of the secret that admits a machine, and of the number of its first rank
CONNECT = 10.0  # seconds in which a machine must connect
OFTEN = 60.0  # maximum seconds between two probes
QUESTIONS = 5  # minimum number of probes within ``patience``
LAST_WORDS = 10.0  # seconds for the message and the result file, whose disk may be disconnected too
PASSED_ON = 1.0  # seconds given to a launcher to pass on the message
IDLE = getattr(socket, "TCP_KEEPIDLE", 0x10)  # macOS calls it TCP_KEEPALIVE
GOODBYE = b"."  # the run is over
END = b"!"  # another machine is silent
GONE = b""  # the process at the other end is dead, which its launcher or the survivors handle first

Connections = dict[socket.socket, str]  # connection -> the machine at its other end and its ranks, in words


class MachineWatch:
    """A watch over the machines at ``links``; if one is silent, call ``before_end`` with the reason, then ``end``."""

    def __init__(self, links: Connections, patience: float, end: Callable[[int], None] = kill_local_run) -> None:
        self.links = links
        self.patience = patience
        self.end = end
        self.before_end: Callable[[str], None] = lambda why: None
        self.over = threading.Event()
        # a thread, because the main one may wait in MPI for that machine; a daemon, so that a failing process ends
        self.thread = threading.Thread(target=self.watch_links, daemon=True)
        if links:
            for link in links:
                probe_connection(link, patience)
            self.thread.start()

    def watch_links(self) -> None:
        """Read the connections until the run is over or a machine is silent."""
        with selectors.DefaultSelector() as selector:
            for link in self.links:
                selector.register(link, selectors.EVENT_READ)
            while selector.get_map() and not self.over.is_set():
                for key, _ in selector.select():
                    ready: Any = key.fileobj
                    word = receive_byte(ready)
                    # the launcher, which knows why a process died, is given time to end the run itself
                    if word == GOODBYE:
                        selector.unregister(ready)
                    elif not self.over.wait(self.patience if word == GONE else 0):
                        return self.finish(ready, word)

    def finish(self, link: socket.socket, word: bytes | None) -> None:
        """End the run on this machine, because ``link`` is silent or reported a silent machine."""
        why = ""
        if word != END:
            why = (
                f"{self.links[link]} has given no sign of life for {self.patience:g} s (patience): the run ends, and "
                "resume goes on from the last checkpoint, on any machines"
            )
        # other machines have connections to rank 0 alone, and learn it from here; without waiting, because the buffer
        # to a second silent machine may be full
        for other in self.links.keys() - {link}:
            with suppress(OSError):
                other.send(END, socket.MSG_DONTWAIT)
        # in a thread, which is abandoned if writing the result file hangs too
        thread = threading.Thread(target=self.leave, args=(why,), daemon=True)
        thread.start()
        thread.join(LAST_WORDS)
        self.end(1)

    def leave(self, why: str) -> None:
        """Print and record why the run ends."""
        if why:
            sys.stderr.write(f"mpifed: {escape_unprintable(why)}\n")
            sys.stderr.flush()
            self.before_end(why)
            time.sleep(PASSED_ON)

    def close(self) -> None:
        """Say goodbye to the other machines at the end of the run, and close the connections."""
        # set first, so that connections closed by others from now on do not count as silence
        self.over.set()
        for link in self.links:
            with suppress(OSError):
                link.send(GOODBYE, socket.MSG_DONTWAIT)
                link.shutdown(socket.SHUT_RD)  # wakes up the thread
        if self.thread.is_alive():
            self.thread.join()
        for link in self.links:
            link.close()


def probe_connection(link: socket.socket, patience: float) -> None:
    """Make the kernel probe a connection, and give up after ``patience`` seconds without a sign of life."""
    interval = max(1, round(min(OFTEN, patience / QUESTIONS)), -(-patience // 100))  # a kernel sends at most 127 probes
    # without a timeout of Python's, whose TimeoutError would look like the kernel's verdict
    link.settimeout(None)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, IDLE, int(interval))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, int(interval))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(1, round(patience / interval) - 1))


def receive_byte(link: socket.socket) -> bytes | None:
    """Receive a byte of a connection; return None if there was no sign of life."""
    try:
        return link.recv(1)
    except ConnectionError:
        return GONE
    except OSError:
        return None


@contextmanager
def watch_machines(world: World, patience: float, note: Callable[[str], None]) -> Iterator[MachineWatch]:
    """Watch over the machines of ``world``, all ranks together; with one machine nothing is started.

    If machines cannot reach each other, rank 0 calls ``note``, and the run goes on without signs of life.
    """
    links: Connections = {}
    nodes = world.nodes()
    if len(set(nodes)) > 1:
        try:
            connect_machines(links, world, nodes)
        except UserError as error:
            while links:
                links.popitem()[0].close()
            if world.first:
                note(f"no signs of life between machines, so a silent one is waited for without end: {error}")
    watch = MachineWatch(links, patience)
    try:
        yield watch
    finally:
        watch.close()


def connect_machines(links: Connections, world: World, nodes: list[int]) -> None:
    """Make the connections between rank 0 and the first rank of each other machine; ``nodes``: machines of ranks.

    Raise UserError, the same on all ranks, if one of them cannot be made.
    """
    names = world.share(world.collect(socket.gethostname()))
    machines = {first: describe_machine(names[first], first, nodes) for first in sorted(set(nodes))}
    # all ranks agree on each of three steps, so that none waits for a machine that cannot listen or connect
    with ExitStack() as stack:
        with world.agreeing(), raising_user_error(f"{names[0]} cannot be reached"):
            listener = stack.enter_context(open_listener(len(machines))) if world.first else None
        port, token = world.share(None if listener is None else (listener.getsockname()[1], os.urandom(TOKEN)))
        with world.agreeing(), raising_user_error(f"{names[world.rank]} cannot reach {names[0]}"):
            if world.rank in machines and not world.first:
                link = socket.create_connection((names[0], port), CONNECT)
                links[link] = machines[0]
                link.sendall(token + world.rank.to_bytes(NUMBER))
        with world.agreeing(), raising_user_error("a machine has not connected"):
            if listener is not None:
                accept_machines(links, listener, token, machines)


def describe_machine(name: str, first: int, nodes: list[int]) -> str:
    """Describe a machine and its ranks: h2 (ranks 3 to 5)."""
    ranks = [rank for rank, node in enumerate(nodes) if node == first]
    if len(ranks) == 1:
        return f"{name} (rank {first})"
    is_range = ranks[-1] - first + 1 == len(ranks)
    return f"{name} (ranks {first} to {ranks[-1]})" if is_range else f"{name} (ranks {', '.join(map(str, ranks))})"


@contextmanager
def raising_user_error(what: str) -> Iterator[None]:
    """Raise UserError with ``what`` and the reason in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {reason(error)}") from None


def open_listener(count: int) -> socket.socket:
    """Open a socket for ``count`` pending connections, on all addresses of this machine."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", 0), family=family, backlog=count, dualstack_ipv6=both)


def accept_machines(links: Connections, listener: socket.socket, token: bytes, machines: dict[int, str]) -> None:
    """Accept connections from the first ranks of all other machines; reject those that do not know ``token``."""
    listener.settimeout(CONNECT)
    while len(links) < len(machines) - 1:
        link, _ = listener.accept()
        link.settimeout(CONNECT)
        # a port scanner of the site may connect too, but does not know the token
        message = link.recv(TOKEN + NUMBER, socket.MSG_WAITALL)
        first = int.from_bytes(message[TOKEN:])
        if message[:TOKEN] == token and first in machines:
            links[link] = machines[first]
        else:
            link.close()
