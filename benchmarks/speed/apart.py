"""python -m benchmarks.speed.apart --ranks 1,2: weak scaling beside as many processes that know nothing of each other.

Cores of a node share memory bandwidth and caches, so that a node loses efficiency whatever runs on it. The honest
reference is P runs of mpifed without MPI, started at once, each with the clients of one client rank:

    efficiency T(1)/T(P), each kind with its own T(1)

T is the wall time of a round without evaluation and writing, as in benchmarks.speed.scaling: the median over the rounds
of a run, of runs apart the slowest. ``computing`` is what the slowest rank computes of it. ``together : apart``
compares the rounds of both kinds at the same P: what is above 1 is the program, messages and a server that takes turns
with its hosts. ``CPU ms`` is the CPU time of all processes for a round and P, less that of a run of two rounds; it asks
for many rounds. Where others use the cores too, times of the wall say little, and CPU times still do. All points are
run in each repetition; printed are median (smallest–largest).

Points with more processes than cores (P + 1 together, P apart) are marked with *.
"""

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed.busy import cores
from benchmarks.speed.common import Spread, spread
from benchmarks.speed.scaling import CASES, add_options, measure
from benchmarks.speed.startup import children

FEW = 2  # rounds of the run whose CPU time is taken off: imports, data, the first and the last evaluation


class Times(NamedTuple):
    """Seconds of a round, of what the slowest rank computes in it, and CPU seconds of all processes over P."""

    seconds: float
    computing: float
    cpu: float = 0.0


def together(ranks: int, clients: int, args: argparse.Namespace, folder: Path) -> Times:
    """A round of one run: a server and ``ranks`` client ranks with ``clients`` each."""
    run = measure(ranks, ranks * clients, args, folder)
    return Times(run.seconds, run.parts[0])


def apart(copies: int, clients: int, args: argparse.Namespace, folder: Path) -> Times:
    """A round of the slowest of ``copies`` runs at once, without MPI, with ``clients`` each."""
    alone = argparse.Namespace(**{**vars(args), "launcher": ""})
    folders = [folder / str(number) for number in range(copies)]
    for own in folders:
        own.mkdir(exist_ok=True)
    with ThreadPoolExecutor(copies) as pool:
        runs = list(pool.map(lambda own: measure(0, clients, alone, own), folders))
    return Times(max(run.seconds for run in runs), max(run.parts[0] for run in runs))


KINDS = {"together": together, "apart": apart}


def timed(kind: str, ranks: int, clients: int, args: argparse.Namespace, folder: Path) -> Times:
    """A point of one repetition."""
    spent = [children()]
    for rounds in (FEW, args.rounds):
        found = KINDS[kind](ranks, clients, argparse.Namespace(**{**vars(args), "rounds": rounds}), folder)
        spent.append(children())
    start, run = np.diff(spent)
    return found._replace(cpu=(run - start) / (args.rounds - FEW) / ranks)


def table(found: dict[tuple[str, int], list[Times]], ranks: list[int]) -> list[str]:
    """A line for each kind and number of ranks."""
    lines = [
        f"{'kind':<10}{'P':>4}  {'round ms':<24}{'computing ms':<24}{'CPU ms':<24}{'efficiency':<24}together : apart"
    ]
    for kind in KINDS:
        first = seconds(found[kind, ranks[0]])
        for p in ranks:
            own = seconds(found[kind, p])
            crowded = "*" if p + (kind == "together") > len(cores()) else " "
            columns = [spread(1e3 * own), spread(1e3 * np.array([one.computing for one in found[kind, p]]))]
            columns += [spread(1e3 * np.array([one.cpu for one in found[kind, p]])), spread(first / own)]
            ratio = str(against(found, p)) if kind == "together" else ""
            lines.append(f"{kind:<10}{p:>4}{crowded} " + "".join(f"{column!s:<24}" for column in columns) + ratio)
    return [line.rstrip() for line in lines]


def against(found: dict[tuple[str, int], list[Times]], ranks: int) -> Spread:
    """A round together over a round apart."""
    return spread(seconds(found["together", ranks]) / seconds(found["apart", ranks]))


def seconds(times: list[Times]) -> np.ndarray:
    return np.array([one.seconds for one in times])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--ranks", default="1,2", help="numbers of client ranks and of runs apart (default: 1,2)")
    option("--clients", type=int, help="clients of a client rank (default: the case's)")
    add_options(parser)
    args = parser.parse_args()
    ranks = sorted({int(word) for word in args.ranks.split(",")})
    clients = args.clients or CASES[args.case][0]
    found: dict[tuple[str, int], list[Times]] = {(kind, p): [] for kind in KINDS for p in ranks}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.repeat):
            for kind, p in found:
                found[kind, p].append(timed(kind, p, clients, args, Path(folder)))
    print("\n".join(table(found, ranks)))
    if ranks[-1] + 1 > len(cores()):
        print("* more processes than cores: they share cores")


if __name__ == "__main__":
    main()
