"""python -m benchmarks.speed.studies.predicted_sums --to folder: predicted times of a sum over 64 to 16,384 ranks.

No measurement: the LogGP model of ``mpifed.mpi.loggp`` with the network that mpifed assumes when it chooses the way of
replies, every rank on a node of its own, and the bytes that mpifed sends. Hosts have equal shares of the clients
(--clients); where shares are no subtrees of the sum, a host sends several vectors.

``star``: every rank sends to rank 0. ``tree``: a binomial tree of ranks. ``slices``: each rank adds up a slice of the
vectors. ``MPI_Reduce``: the better of a binomial tree and of reduce-scatter and gather, one vector a rank, in an order
of additions that depends on the number of ranks. Times are milliseconds; * is the way that mpifed takes.

The folder gets predicted_sums.csv and, if matplotlib is installed (extra plot), predicted_sums.png.
"""

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import figure, told, write_csv
from benchmarks.speed.cost_model import reduce
from mpifed.federation import sums
from mpifed.mpi.loggp import NETWORK
from mpifed.mpi.reduction_choice import Choice
from mpifed.report.palette import BLACK, BLUE, ORANGE, VERMILION
from mpifed.report.style import drawing

RANKS = tuple(2**k for k in range(6, 15))
FEATURES = tuple(10**k for k in range(2, 8))
BARE = "MPI_Reduce"
WAYS = {"star": (VERMILION, "s", "-"), "tree": (BLUE, "o", "-"), "slices": (ORANGE, "^", "-"), BARE: (BLACK, "", "--")}


class Prediction(NamedTuple):
    """Seconds of a sum of n numbers of 8 bytes over ranks, on each way, and the way that mpifed takes."""

    ranks: int
    n: int
    seconds: dict[str, float]
    chosen: str


def predictions(clients: int) -> Iterator[Prediction]:
    """The predicted times of all sizes."""
    for ranks in RANKS:
        cuts = sums.cuts(np.ones(clients), ranks - 1)
        choice = Choice(range(ranks), [[], *(sums.nodes(lo, hi, clients) for lo, hi in pairwise(cuts))])
        for n in FEATURES:
            seconds = choice.seconds("sum", 8 * n, choice.link)
            seconds[BARE] = reduce(NETWORK, 8 * n, ranks)
            yield Prediction(ranks, n, seconds, choice.way("sum", 8 * n))


def show(found: list[Prediction]) -> None:
    """Print the table."""
    print(f"{'n':>10}{'ranks':>8}" + "".join(f"{way:>13}" for way in WAYS) + "   star : tree   mpifed : MPI_Reduce")
    for one in sorted(found, key=lambda one: one.n):
        cells = [f"{figure(1e3 * one.seconds[way])}{'*' if way == one.chosen else ' '}" for way in WAYS]
        star, bare = (figure(one.seconds["star"] / one.seconds["tree"]), figure(ratio(one)))
        print(f"{one.n:>10,}{one.ranks:>8,}" + "".join(f"{cell:>13}" for cell in cells) + f"{star:>14}{bare:>22}")


def ratio(one: Prediction) -> float:
    """The time of the way that mpifed takes, in times of MPI_Reduce."""
    return one.seconds[one.chosen] / one.seconds[BARE]


def write(found: list[Prediction], path: Path) -> None:
    """Write predicted_sums.csv."""
    rows = [[one.n, one.ranks, *(one.seconds[way] for way in WAYS), one.chosen] for one in found]
    write_csv(path, ["n", "ranks", *(f"{way}_seconds" for way in WAYS), "chosen"], rows)


def draw(found: list[Prediction], path: Path) -> bool:
    """Write the picture, a panel for each n. Returns False if matplotlib is not installed."""
    try:
        import matplotlib.figure
    except ImportError:
        return False
    with drawing():
        page = matplotlib.figure.Figure(figsize=(7.2, 4.2), layout="constrained", dpi=150)
        sizes = sorted({one.n for one in found})
        axes = page.subplots(-(-len(sizes) // 3), min(3, len(sizes)), sharex=True, squeeze=False)
        for axis, n in zip(axes.flat, sizes, strict=False):
            panel(axis, [one for one in found if one.n == n])
        for axis in axes[:, 0]:
            axis.set_ylabel("milliseconds")
        for axis in axes[-1]:
            axis.set_xlabel("ranks")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        page.legend(handles, labels, loc="outside upper center", ncols=len(labels))
        page.savefig(path, dpi=150)
    return True


def panel(axis: Any, own: list[Prediction]) -> None:
    """Draw the times of one n."""
    ranks = [one.ranks for one in own]
    for way, (colour, marker, line) in WAYS.items():
        times = [1e3 * one.seconds[way] for one in own]
        look = {"marker": marker, "markersize": 3.5} if marker else {}
        axis.plot(ranks, times, color=colour, linestyle=line, label=way, **look)
    taken = [1e3 * one.seconds[one.chosen] for one in own]
    axis.plot(ranks, taken, "o", color="0.6", markersize=8, markerfacecolor="none", label="taken by mpifed")
    axis.set(xscale="log", yscale="log", title=f"n = {own[0].n:,}")
    axis.set_xticks(ranks[::2], [f"{p:,}" for p in ranks[::2]])
    axis.minorticks_off()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder, most = Path("predicted_sums"), max(RANKS)
    parser.add_argument("--to", type=Path, default=folder, help="folder of table and picture (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=100_000, help=f"at least {most:,} (default: %(default)s)")
    args = parser.parse_args()
    if args.clients < most:
        parser.error(f"--clients {args.clients} is too few: each of up to {most - 1:,} hosts needs one")
    args.to.mkdir(parents=True, exist_ok=True)
    found = list(predictions(args.clients))
    show(found)
    write(found, args.to / "predicted_sums.csv")
    told(args.to, "predicted_sums.csv", "predicted_sums.png", draw(found, args.to / "predicted_sums.png"))


if __name__ == "__main__":
    main()
