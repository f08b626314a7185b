"""Reports at the end of a run: each rank sends its numbers, and rank 0 writes the tables /ranks and /clients."""

import resource
import socket
import sys
from operator import attrgetter
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.experiment.prepare import PreparedRun
from mpifed.federation.callback import ClientTable
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.transport import RankTraffic, Transport
from mpifed.mpi.world import World
from mpifed.results import provenance
from mpifed.results.recorder import Recorder


def report(host: Host | None, traffic: RankTraffic) -> dict[str, Any]:
    """Return the row of this rank, with or without a host, in /ranks: column -> value."""
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
        "max_device_bytes": peak_device_bytes(),
        "hostname": socket.gethostname(),
        "threads": provenance.count_threads(),
        "cpus": provenance.describe_cpus(),
        "blas": provenance.describe_blas(),
        "block_bytes": 0 if host is None else host.block_size.bytes,
        "block_bytes_reason": "" if host is None else host.block_size.reason,
        "sample_space_clients": sum(map(attrgetter("sample_space_clients"), host.same_size if host else [])),
        "io_seconds": 0.0,  # rank 0 fills in its own
    }


def peak_device_bytes() -> int:
    """Return the peak of the bytes that PyTorch allocated on a GPU; 0 where it has used none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return max([torch.cuda.max_memory_allocated(k) for k in range(torch.cuda.device_count())], default=0)


def collect_reports(world: World, host: Host | None, traffic: RankTraffic) -> tuple[list[dict[str, Any]], Array]:
    """Collect at rank 0 the reports of all ranks and the seconds of every client (m,); all ranks call it."""
    rows = world.collect(report(host, traffic))
    seconds = np.zeros(0) if host is None else host.seconds[host.slot]
    return rows, world.collect_rows(seconds, [row["clients"] for row in rows])


def report_tables(
    rows: list[dict[str, Any]], seconds: Array, data: Dataset, fed: Federation
) -> tuple[dict[str, Any], ...]:
    """Return the tables /ranks and /clients of the result: name -> column."""
    ranks = {name: [row[name] for row in rows] for name in rows[0]}
    clients = {
        "samples": data.sizes,
        "rank": np.repeat(np.arange(len(rows)), ranks["clients"]),
        "times_selected": fed.times_selected,
        "compute_seconds": seconds,
    }
    return ranks, clients


def write_reports(
    world: World, parts: PreparedRun, transport: Transport, recorder: Recorder, fed: Federation, tables: dict[str, Any]
) -> ClientTable:
    """Write the tables of ranks and clients after the last round, with those of callbacks; return that of ranks."""
    ranks, clients = report_tables(*collect_reports(world, parts.host, transport.traffic), parts.data, fed)
    for name, table in ({"ranks": ranks} | tables | {"clients": clients | tables.get("clients", {})}).items():
        recorder.table(name, table)
    return ranks


def block_attributes(ranks: dict[str, Any]) -> dict[str, Any]:
    """Return the root attributes about blocks: the size at the first rank with clients, and the reason."""
    first = next(k for k, clients in enumerate(ranks["clients"]) if clients)
    sizes = sorted({size for size, clients in zip(ranks["block_bytes"], ranks["clients"], strict=True) if clients})
    others = f"; ranks chose {sizes[0]:,} to {sizes[-1]:,} bytes" if len(sizes) > 1 else ""
    count = sum(ranks["sample_space_clients"])
    local = {"local_steps": f"with Gram matrices of samples for {count:,} of {sum(ranks['clients']):,} clients"}
    return (local if count else {}) | {
        "block_bytes": ranks["block_bytes"][first],
        "block_bytes_reason": ranks["block_bytes_reason"][first] + others,
    }
