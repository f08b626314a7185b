"""python -m benchmarks.speed.studies.ranks: how many ranks a study can use, by clients and features.

The table of docs/clusters.md: a prediction of the cost model, not a measurement. The round is FedAvg with 5
full-gradient steps on 50 dense samples per client. A cell has the most ranks whose hosts work for at least half of the
round (1 server and 2^k hosts, at most one host per client; --efficiency), and the time of the round.

The defaults of the machine were measured by ``benchmarks.speed.studies.predict --quick`` on two cores that were busy;
the network is assumed, and so is that no cable is shared. Options replace all of them.
"""

import argparse

from benchmarks.speed import cost_model as model
from benchmarks.speed.common import figure

CLIENTS = (100, 1_000, 10_000, 100_000)
FEATURES = (20, 1_000, 10_000, 100_000)
SAMPLES, STEPS = 50, 5
MOST = 4096  # hosts


def seconds(machine: model.Machine, ranks: int, m: int, n: int, reproducible: bool) -> float:
    """Predicted seconds of a round of m clients with n features each."""
    study = model.Study(ranks, n, m, STEPS * SAMPLES * n, reproducible)
    return model.round_seconds(machine, study).total


def most_ranks(machine: model.Machine, m: int, n: int, efficiency: float, reproducible: bool) -> tuple[int, float]:
    """The most ranks whose hosts have at least this parallel efficiency, and the seconds of a round on them."""
    alone = seconds(machine, 1, m, n, reproducible)
    best, hosts = (1, alone), 1
    while hosts <= min(m, MOST):
        spent = seconds(machine, hosts + 1, m, n, reproducible)
        if hosts > 1 and alone / (hosts * spent) >= efficiency:
            best = (hosts + 1, spent)
        hosts *= 2
    return best


def table(machine: model.Machine, efficiency: float, reproducible: bool) -> str:
    """Markdown: a row for each number of clients, a column for each number of features."""
    lines = ["| clients | " + " | ".join(f"{n:,} features" for n in FEATURES) + " |", "|---|" + "---|" * len(FEATURES)]
    for m in CLIENTS:
        cells = [most_ranks(machine, m, n, efficiency, reproducible) for n in FEATURES]
        lines.append(
            f"| {m:,} | " + " | ".join(f"{ranks:,} ({figure(1e3 * spent)} ms)" for ranks, spent in cells) + " |"
        )
    return "\n".join(lines)


def machine(args: argparse.Namespace) -> model.Machine:
    """The machine that the options describe."""
    latency = max(args.latency - 2 * args.overhead, 0.0)
    return model.Machine(latency, args.overhead, 1 / args.bandwidth, args.addition, args.round, args.compute)


def parser() -> argparse.ArgumentParser:
    """The options; their defaults give the table of docs/clusters.md."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value, meaning in (
        ("efficiency", 0.5, "least parallel efficiency of the hosts"),
        ("latency", 1.5e-6, "seconds of an empty message (assumed)"),
        ("bandwidth", 12e9, "bytes per second (assumed)"),
        ("overhead", 0.74e-6, "seconds that a message takes a core"),
        ("addition", 0.043e-9, "seconds per byte of a vector added to another"),
        ("round", 156e-6, "seconds of a round without work"),
        ("compute", 1.48e-9, "seconds per sample, feature and step"),
    ):
        found.add_argument(f"--{name}", type=float, default=value, help=f"{meaning} (default: %(default)s)")
    found.add_argument("--plain", action="store_true", help="sums by MPI (reproducible = false)")
    return found


def main() -> None:
    args = parser().parse_args()
    print(table(machine(args), args.efficiency, not args.plain))


if __name__ == "__main__":
    main()
