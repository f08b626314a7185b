"""The end of a run: every rank reports what it did, and rank 0 writes the tables /ranks and /clients."""

import resource
import socket
import sys
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.experiment.prepare import Prepared
from mpifed.features.feature import ByClient
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.transport import Traffic, Transport
from mpifed.mpi.world import World
from mpifed.results import provenance
from mpifed.results.recorder import Recorder


def report(host: Host | None, traffic: Traffic) -> dict[str, Any]:
    """The row of this rank, which has a host or none, in /ranks: name of the column -> value."""
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return {
        "clients": 0 if host is None else host.hi - host.lo,
        "samples": 0 if host is None else int(sum(block.sizes.sum() for block in host.blocks)),
        "compute_seconds": 0.0 if host is None else host.computed,
        "evaluate_seconds": 0.0 if host is None else host.evaluated,
        "comm_seconds": traffic.comm,
        "wait_seconds": traffic.wait,
        "mpi_calls": traffic.calls,
        "mpi_messages_received": traffic.messages,
        "mpi_bytes_sent": traffic.sent,
        "mpi_bytes_received": traffic.received,
        "max_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        "shared_bytes": traffic.shared,
        "max_device_bytes": most_on_devices(),
        "hostname": socket.gethostname(),
        "threads": provenance.threads(),
        "cpus": provenance.cpus(),
        "blas": provenance.blas(),
        "block_bytes": 0 if host is None else host.block_size.bytes,
        "block_bytes_reason": "" if host is None else host.block_size.reason,
        "io_seconds": 0.0,  # rank 0 fills in its own
    }


def most_on_devices() -> int:
    """The most bytes that PyTorch had from a GPU at a time; 0 where it has used none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return max([torch.cuda.max_memory_allocated(k) for k in range(torch.cuda.device_count())], default=0)


def collect(world: World, host: Host | None, traffic: Traffic) -> tuple[list[dict[str, Any]], Array]:
    """At rank 0 the reports of all ranks and the seconds of every client (m,); all ranks call it."""
    rows = world.collect(report(host, traffic))
    seconds = np.zeros(0) if host is None else host.seconds[host.slot]
    return rows, world.collect_rows(seconds, [row["clients"] for row in rows])


def tables(rows: list[dict[str, Any]], seconds: Array, data: Dataset, fed: Federation) -> tuple[dict[str, Any], ...]:
    """/ranks and /clients of the result: name -> column."""
    ranks = {name: [row[name] for row in rows] for name in rows[0]}
    clients = {
        "samples": data.sizes,
        "rank": np.repeat(np.arange(len(rows)), ranks["clients"]),
        "times_selected": fed.times_selected,
        "compute_seconds": seconds,
    }
    return ranks, clients


def reported(world: World, parts: Prepared, transport: Transport, recorder: Recorder, fed: Federation) -> ByClient:
    """Write the tables of ranks and clients when the rounds are over; that of ranks."""
    ranks, clients = tables(*collect(world, parts.host, transport.traffic), parts.data, fed)
    own: dict[str, ByClient] = {"clients": clients}
    for feature in parts.features:
        own = feature.clients(own)
    for name, table in {"ranks": ranks, **own}.items():
        recorder.table(name, table)
    return ranks


def block_sizes(ranks: dict[str, Any]) -> dict[str, Any]:
    """Root attributes at the end of a run: the size of blocks of the first rank with clients, and why."""
    first = next(k for k, clients in enumerate(ranks["clients"]) if clients)
    sizes = sorted({size for size, clients in zip(ranks["block_bytes"], ranks["clients"], strict=True) if clients})
    others = f"; ranks chose {sizes[0]:,} to {sizes[-1]:,} bytes" if len(sizes) > 1 else ""
    return {
        "block_bytes": ranks["block_bytes"][first],
        "block_bytes_reason": ranks["block_bytes_reason"][first] + others,
    }
