"""python -m benchmarks.speed.scaling --ranks 1,2,3 --to folder: speed-up and efficiency by number of client ranks.

FedAvg with 5 full-gradient steps on logistic loss. Case B: 10,000 clients × 20 samples × 20 features; case A:
128 × 70 × 1024. The launcher ("mpirun -n {ranks}" or, in a SLURM allocation, "srun -n {ranks}") starts P client ranks
and one server. Strong scaling divides the same clients among the ranks; weak scaling gives every rank the same number:

    speed-up T(1)/T(P), efficiency T(1)/(P T(P))         strong
    efficiency T(1)/T(P)                                 weak

T is the wall time of a round without evaluation and writing, the median over the rounds of a run. Every repetition
runs all points and forms the ratios within itself. 1 stands for the smallest of --ranks, and P is counted in multiples
of it.

Printed are median (smallest–largest) over the repetitions, and the parts of T: computation on the slowest rank,
communication, server. The folder gets scaling.csv, and scaling.png if matplotlib is installed (extra plot). Ranks that
share a core disturb each other, so only P + 1 up to the number of cores says something about mpifed. KEY=VALUE at the
end overrides the experiment, for example reproducible=false.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import Spread, figure, launched, round_seconds, spread

CASES = {"A": (128, 70, 1024), "B": (10_000, 20, 20)}
PARTS = ("compute", "comm", "server")


class Point(NamedTuple):
    """One line of the table; ``gain`` is the speed-up for strong and the efficiency for weak scaling."""

    kind: str
    ranks: int
    clients: int
    seconds: Spread
    gain: Spread
    efficiency: Spread
    parts: tuple[float, ...]


def measure(ranks: int, clients: int, args: argparse.Namespace, folder: Path) -> tuple[float, ...]:
    """Seconds of a round and of its parts on ``ranks`` client ranks."""
    _, samples, features = CASES[args.case]
    words = [
        "data=gaussian",
        f"data.clients={clients}",
        f"data.samples={samples}",
        f"data.features={features}",
        "problem=logistic",
        "algorithm=fedavg",
        "algorithm.k0=5",
        "selection=all",
        f"rounds={args.rounds}",
        f"evaluate.every={args.rounds}",
        *args.override,
    ]
    path = folder / "run.h5"
    result = launched(args.launcher, ranks + 1, words, path, args.timeout).result
    path.unlink()
    parts = (np.median(result.rounds[f"{part}_seconds"][1:]) for part in PARTS)
    return float(np.median(round_seconds(result))), *map(float, parts)


def points(args: argparse.Namespace, ranks: list[int], folder: Path) -> list[Point]:
    """Measure all points of both curves; the smallest number of ranks belongs to both."""
    first = ranks[0]
    base = args.clients or CASES[args.case][0]
    jobs = {("strong", p): base for p in ranks} | {("weak", p): base * p // first for p in ranks[1:]}
    found: dict[tuple[str, int], list[Any]] = {job: [] for job in jobs}
    for _ in range(args.repeat):
        for (kind, p), clients in jobs.items():
            found[kind, p].append(measure(p, clients, args, folder))
    found["weak", first], jobs["weak", first] = found["strong", first], base
    result = []
    alone = np.array(found["strong", first])[:, 0]
    for kind in ("strong", "weak"):
        for p in ranks:
            seconds, *parts = np.array(found[kind, p]).T
            ratio = alone / seconds
            gain, efficiency = (ratio * first, ratio * first / p) if kind == "strong" else (ratio, ratio)
            medians = tuple(float(np.median(part)) for part in parts)
            result.append(Point(kind, p, jobs[kind, p], spread(seconds), spread(gain), spread(efficiency), medians))
    return result


def write(found: list[Point], path: Path) -> None:
    """Write scaling.csv: seconds and ratios."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        spreads = [
            f"{name}{part}" for name in ("seconds", "speed_up", "efficiency") for part in ("", "_least", "_most")
        ]
        rows.writerow(["kind", "client_ranks", "clients", *spreads, *(f"{part}_seconds" for part in PARTS)])
        for point in found:
            gain = point.gain if point.kind == "strong" else ("", "", "")
            rows.writerow(
                [point.kind, point.ranks, point.clients, *point.seconds, *gain, *point.efficiency, *point.parts]
            )


def draw(found: list[Point], title: str, path: Path) -> bool:
    """Write scaling.png. Returns False if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    page, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    first = found[0].ranks
    strong = f"speed-up {f'{first}·' if first > 1 else ''}T({first})/T(P)"
    curve(axes[0], [point for point in found if point.kind == "strong"], strong, "#0072B2", "o")
    curve(axes[1], [point for point in found if point.kind == "weak"], f"efficiency T({first})/T(P)", "#D55E00", "s")
    page.suptitle(title)
    page.savefig(path, dpi=150)
    plt.close(page)
    return True


def curve(axis: Any, points: list[Point], label: str, colour: str, marker: str) -> None:
    """Draw one kind of scaling with its ideal."""
    kind, first = points[0].kind, points[0].ranks
    ranks = [point.ranks for point in points]
    middle, least, most = np.array([point.gain for point in points]).T
    axis.plot(ranks, ranks if kind == "strong" else [1] * len(ranks), "--", color="0.3", linewidth=1.5, label="ideal")
    bars = [middle - least, most - middle]
    look = {"color": colour, "marker": marker, "linewidth": 2, "capsize": 4}
    axis.errorbar(ranks, middle, bars, label="measured: median and range", **look)
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(p) for p in ranks])
    if kind == "strong":
        axis.set_yscale("log", base=2)
        axis.set_yticks(ranks, [str(p) for p in ranks])
    else:
        axis.set_ylim(0, max(1.1, 1.05 * most.max()))
    axis.minorticks_off()
    times = "" if kind == "strong" else " × P" if first == 1 else f" × P/{first}"
    title = f"{kind} scaling, {points[0].clients:,} clients{times}"
    axis.set(title=title, ylabel=label, xlabel="client ranks P (plus one server)")
    axis.grid(color="0.85")
    axis.legend(frameon=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--ranks", default="1,2,3", help="numbers of client ranks, comma-separated (default: 1,2,3)")
    option("--to", type=Path, default=Path("scaling"), help="folder of CSV and picture (default: scaling)")
    option("--launcher", default="mpirun -n {ranks}", help="command that starts the ranks (default: %(default)r)")
    option("--case", choices=sorted(CASES), default="B", help="size of the problem (default: B)")
    option("--clients", type=int, help="clients; for weak scaling on the smallest --ranks (default: the case's)")
    option("--rounds", type=int, default=30, help="rounds of a run (default: 30)")
    option("--repeat", type=int, default=3, help="interleaved repetitions (default: 3)")
    option("--timeout", type=float, default=600, help="maximum seconds of a run (default: 600)")
    option("override", nargs="*", metavar="KEY=VALUE", help="overrides of the experiment, for all runs")
    args = parser.parse_args()
    ranks = sorted({int(word) for word in args.ranks.split(",")})
    args.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.to) as folder:
        found = points(args, ranks, Path(folder))
    print(
        f"{'kind':<8}{'client ranks':>12}{'clients':>9}   {'round ms':<22}{'speed-up':<22}{'efficiency':<24}"
        + "".join(f"{part + ' ms':>11}" for part in PARTS)
    )
    for point in found:
        milliseconds = Spread(*(1e3 * value for value in point.seconds))
        print(
            f"{point.kind:<8}{point.ranks:>12}{point.clients:>9}   {milliseconds!s:<22}"
            f"{str(point.gain) if point.kind == 'strong' else '':<22}{point.efficiency!s:<24}"
            + "".join(f"{figure(1e3 * part):>11}" for part in point.parts)
        )
    write(found, args.to / "scaling.csv")
    title = " ".join([f"FedAvg, 5 steps, logistic: case {args.case}", *args.override])
    if draw(found, title, args.to / "scaling.png"):
        print(f"written to {args.to / 'scaling.csv'} and {args.to / 'scaling.png'}")
    else:
        print(f"written to {args.to / 'scaling.csv'}; the picture needs matplotlib: pip install matplotlib")


if __name__ == "__main__":
    main()
