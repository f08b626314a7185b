"""python -m benchmarks.speed.scaling --ranks 1,2,3 --to folder: rounds a second by number of ranks that host clients.

FedAvg with 5 full-gradient steps on logistic loss. Case B: 10,000 clients × 20 samples × 20 features; case A: 128 × 70 ×
1024. P client ranks and one that serves are started by the launcher, "mpirun -n {ranks}" or "srun -n {ranks}", so inside a
SLURM allocation too. Strong scaling divides the same clients among the ranks, weak scaling gives every rank as many:

    speed-up T(1)/T(P), efficiency T(1)/(P T(P))         strong
    efficiency T(1)/T(P)                                 weak

T is the wall time of a round without measuring and writing, the median over the rounds of a run; every repetition runs all
points in turn and compares within the turn; 1 stands for the fewest ranks asked for, with P counted in them. Printed
are median (least–most) of the repetitions, and of T the parts: computing on the slowest rank, communication, server. Written
to the folder: scaling.csv, and scaling.png where matplotlib is there (extra plot). More ranks than cores spin on the
same cores: only P + 1 up to the number of cores tells anything of mpifed. KEY=VALUE at the end overrides the experiment, for
example reproducible=false.
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
    """One line: ``gain`` is the speed-up of strong, the efficiency of weak scaling."""

    kind: str
    ranks: int
    clients: int
    seconds: Spread
    gain: Spread
    efficiency: Spread
    parts: tuple[float, ...]


def measure(ranks: int, clients: int, args: argparse.Namespace, folder: Path) -> tuple[float, ...]:
    """Seconds of a round, and of its parts, on so many client ranks."""
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
    """Every point of both curves; the fewest ranks belong to both."""
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
    """scaling.csv: seconds and plain ratios."""
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
    """scaling.png; False where there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    page, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    first = found[0].ranks
    shown = {
        "strong": (f"speed-up {f'{first}·' if first > 1 else ''}T({first})/T(P)", "#0072B2", "o"),
        "weak": (f"efficiency T({first})/T(P)", "#D55E00", "s"),
    }
    for axis, (kind, (label, colour, marker)) in zip(axes, shown.items(), strict=True):
        curve = [point for point in found if point.kind == kind]
        ranks = [point.ranks for point in curve]
        middle, least, most = np.array([point.gain for point in curve]).T
        ideal = ranks if kind == "strong" else [1] * len(ranks)
        axis.plot(ranks, ideal, "--", color="0.3", linewidth=1.5, label="ideal")
        axis.errorbar(
            ranks,
            middle,
            [middle - least, most - middle],
            color=colour,
            marker=marker,
            linewidth=2,
            capsize=4,
            label="measured: median and range",
        )
        axis.set_xscale("log", base=2)
        axis.set_xticks(ranks, [str(p) for p in ranks])
        if kind == "strong":
            axis.set_yscale("log", base=2)
            axis.set_yticks(ranks, [str(p) for p in ranks])
        else:
            axis.set_ylim(0, max(1.1, 1.05 * most.max()))
        axis.minorticks_off()
        times = "" if kind == "strong" else " × P" if first == 1 else f" × P/{first}"
        axis.set(
            title=f"{kind} scaling, {curve[0].clients:,} clients{times}",
            ylabel=label,
            xlabel="client ranks P (and one that serves)",
        )
        axis.grid(color="0.85")
        axis.legend(frameon=False)
    page.suptitle(title)
    page.savefig(path, dpi=150)
    plt.close(page)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="1,2,3", help="numbers of client ranks, comma-separated (default: 1,2,3)")
    parser.add_argument("--to", type=Path, default=Path("scaling"), help="folder of CSV and picture (default: scaling)")
    parser.add_argument("--launcher", default="mpirun -n {ranks}", help="what starts ranks (default: %(default)r)")
    parser.add_argument("--case", choices=sorted(CASES), default="B")
    parser.add_argument(
        "--clients", type=int, help="clients, in weak scaling on the fewest ranks (default: the case's)"
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, in turns (default: 3)")
    parser.add_argument("--timeout", type=float, default=600, help="most seconds of a run (default: 600)")
    parser.add_argument("override", nargs="*", metavar="KEY=VALUE", help="overrides of the experiment, for all runs")
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
