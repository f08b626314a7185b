"""python -m benchmarks.speed.scaling --ranks 1,2,3 --to folder: speed-up and efficiency by number of client ranks.

FedAvg with 5 full-gradient steps on logistic loss. Case B: 10,000 clients × 20 samples × 20 features; case A:
128 × 70 × 1024. The launcher ("mpirun -n {ranks}" or, in a SLURM allocation, "srun -n {ranks}") starts P client ranks
and one server. Strong scaling divides the same clients among the ranks; weak scaling gives every rank the same number:

    speed-up T(1)/T(P), efficiency T(1)/(P T(P))         strong
    efficiency T(1)/T(P)                                 weak

T is the wall time of a round without evaluation and writing, the median over the rounds of a run. Every repetition
runs all points and forms the ratios within itself. 1 stands for the smallest of --ranks, and P is counted in multiples
of it.

Printed are median (smallest–largest) over the repetitions, the efficiency that the cost model predicts, and the parts
of T: computation on the slowest rank, communication, server. The model is calibrated on the smallest of --ranks, with
all clients and with an eighth of them, and on bare messages between two ranks; nothing else is fitted to it, except
that one number, from rounds without work, stands for the waiting of ranks that share a core.

Points with more ranks than cores are marked with *: their ranks share cores, so they say little about mpifed.

The folder gets scaling.csv, ranks.csv (seconds of each rank in the runs of strong scaling: computing, waiting, MPI)
and, if matplotlib is installed (extra plot), scaling.png. KEY=VALUE at the end overrides the experiment, for example
reproducible=false.
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed import cost_model as model
from benchmarks.speed.common import Spread, figure, gaussian, launched, round_seconds, spread, told, write_csv
from benchmarks.speed.messages import bare
from benchmarks.speed.scaling_picture import Point, draw
from mpifed import Result
from mpifed.core.typing import Array

CASES = {"A": (128, 70, 1024), "B": (10_000, 20, 20)}
PARTS = ("compute", "comm", "server")
SPLIT = ("computing", "waiting", "MPI")  # of the time of a rank
FEWER = 8  # the model is calibrated on all clients and on this part of them


class Run(NamedTuple):
    """One run: seconds of a round and of its parts, the split of the ranks' time, and the round for the cost model."""

    seconds: float
    parts: tuple[float, ...]
    split: Array  # (ranks, 3)
    study: model.Study


def measure(ranks: int, clients: int, args: argparse.Namespace, folder: Path, *words: str) -> Run:
    """Measure a run on ``ranks`` client ranks; ``words``: further overrides."""
    _, samples, features = CASES[args.case]
    words = (
        *gaussian(clients, samples, features),
        "algorithm=fedavg",
        "algorithm.k0=5",
        "selection=all",
        f"rounds={args.rounds}",
        f"evaluate.every={args.rounds}",
        *args.override,
        *words,
    )
    path = folder / "run.h5"
    result = launched(args.launcher, ranks + 1, words, path, args.timeout).result
    path.unlink()
    assert result.x is not None
    study = model.Study(
        ranks + 1,
        result.x.size,
        clients,
        1.0,
        reproducible="reproducible=false" not in args.override,
        cores=shared_cores(result),
        itemsize=result.x.itemsize,
    )
    parts = tuple(float(np.median(result.rounds[f"{part}_seconds"][1:])) for part in PARTS)
    return Run(float(np.median(round_seconds(result))), parts, split(result), study)


def shared_cores(result: Result) -> int | None:
    """The number of cores where some ranks share one, None where each rank may have its own."""
    cores: dict[str, set[int]] = {}
    hosts = [str(host) for host in result.ranks["hostname"]]
    for host, allowed in zip(hosts, result.ranks["cpus"], strict=True):
        ranges = [[int(end) for end in part.split("-")] for part in str(allowed).split(",") if part]
        cores.setdefault(host, set()).update(cpu for ends in ranges for cpu in range(ends[0], ends[-1] + 1))
    crowded = any(hosts.count(host) > len(own) > 0 for host, own in cores.items())
    return sum(map(len, cores.values())) if crowded else None


def split(result: Result) -> Array:
    """Seconds of each rank in rounds (ranks, 3): computing, waiting for others, MPI."""
    ranks = result.ranks
    computing = ranks["compute_seconds"] + ranks["evaluate_seconds"]
    computing[0] += np.nansum(result.rounds["server_seconds"])
    waiting = ranks["wait_seconds"].copy()
    waiting[1:] = np.maximum(waiting[1:] - ranks["io_seconds"][0], 0)  # hosts wait while the server writes
    return np.column_stack([computing, waiting, ranks["comm_seconds"]])


def runs(args: argparse.Namespace, ranks: list[int], folder: Path) -> dict[tuple[str, int], list[Run]]:
    """All runs, by kind and client ranks; ``few`` and ``idle`` are runs that only the model needs."""
    first, base = ranks[0], args.clients or CASES[args.case][0]
    jobs = {("strong", p): base for p in ranks} | {("weak", p): base * p // first for p in ranks[1:]}
    jobs["few", first] = max(first, base // FEWER)
    found: dict[tuple[str, int], list[Run]] = {job: [] for job in jobs}
    for _ in range(args.repeat):
        for (kind, p), clients in jobs.items():
            found[kind, p].append(measure(p, clients, args, folder))
    found["weak", first] = found["strong", first]
    crowded = [p for p in ranks if found["strong", p][0].study.cores is not None]
    for p in crowded[:1]:
        idle = ("data.samples=1", "data.features=2")
        found["idle", p] = [measure(p, p, args, folder, *idle) for _ in range(args.repeat)]
    return found


def middle(found: list[Run]) -> float:
    """Seconds of a round, median over the repetitions."""
    return float(np.median([run.seconds for run in found]))


def calibrate(found: dict[tuple[str, int], list[Run]], first: int, args: argparse.Namespace) -> model.Machine:
    """The machine of the cost model; its unit of work is a client."""
    machine = model.fit(**bare(args.launcher))._replace(compute=1.0)
    known = [(found[kind, first][0].study, middle(found[kind, first])) for kind in ("few", "strong")]
    costs = [(model.round_seconds(machine, study), seconds) for study, seconds in known]
    rest = [max(seconds - cost.total + cost.compute, 0.01 * seconds) for cost, seconds in costs]
    o_round, compute = model.line([cost.compute for cost, _ in costs], rest)
    machine = machine._replace(o_round=o_round, compute=compute)
    idle = [(own[0].study._replace(work=0.0), middle(own)) for (kind, _), own in found.items() if kind == "idle"]
    return model.fit_turn(machine, *zip(*idle, strict=True)) if idle else machine


def points(found: dict[tuple[str, int], list[Run]], ranks: list[int], machine: model.Machine) -> list[Point]:
    """The lines of the table; the smallest number of ranks belongs to both kinds."""
    result, first = [], ranks[0]
    alone = np.array([run.seconds for run in found["strong", first]])
    least = model.round_seconds(machine, found["strong", first][0].study).total
    for kind in ("strong", "weak"):
        for p in ranks:
            own, more = found[kind, p], p / first if kind == "strong" else 1
            seconds, study = np.array([run.seconds for run in own]), own[0].study
            gain = alone / seconds * (first if kind == "strong" else 1)
            efficiency, predicted = alone / seconds / more, least / model.round_seconds(machine, study).total / more
            parts = tuple(np.median([run.parts for run in own], axis=0).tolist())
            spreads = (spread(seconds), spread(gain), spread(efficiency))
            result.append(Point(kind, p, study.m, *spreads, parts, predicted, study.cores))
    return result


def write(found: list[Point], splits: dict[int, Array], folder: Path) -> None:
    """Write scaling.csv, seconds and ratios, and ranks.csv, the split of each rank's time."""
    spreads = [f"{name}{part}" for name in ("seconds", "speed_up", "efficiency") for part in ("", "_least", "_most")]
    parts = [f"{part}_seconds" for part in PARTS]
    head = ["kind", "client_ranks", "clients", *spreads, *parts, "predicted_efficiency", "oversubscribed"]
    rows = []
    for point in found:
        gain = point.gain if point.kind == "strong" else ("", "", "")
        ratios = [*point.seconds, *gain, *point.efficiency, *point.parts, point.predicted]
        rows.append([point.kind, point.ranks, point.clients, *ratios, int(point.cores is not None)])
    write_csv(folder / "scaling.csv", head, rows)
    own = [[p, rank, *row] for p, split in splits.items() for rank, row in enumerate(split.tolist())]
    write_csv(folder / "ranks.csv", ["client_ranks", "rank", *(f"{part}_seconds" for part in SPLIT)], own)


def show(found: list[Point]) -> None:
    """Print the table."""
    ratios = f"{'round ms':<22}{'speed-up':<22}{'efficiency':<22}{'model':<7}"
    parts = "".join(f"{part + ' ms':>11}" for part in PARTS)
    print(f"{'kind':<8}{'client ranks':>12} {'clients':>9}   {ratios}{parts}")
    for point in found:
        milliseconds = Spread(*(1e3 * value for value in point.seconds))
        print(
            f"{point.kind:<8}{point.ranks:>12}{' ' if point.cores is None else '*'}{point.clients:>9}   "
            f"{milliseconds!s:<22}{str(point.gain) if point.kind == 'strong' else '':<22}{point.efficiency!s:<22}"
            f"{figure(point.predicted):<7}" + "".join(f"{figure(1e3 * part):>11}" for part in point.parts)
        )
    if any(point.cores is not None for point in found):
        print("* more ranks than cores: they share cores")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of runs on several ranks."""
    option = parser.add_argument
    option("--launcher", default="mpirun -n {ranks}", help="command that starts the ranks (default: %(default)r)")
    option("--case", choices=sorted(CASES), default="B", help="size of the problem (default: B)")
    option("--rounds", type=int, default=30, help="rounds of a run (default: 30)")
    option("--repeat", type=int, default=3, help="interleaved repetitions (default: 3)")
    option("--timeout", type=float, default=600, help="maximum seconds of a run (default: 600)")
    option("override", nargs="*", metavar="KEY=VALUE", help="overrides of the experiment, for all runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--ranks", default="1,2,3", help="numbers of client ranks, comma-separated (default: 1,2,3)")
    option("--to", type=Path, default=Path("scaling"), help="folder of tables and picture (default: scaling)")
    option("--clients", type=int, help="clients; for weak scaling on the smallest --ranks (default: the case's)")
    add_options(parser)
    args = parser.parse_args()
    ranks = sorted({int(word) for word in args.ranks.split(",")})
    args.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.to) as folder:
        measured = runs(args, ranks, Path(folder))
    machine = calibrate(measured, ranks[0], args)
    found = points(measured, ranks, machine)
    splits = {p: measured["strong", p][-1].split for p in ranks}
    show(found)
    write(found, splits, args.to)
    title = " ".join([f"FedAvg, 5 steps, logistic: case {args.case}", *args.override])
    told(args.to, "scaling.csv, ranks.csv", "scaling.png", draw(found, splits, title, args.to / "scaling.png"))


if __name__ == "__main__":
    main()
