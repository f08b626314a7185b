"""python -m benchmarks.speed.scaling --ranks 1,2,3 --to folder: speed-up and efficiency by number of client ranks.

FedAvg with 5 full-gradient steps on logistic loss. Case B: 10,000 clients × 20 samples × 20 features; case A:
128 × 70 × 1024. The launcher ("mpirun -n {ranks}" or, in a SLURM allocation, "srun -n {ranks}") starts P client ranks
and one server. Strong scaling divides the same clients among the ranks; weak scaling gives every rank the same number:

    speed-up T(1)/T(P), efficiency T(1)/(P T(P))         strong
    efficiency T(1)/T(P)                                 weak

T is the wall time of a round without evaluation and writing, the median over the rounds of a run. Every repetition runs
all points and forms the ratios within itself; 1 stands for the smallest of --ranks, and P for multiples of it. Points
with more ranks than cores are marked with *: their ranks share cores, so they say little about mpifed.

Printed are median (smallest–largest) over the repetitions, and the parts of T: computation on the slowest rank,
communication, server.

The folder (default: scaling) gets scaling.csv, ranks.csv (seconds of each rank in the runs of strong scaling:
computing, waiting, MPI) and, if matplotlib is installed (extra plot), scaling.png. KEY=VALUE at the end overrides the
experiment, for example reproducible=false.

``apart``: cores of a node share memory bandwidth and caches, so that a node loses efficiency whatever runs on it. The
honest reference is P runs of mpifed without MPI, started at once, each with the clients of one client rank; T is then
that of the slowest, and each kind has its own T(1). ``together : apart`` compares rounds of both kinds at the same P:
what is above 1 is the program, messages and a server that takes turns with its hosts. ``CPU ms`` is the CPU time of all
processes for a round and P, less that of a run of two rounds; it asks for many rounds. Where others use the cores too,
times of the wall say little, and CPU times still do.
"""

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.measuring import (
    LAUNCHER,
    Spread,
    Table,
    averaging,
    children,
    cores,
    launched,
    parser,
    play,
    spread,
    write_csv,
)
from mpifed import Result
from mpifed.core.processor import parse_cpu_list
from mpifed.core.typing import Array
from mpifed.report.palette import BLUE, GREEN, ORANGE, SKY, VERMILION
from mpifed.report.style import matplotlib_style

CASES = {"A": (128, 70, 1024), "B": (10_000, 20, 20)}
PARTS = ("compute", "comm", "server")
SPLIT = ("computing", "waiting", "MPI")  # of the time of a rank
FEW = 2  # rounds of the run whose CPU time is taken off: imports, data, the first and the last evaluation
LOOKS = {"strong": (BLUE, "o"), "weak": (VERMILION, "s")}
SHARES = ((GREEN, ""), (SKY, "////"), (ORANGE, "...."))  # of SPLIT in the picture
GREY = "0.35"
CROWDED = "* more {} than cores: they share cores"


class Run(NamedTuple):
    """One run: seconds of a round and of its parts, and the split of the ranks' time."""

    seconds: float
    parts: tuple[float, ...]
    split: Array  # (ranks, 3)
    cores: int | None  # that the ranks share; None: one for each


class Scaled(NamedTuple):
    """A line of the table; ``gain`` is the speed-up for strong and the efficiency for weak scaling."""

    kind: str
    ranks: int
    clients: int
    seconds: Spread
    gain: Spread
    efficiency: Spread
    parts: tuple[float, ...]
    cores: int | None


def measure(ranks: int, clients: int, args: argparse.Namespace, folder: Path) -> Run:
    """Measure a run on ``ranks`` client ranks."""
    _, samples, features = CASES[args.case]
    words = (*averaging(clients, samples, features, args.rounds), *args.settings)
    outcome = launched(args.launcher, ranks + 1, words, folder / "run.h5", args.timeout)
    result = outcome.result
    parts = tuple(float(np.median(result.rounds[f"{part}_seconds"][1:])) for part in PARTS)
    return Run(outcome.round, parts, split(result), shared_cores(result))


def shared_cores(result: Result) -> int | None:
    """The number of cores where some ranks share one, None where each rank may have its own."""
    cores: dict[str, set[int]] = {}
    hosts = [str(host) for host in result.ranks["hostname"]]
    for host, allowed in zip(hosts, result.ranks["cpus"], strict=True):
        cores.setdefault(host, set()).update(parse_cpu_list(str(allowed)) if len(allowed) else ())
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
    """Return all runs, by kind and client ranks; the smallest number of ranks belongs to both kinds."""
    first, base = ranks[0], clients(args)
    jobs = {("strong", p): base for p in ranks} | {("weak", p): base * p // first for p in ranks[1:]}
    found: dict[tuple[str, int], list[Run]] = {job: [] for job in jobs}
    for _ in range(args.repeat):
        for (kind, p), count in jobs.items():
            found[kind, p].append(measure(p, count, args, folder))
    found["weak", first] = found["strong", first]
    return found


def points(found: dict[tuple[str, int], list[Run]], ranks: list[int], base: int) -> list[Scaled]:
    """Return the lines of the table; ``base``: clients of the smallest number of ranks."""
    result, first = [], ranks[0]
    alone = np.array([run.seconds for run in found["strong", first]])
    for kind in ("strong", "weak"):
        for p in ranks:
            own = found[kind, p]
            more, count = (p / first, base) if kind == "strong" else (1, base * p // first)
            seconds = np.array([run.seconds for run in own])
            gain = alone / seconds * (first if kind == "strong" else 1)
            parts = tuple(np.median([run.parts for run in own], axis=0).tolist())
            spreads = (spread(seconds), spread(gain), spread(alone / seconds / more))
            result.append(Scaled(kind, p, count, *spreads, parts, own[0].cores))
    return result


def write(found: list[Scaled], splits: dict[int, Array], folder: Path) -> None:
    """Write scaling.csv, seconds and ratios, and ranks.csv, the split of each rank's time."""
    spreads = [f"{name}{part}" for name in ("seconds", "speed_up", "efficiency") for part in ("", "_least", "_most")]
    parts = [f"{part}_seconds" for part in PARTS]
    head = ["kind", "client_ranks", "clients", *spreads, *parts, "oversubscribed"]
    rows = []
    for point in found:
        gain = point.gain if point.kind == "strong" else ("", "", "")
        ratios = [*point.seconds, *gain, *point.efficiency, *point.parts]
        rows.append([point.kind, point.ranks, point.clients, *ratios, int(point.cores is not None)])
    write_csv(folder / "scaling.csv", head, rows)
    own = [[p, rank, *row] for p, split in splits.items() for rank, row in enumerate(split.tolist())]
    write_csv(folder / "ranks.csv", ["client_ranks", "rank", *(f"{part}_seconds" for part in SPLIT)], own)


def show(found: list[Scaled]) -> None:
    """Print the table."""
    wide = dict.fromkeys(("round ms", "speed-up", "efficiency"), 22)
    table = Table({"kind": 6, "client ranks": 3, "clients": 7, **wide, **{f"{part} ms": 7 for part in PARTS}})
    for point in found:
        ranks = f"{point.ranks}{'' if point.cores is None else '*'}"
        gain = point.gain if point.kind == "strong" else ""
        ratios = (Spread(*(1e3 * value for value in point.seconds)), gain, point.efficiency)
        table.row(point.kind, ranks, point.clients, *ratios, *(1e3 * part for part in point.parts))
    if any(point.cores is not None for point in found):
        print(CROWDED.format("ranks"))


def scaling(args: argparse.Namespace) -> None:
    """Strong and weak scaling."""
    ranks = sorted(set(args.ranks))
    folder = args.to or Path("scaling")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as runs_in:
        measured = runs(args, ranks, Path(runs_in))
    found = points(measured, ranks, clients(args))
    splits = {p: measured["strong", p][-1].split for p in ranks}
    show(found)
    write(found, splits, folder)
    title = " ".join([f"FedAvg, 5 steps, logistic: case {args.case}", *args.settings])
    draw(found, splits, title, folder / "scaling.png")


def draw(found: list[Scaled], splits: dict[int, Array], title: str, path: Path) -> None:
    """Draw the efficiency of strong and weak scaling, and the split of each rank's time, where matplotlib is there."""
    print(f"written to {path.parent}: scaling.csv, ranks.csv")
    if find_spec("matplotlib") is None:
        print("the picture needs matplotlib: pip install matplotlib")
        return
    from matplotlib.figure import Figure

    with matplotlib_style():
        page = Figure(figsize=(7.2, 4.3), layout="constrained", dpi=150)
        efficiencies(page, found, splits)
        page.suptitle(title)
        page.savefig(path, dpi=150)


def efficiencies(page: Any, found: list[Scaled], splits: dict[int, Array]) -> None:
    """Draw the three panels."""
    axes = page.subplot_mosaic([["strong", "weak"], ["split", "split"]], height_ratios=[1.5, 1])
    for kind in LOOKS:
        curve(axes[kind], [point for point in found if point.kind == kind])
    entries = dict(zip(*reversed(axes["strong"].get_legend_handles_labels()), strict=True))
    axes["weak"].legend(list(entries.values()), list(entries), loc="center left", bbox_to_anchor=(1.0, 0.5))
    bars(axes["split"], splits)


def curve(axis: Any, points: list[Scaled]) -> None:
    """Draw the efficiency of one kind of scaling: measured, and what the cores allow."""
    kind, first = points[0].kind, points[0].ranks
    colour, marker = LOOKS[kind]
    ranks = np.array([point.ranks for point in points])
    middle, least, most = np.array([point.efficiency for point in points]).T
    shared = np.array([point.cores is not None for point in points])
    limit = [1 if point.cores is None else min(1, point.cores / point.ranks) for point in points]
    axis.plot(ranks, limit, "--", color=GREY, label="what the cores allow")
    look = {"color": colour, "linestyle": "none", "capsize": 3, "markersize": 5, "marker": marker}
    for chosen, face, label in ((~shared, colour, "measured"), (shared, "white", "measured,\nranks share cores")):
        if chosen.any():
            bounds = np.array([middle - least, most - middle])[:, chosen]
            axis.errorbar(ranks[chosen], middle[chosen], bounds, mfc=face, label=label, **look)
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(p) for p in ranks])
    axis.minorticks_off()
    axis.set_xlim(ranks[0] / 1.25, ranks[-1] * 1.25)
    axis.set_ylim(0, max(1.25, 1.1 * most.max()))
    if kind == "strong":
        times = ""
        formula = f"T({first})/(P T(P))" if first == 1 else f"{first} T({first})/(P T(P))"
    else:
        times = " × P" if first == 1 else f" × P/{first}"
        formula = f"T({first})/T(P)"
    axis.set(title=f"{kind}: {points[0].clients:,} clients{times}", ylabel=f"efficiency {formula}")
    axis.set_xlabel("client ranks P (plus one server)")


def bars(axis: Any, splits: dict[int, Array]) -> None:
    """Draw how each rank divides its time, in a group of bars for each number of client ranks, the server first."""
    for group, split in enumerate(splits.values()):
        shares = split / np.maximum(split.sum(axis=1, keepdims=True), 1e-12)
        width = 0.86 / len(shares)
        places = group - 0.43 + width * (np.arange(len(shares)) + 0.5)
        floor = np.zeros(len(shares))
        for share, name, (colour, hatch) in zip(shares.T, SPLIT, SHARES, strict=True):
            look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5 if len(shares) < 20 else 0}
            axis.bar(places, share, width, floor, label=name if group == 0 else None, **look)
            floor += share
        axis.text(places[0], 1.02, "server", ha="center", va="bottom", fontsize=6)
    labels = [f"P = {p}" for p in splits]
    axis.set_xticks(range(len(splits)), labels)
    axis.tick_params(axis="x", length=0)
    axis.set(ylim=(0, 1.15), yticks=[0, 0.5, 1], ylabel="share of a rank's time", title="strong: each rank's time")
    axis.grid(False, axis="x")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def clients(args: argparse.Namespace) -> int:
    """The clients of the smallest number of ranks."""
    return args.clients[0] if args.clients else CASES[args.case][0]


def at_once(kind: str, ranks: int, args: argparse.Namespace, folder: Path) -> list[Run]:
    """One run of a server and its client ranks, or as many runs without MPI."""
    if kind == "together":
        return [measure(ranks, ranks * clients(args), args, folder)]
    alone = argparse.Namespace(**{**vars(args), "launcher": ""})
    folders = [folder / str(number) for number in range(ranks)]
    for own in folders:
        own.mkdir(exist_ok=True)
    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(lambda own: measure(0, clients(args), alone, own), folders))


def timed(kind: str, ranks: int, args: argparse.Namespace, folder: Path) -> tuple[float, float, float]:
    """Seconds of a round, of what the slowest rank computes in it, and CPU seconds of all processes over P."""
    spent = [children()]
    for rounds in (FEW, args.rounds):
        found = at_once(kind, ranks, argparse.Namespace(**{**vars(args), "rounds": rounds}), folder)
        spent.append(children())
    start, whole = np.diff(spent)
    cpu = (whole - start) / (args.rounds - FEW) / ranks
    return max(run.seconds for run in found), max(run.parts[0] for run in found), cpu


def apart(args: argparse.Namespace) -> None:
    """Weak scaling beside processes that know nothing of each other."""
    ranks = sorted(set(args.ranks))
    jobs = [(kind, p) for kind in ("together", "apart") for p in ranks]
    with tempfile.TemporaryDirectory() as folder:
        turns = [[timed(*job, args, Path(folder)) for job in jobs] for _ in range(args.repeat)]
    found = {job: np.array([turn[k] for turn in turns]).T for k, job in enumerate(jobs)}
    wide = dict.fromkeys(("round ms", "computing ms", "CPU ms", "efficiency", "together : apart"), 22)
    table = Table({"kind": 8, "P": 3, **wide}, args.to and args.to / f"apart-{args.case}.csv")
    for (kind, p), times in found.items():
        crowded = "*" if p + (kind == "together") > len(cores()) else ""
        efficiency = spread(found[kind, ranks[0]][0] / times[0])
        ratio = spread(times[0] / found["apart", p][0]) if kind == "together" else ""
        table.row(kind, f"{p}{crowded}", *(spread(1e3 * own) for own in times), efficiency, ratio)
    if ranks[-1] + 1 > len(cores()):
        print(CROWDED.format("processes"))


def main() -> None:
    options: dict[str, Any] = {"part": "scaling", "case": "B", "rounds": 30, "repeat": 3, "clients": None, "to": None}
    args = parser(__doc__, ranks="1,2,3", **options, launcher=LAUNCHER, timeout=600.0, settings=None).parse_args()
    play({"scaling": scaling, "apart": apart}, args)


if __name__ == "__main__":
    main()
