"""python -m benchmarks.speed.studies.tree --to folder: how sums over ranks reach rank 0, counted and measured.

counts     a short study on 2 … 128 ranks with each kind of reduction: whether the model has the bits of one process,
           and the messages and bytes that rank 0 receives in a round, from /ranks. FedAvg, linear regression; one
           request a round. The number is the difference of two runs over the difference of their rounds.
crossing   microseconds of a sum of n numbers on 2, 3 and 4 ranks, one vector a host, by kind and n

With more ranks than cores, ranks share them: counts hold all the same, times do not. The folder gets counts.csv and
crossing.csv. ``predicted_sums`` has the times that the model predicts for more ranks.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import figure, printed, starter, write_csv
from mpifed.experiment.config import experiment
from mpifed.experiment.job import Job
from mpifed.experiment.run import start
from mpifed.federation import sums
from mpifed.federation.request import HostReport
from mpifed.mpi import launcher
from mpifed.mpi.world import World

KINDS = ("star", "tree", "nodes", "slices")
CLIENTS = 256
FEATURES = 100
ROUNDS = (1, 3)
LENGTHS = tuple(10**k for k in range(2, 7))


class Count(NamedTuple):
    """What rank 0 receives for a round, and whether the model is that of one process to the bit."""

    ranks: int
    kind: str
    same_bits: bool
    messages: float
    bytes: float


def study(world: Any, rounds: int, kind: str) -> dict[str, Any] | None:
    """A short run: at rank 0 its model as text and what /ranks says of rank 0, None on the others."""
    table = {
        "data": {"name": "linreg-noniid", "clients": CLIENTS, "features": FEATURES},
        "algorithm": {"name": "fedavg"},
        "selection": {"name": "all"},
        "rounds": rounds,
        "evaluate": {"every": rounds},
        "stop": {"gradient": 0.0},
        "reduction": kind,
    }
    recorder = start(Job(experiment(table)), world)
    if recorder is None:
        return None
    result = recorder.result()
    assert result.x is not None
    names = ("mpi_messages_received", "mpi_bytes_received")
    return {"x": result.x.tobytes().hex(), **{name: float(result.ranks[name][0]) for name in names}}


def probe(what: str) -> None:
    """Under a launcher: rank 0 prints what it counts, or measures, as JSON."""
    from mpifed.mpi.communicator import Communicator

    world = Communicator()
    found = {kind: measured(world, kind) for kind in KINDS} if what == "crossing" else counted(world)
    if world.rank == 0:
        print(json.dumps(found))


def counted(world: Any) -> dict[str, Any]:
    """Kind -> the runs with few and with many rounds."""
    return {kind: [study(world, rounds, kind) for rounds in ROUNDS] for kind in KINDS}


def measured(world: Any, kind: str) -> list[float]:
    """Seconds of a short broadcast and a sum of n numbers from every host, by n; the median of several turns."""
    from mpifed.mpi.channel import Channel
    from mpifed.mpi.replies import Replies

    channel = Channel(world, list(range(world.size)), "float64", kind)
    medians = []
    for n in LENGTHS:
        replies = Replies(channel, "sum", channel.choice.vectors("sum"), n)
        rows, report = (np.ones((1, n)), HostReport()) if world.rank else (None, None)
        turns, go = [], np.zeros(8)
        for _ in range(max(10, min(100, 2_000_000 // n))):
            begun = time.perf_counter()
            world.comm.Bcast(go, 0)
            replies.reduce(rows, report, lambda rows: sums.total(rows, channel.tree))
            turns.append(time.perf_counter() - begun)
        medians.append(float(np.median(turns[len(turns) // 10 :])))
    return medians


def launched(args: argparse.Namespace, ranks: int, what: str) -> Any:
    """What ``probe`` finds on a number of ranks."""
    command = [*starter(args.launcher, ranks), sys.executable, "-m", "benchmarks.speed.studies.tree", "--probe", what]
    return json.loads(printed(command, 300))


def counts(args: argparse.Namespace) -> Iterator[Count]:
    """The study on all numbers of ranks and with all kinds."""
    alone = study(World(), ROUNDS[1], "auto")
    assert alone is not None
    for ranks in args.ranks:
        for kind, (few, many) in launched(args, ranks, "counts").items():
            messages, size = (
                (many[name] - few[name]) / (ROUNDS[1] - ROUNDS[0])
                for name in ("mpi_messages_received", "mpi_bytes_received")
            )
            yield Count(ranks, kind, many["x"] == alone["x"], messages, size)


def tables(args: argparse.Namespace) -> None:
    """Print the tables and write them."""
    print(f"{'ranks':>6}  {'kind':<8}{'bits':<7}{'messages':>9}{'bytes':>12}   to rank 0, a round")
    found = []
    for one in counts(args):
        found.append(one)
        bits = "same" if one.same_bits else "OTHER"
        print(f"{one.ranks:>6}  {one.kind:<8}{bits:<7}{one.messages:>9g}{one.bytes:>12,.0f}", flush=True)
    write_csv(args.to / "counts.csv", Count._fields, found)
    print(f"\nmeasured µs of a sum\n{'ranks':>6}{'n':>9}" + "".join(f"{kind:>9}" for kind in KINDS))
    rows = []
    for ranks in args.crossing:
        for n, *seconds in zip(LENGTHS, *launched(args, ranks, "crossing").values(), strict=True):
            rows.append([ranks, n, *seconds])
            print(f"{ranks:>6}{n:>9}" + "".join(f"{figure(1e6 * value):>9}" for value in seconds), flush=True)
    write_csv(args.to / "crossing.csv", ["ranks", "n", *(f"{kind}_seconds" for kind in KINDS)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--ranks", type=int, nargs="*", default=[2, 3, 4, 8, 16, 32, 64, 128], help="counted (2 … 128)")
    option("--crossing", type=int, nargs="*", default=[2, 3, 4], help="numbers of ranks to measure (2 3 4)")
    option("--to", type=Path, default=Path("tree"), help="folder of the tables (default: tree)")
    option("--launcher", default="mpirun -n {ranks}", help="command that starts the ranks (default: %(default)r)")
    option("--probe", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.probe:
        return probe(args.probe)
    if launcher.announced()[0] is not None:
        parser.error("start this program without a launcher; it starts the ranks itself")
    args.to.mkdir(parents=True, exist_ok=True)
    tables(args)
    print(f"written to {args.to}: counts.csv, crossing.csv")


if __name__ == "__main__":
    main()
