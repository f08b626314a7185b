"""The end of a run: every rank reports what it did, and rank 0 writes the tables /ranks and /clients."""

from __future__ import annotations

import resource
import socket
import sys
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.transport import Traffic
from mpifed.mpi.world import World
from mpifed.results import provenance


class RankReport(NamedTuple):
    """The row of a rank in /ranks, under the names of its columns."""

    clients: int
    samples: int
    compute_seconds: float
    evaluate_seconds: float
    comm_seconds: float
    wait_seconds: float
    mpi_calls: int
    mpi_messages_received: int
    mpi_bytes_sent: int
    mpi_bytes_received: int
    max_rss_bytes: int
    shared_bytes: int
    hostname: str
    threads: int
    cpus: str
    io_seconds: float = 0.0

    @classmethod
    def of(cls, host: Host | None, traffic: Traffic) -> RankReport:
        """What this rank, which has a host or none, did in a run."""
        unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
        return cls(
            clients=0 if host is None else host.hi - host.lo,
            samples=0 if host is None else int(sum(block.d.sum() for block in host.blocks)),
            compute_seconds=0.0 if host is None else host.computed,
            evaluate_seconds=0.0 if host is None else host.evaluated,
            comm_seconds=traffic.comm,
            wait_seconds=traffic.wait,
            mpi_calls=traffic.calls,
            mpi_messages_received=traffic.messages,
            mpi_bytes_sent=traffic.sent,
            mpi_bytes_received=traffic.received,
            max_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
            shared_bytes=traffic.shared,
            hostname=socket.gethostname(),
            threads=provenance.threads(),
            cpus=provenance.cpus(),
        )


def collect(world: World, host: Host | None, traffic: Traffic) -> tuple[list[RankReport], Array]:
    """At rank 0 the reports of all ranks and the seconds of every client (m,); all ranks call it."""
    rows = world.collect(RankReport.of(host, traffic))
    seconds = np.zeros(0) if host is None else host.seconds[host.slot]
    return rows, world.collect_rows(seconds, [row.clients for row in rows])


def tables(rows: list[RankReport], seconds: Array, data: Dataset, fed: Federation) -> tuple[dict[str, Any], ...]:
    """/ranks and /clients of the result: name -> column."""
    ranks = {name: [getattr(row, name) for row in rows] for name in RankReport._fields}
    clients = {
        "samples": data.sizes,
        "rank": np.repeat(np.arange(len(rows)), ranks["clients"]),
        "times_selected": fed.times_selected,
        "compute_seconds": seconds,
    }
    return ranks, clients
