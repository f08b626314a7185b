"""python -m benchmarks.speed.predict: the cost model of a round: its error, and what it says of many ranks.

rounds  measure the parameters of this machine under the launcher, predict rounds from them, and compare:

            L, o, G    ping-pong of two ranks by bytes, and a stream of messages    (bare MPI)
            γ          additions of vectors by bytes                                (numpy)
            o_round, compute   rounds on two ranks by local work                    (mpifed, separate studies)
            turn       rounds with little work on 2 and 4 times as many ranks as cores, if such are to be predicted

        Interleaved with these are the rounds to predict, to which nothing is fitted: FedAvg with 5 full-gradient steps
        on logistic loss, 64 clients with 50 samples, by features and --ranks. Times are wall milliseconds of a round
        without evaluation and writing: the median over the rounds of a run, then the median over runs. The error is
        predicted/measured − 1. With more ranks than cores, marked with *, ranks share cores and wait for the
        scheduler, for which the model has a single parameter
ranks   how many ranks a study can use, by clients and features: the table of docs/clusters.md, a prediction. FedAvg
        with 5 full-gradient steps on 50 dense samples per client. A cell has the most ranks whose hosts work for at
        least half of the round (1 server and 2^k hosts, at most one host per client), and the time of the round.
        ``--machine`` has L + 2o, bandwidth, o, γ, o_round and compute; its default was measured by ``rounds --tiny`` on
        two cores that were busy; the network is assumed, and so is that no cable is shared
sums    sums over 64 to 16,384 ranks by the network that mpifed assumes when it chooses the way of replies, every rank
        on a node of its own, hosts with equal shares of 100,000 clients; where shares are no subtrees of the sum, a
        host sends several vectors. ``star``: every rank sends to rank 0. ``tree``: a binomial tree of ranks.
        ``slices``: each rank adds up a slice of the vectors. ``MPI_Reduce``: the better of a binomial tree and of
        reduce-scatter and gather, one vector a rank, in an order of additions that depends on the number of ranks.
        Times are milliseconds; ``taken`` is the way that mpifed takes. With --to also as a picture
"""

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed import cost_model as model
from benchmarks.speed.measuring import LAUNCHER, averaging, cores, launched, parser, play
from benchmarks.speed.pictures import page
from benchmarks.speed.printing import Table, figure, told
from mpifed.federation import sums
from mpifed.mpi.reduction_choice import NETWORK, ReductionChoice
from mpifed.report.palette import BLACK, BLUE, ORANGE, VERMILION

CLIENTS = 64
SAMPLES, STEPS = 50, 5
WORK = [(1, 1), (50, 100), (50, 500), (50, 3000)]  # samples and features that o_round and compute are fitted to
MACHINE = "1.5e-6,12e9,0.74e-6,0.043e-9,156e-6,1.48e-9"
MANY_CLIENTS = (100, 1_000, 10_000, 100_000)
MANY_FEATURES = (20, 1_000, 10_000, 100_000)
EFFICIENCY = 0.5  # of the hosts at least
MOST = 4096  # hosts
SUM_RANKS = tuple(2**k for k in range(6, 15))
LENGTHS = tuple(10**k for k in range(2, 8))
BARE = "MPI_Reduce"
WAYS = {"star": (VERMILION, "s", "-"), "tree": (BLUE, "o", "-"), "slices": (ORANGE, "^", "-"), BARE: (BLACK, "", "--")}


class Case(NamedTuple):
    """A study and its number of ranks."""

    ranks: int
    features: int
    samples: int = SAMPLES

    def study(self) -> model.Study:
        """The case as the cost model takes it; units of local work are samples × features × steps."""
        return model.Study(self.ranks, self.features, CLIENTS, STEPS * self.samples * self.features, cores=len(cores()))

    def measure(self, folder: Path, args: argparse.Namespace) -> float:
        """Median seconds of a round of a run."""
        words = averaging(CLIENTS, self.samples, self.features, args.rounds)
        return launched(args.launcher, self.ranks, words, folder / "run.h5", args.timeout).round


def calibrate(found: dict[Case, float], launcher: str, work: list[Case], crowd: list[Case]) -> model.Machine:
    """The parameters of this machine from bare messages, rounds on two ranks, and rounds that share cores."""
    units = [CLIENTS * case.study().work for case in work]
    machine = model.fit(**model.bare(launcher), rounds=(units, [found[case] for case in work]))
    if not crowd:
        return machine
    return model.fit_turn(machine, [case.study() for case in crowd], [found[case] for case in crowd])


def rounds(args: argparse.Namespace) -> None:
    """Predicted and measured rounds, and the error of the prediction."""
    there = len(cores())
    work = [Case(2, features, samples) for samples, features in WORK]
    crowd = [Case(k * there, 2, 1) for k in (2, 4) if k * there <= CLIENTS and max(args.ranks) > there]
    others = [
        Case(ranks, features) for features in ((20, 1000) if args.tiny else (20, 1000, 10_000)) for ranks in args.ranks
    ]
    cases = dict.fromkeys([*work, *crowd, *others])
    with tempfile.TemporaryDirectory() as folder:
        turns = [[case.measure(Path(folder), args) for case in cases] for _ in range(args.repeat)]
    found = dict(zip(cases, np.median(turns, axis=0).tolist(), strict=True))
    machine = calibrate(found, args.launcher, work, crowd)
    print(
        ", ".join(f"{name} {value:.3g}" for name, value in machine._asdict().items())
        + f" (s, s/B, s/unit); {there} cores"
    )
    columns = {"features": 6, "ranks": 5, **dict.fromkeys(model.Round._fields, 9)}
    table = Table({**columns, "predicted ms": 6, "measured ms": 6, "error %": 5}, args.to and args.to / "predict.csv")
    errors: dict[bool, list[float]] = {False: [], True: []}
    for case in others:
        parts = model.round_seconds(machine, case.study())
        error = 100 * (parts.total / found[case] - 1)
        errors[case.ranks > there].append(abs(error))
        times = [1e3 * part for part in (*parts, parts.total, found[case])]
        table.row(case.features, f"{case.ranks}{'*' if case.ranks > there else ''}", *times, f"{error:+.0f}")
    for crowded, values in errors.items():
        if values:
            which = "more" if crowded else "no more"
            print(f"error with {which} ranks than cores: median {np.median(values):.0f} %, largest {max(values):.0f} %")


def seconds(machine: model.Machine, ranks: int, m: int, n: int, reproducible: bool) -> float:
    """Predicted seconds of a round of m clients with n features each."""
    study = model.Study(ranks, n, m, STEPS * SAMPLES * n, reproducible)
    return model.round_seconds(machine, study).total


def most_ranks(machine: model.Machine, m: int, n: int, efficiency: float, reproducible: bool) -> tuple[int, float]:
    """The most ranks whose hosts have at least this parallel efficiency, and the seconds of a round on them."""
    spent = partial(seconds, machine, m=m, n=n, reproducible=reproducible)
    alone = spent(1)
    best, hosts = (1, alone), 2
    while hosts <= min(m, MOST):
        if alone / (hosts * spent(hosts + 1)) >= efficiency:
            best = (hosts + 1, spent(hosts + 1))
        hosts *= 2
    return best


def ranks_table(machine: model.Machine, reproducible: bool) -> str:
    """Markdown: a row for each number of clients, a column for each number of features."""
    lines = [["clients", *(f"{n:,} features" for n in MANY_FEATURES)]]
    for m in MANY_CLIENTS:
        found = [most_ranks(machine, m, n, EFFICIENCY, reproducible) for n in MANY_FEATURES]
        lines.append([f"{m:,}", *(f"{ranks:,} ({figure(1e3 * spent)} ms)" for ranks, spent in found)])
    head, *others = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|" + "---|" * (1 + len(MANY_FEATURES)), *others])


def machine_of(text: str) -> model.Machine:
    """The machine that --machine describes. ValueError or TypeError for too few numbers or too many."""
    latency, bandwidth, o, *rest = map(float, text.split(","))
    return model.Machine(max(latency - 2 * o, 0.0), o, 1 / bandwidth, *rest)


def ranks(args: argparse.Namespace) -> None:
    """The table of ranks."""
    print(ranks_table(args.machine, not args.plain))


class Prediction(NamedTuple):
    """Seconds of a sum of n numbers of 8 bytes over ranks, on each way, and the way that mpifed takes."""

    ranks: int
    n: int
    seconds: dict[str, float]
    chosen: str


def predictions(clients: int) -> Iterator[Prediction]:
    """The predicted times of all sizes."""
    for ranks in SUM_RANKS:
        cuts = sums.rank_offsets(np.ones(clients), ranks - 1)
        choice = ReductionChoice(
            range(ranks), [[], *(sums.find_subtrees(lo, hi, clients) for lo, hi in pairwise(cuts))]
        )
        for n in LENGTHS:
            found = choice.seconds("sum", 8 * n, choice.link)
            found[BARE] = model.reduce(NETWORK, 8 * n, ranks)
            yield Prediction(ranks, n, found, choice.way("sum", 8 * n))


def draw_sums(found: dict[int, dict[int, dict[str, float]]], taken: dict[int, list[float]], path: Path) -> bool:
    """Predicted seconds of a sum, n -> ranks -> way -> seconds, a panel for each n, and of the ways that are taken."""
    if find_spec("matplotlib") is None:
        return False
    with page(path, 4.2) as whole:
        axes = whole.subplots(-(-len(found) // 3), min(3, len(found)), sharex=True, squeeze=False)
        for axis, (n, own) in zip(axes.flat, found.items(), strict=False):
            for way, (colour, marker, line) in WAYS.items():
                look = {"marker": marker, "markersize": 3.5} if marker else {}
                times = [1e3 * seconds[way] for seconds in own.values()]
                axis.plot(list(own), times, color=colour, linestyle=line, label=way, **look)
            look = {"color": "0.6", "markersize": 8, "markerfacecolor": "none"}
            axis.plot(list(own), 1e3 * np.array(taken[n]), "o", label="taken by mpifed", **look)
            axis.set(xscale="log", yscale="log", title=f"n = {n:,}")
            axis.set_xticks(list(own)[::2], [f"{p:,}" for p in list(own)[::2]])
            axis.minorticks_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("milliseconds")
        for axis in axes[-1]:
            axis.set_xlabel("ranks")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        whole.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return True


def predicted_sums(args: argparse.Namespace) -> None:
    """The table and the picture of sums."""
    found = sorted(predictions(100_000), key=lambda one: one.n)
    if args.to:
        args.to.mkdir(parents=True, exist_ok=True)
    columns = {"n": 9, "ranks": 6, **dict.fromkeys(WAYS, 8), "taken": 6, "star : tree": 6, "mpifed : MPI_Reduce": 6}
    table = Table(columns, args.to and args.to / "predicted_sums.csv")
    for one in found:
        times = [1e3 * one.seconds[way] for way in WAYS]
        ratios = (one.seconds["star"] / one.seconds["tree"], one.seconds[one.chosen] / one.seconds[BARE])
        table.row(one.n, one.ranks, *times, one.chosen, *ratios)
    if args.to:
        panels = {n: {one.ranks: one.seconds for one in found if one.n == n} for n in LENGTHS}
        taken = {n: [one.seconds[one.chosen] for one in found if one.n == n] for n in LENGTHS}
        drawn = draw_sums(panels, taken, args.to / "predicted_sums.png")
        told(args.to, "predicted_sums.csv", "predicted_sums.png", drawn)


def main() -> None:
    options: dict[str, Any] = {"part": "rounds", "ranks": "2,3,4,8,16", "rounds": 40, "repeat": 3, "tiny": False}
    command = parser(__doc__, **options, plain=False, launcher=LAUNCHER, timeout=200.0, to=None)
    told = "the parameters of ranks (default: %(default)s)"
    command.add_argument("--machine", default=MACHINE, type=machine_of, help=told)
    play({"rounds": rounds, "ranks": ranks, "sums": predicted_sums}, command.parse_args())


if __name__ == "__main__":
    main()
