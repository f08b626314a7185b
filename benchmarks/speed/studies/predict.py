"""python -m benchmarks.speed.studies.predict: predict the time of rounds from measured parameters, and compare.

It starts all measurements itself, under the launcher "mpirun -n {ranks}" or "srun -n {ranks}":

    L, o, G    ping-pong of two ranks by bytes, and a stream of messages    (bare MPI)
    γ          additions of vectors by bytes                                (numpy)
    o_round, compute   rounds on two ranks by local work                    (mpifed, separate studies)
    turn       rounds with little work on 2 and 4 times as many ranks as cores, if such rounds are to be predicted

Interleaved with these it measures the rounds to predict, to which nothing is fitted: FedAvg with 5 full-gradient steps
on logistic loss, 64 clients with 50 samples, by features and ranks. Times are wall milliseconds of a round without
evaluation and writing: the median over the rounds of a run, then the median over runs. The error is predicted/measured
− 1. With more ranks than cores, ranks share cores and wait for the scheduler; the model has a single parameter for
that, so the error of these rounds is reported separately.

At the end it prints a plan for clusters. Its network (--latency, --bandwidth) is assumed, not measured, and so is that
no cable is shared; overhead, additions and computation are those of this machine.
"""

import argparse
import os
import tempfile
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed import cost_model as model
from benchmarks.speed.common import figure, gaussian, launched, round_seconds
from benchmarks.speed.messages import bare
from mpifed.mpi import launcher

CLIENTS = 64
SAMPLES = 50
STEPS = 5
WORK = [(1, 1), (50, 100), (50, 500), (50, 3000)]  # samples and features that o_round and compute are fitted to
HEADINGS = "".join(f"{part:>10}" for part in model.Round._fields)


class Case(NamedTuple):
    """A study and its number of ranks."""

    ranks: int
    features: int
    samples: int = SAMPLES

    @property
    def work(self) -> int:
        """Units of local work of a client: samples × features × steps."""
        return STEPS * self.samples * self.features

    def study(self, args: argparse.Namespace) -> model.Study:
        """The case as the cost model takes it."""
        return model.Study(
            self.ranks, self.features, CLIENTS, self.work, reproducible=args.reproducible == "true", cores=args.cores
        )


def measured(cases: list[Case], args: argparse.Namespace) -> dict[Case, float]:
    """Seconds of a round of each case: the median over interleaved runs of the median over rounds."""
    found: dict[Case, list[float]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        for _, case in product(range(args.repeat), found):
            words = [
                *gaussian(CLIENTS, case.samples, case.features),
                "algorithm=fedavg",
                f"algorithm.k0={STEPS}",
                "selection=all",
                f"rounds={args.rounds}",
                f"evaluate.every={args.rounds}",
                f"reproducible={args.reproducible}",
            ]
            found[case].append(
                float(np.median(round_seconds(launched(args.launcher, case.ranks, words, path, 200).result)))
            )
            path.unlink()
    return {case: float(np.median(seconds)) for case, seconds in found.items()}


def calibrate(args: argparse.Namespace) -> tuple[model.Machine, dict[Case, float]]:
    """Fit the parameters of this machine. Returns them and the measured rounds that were not used for it."""
    work = [Case(2, features, samples) for samples, features in WORK]
    crowd = [Case(k * args.cores, 2, 1) for k in (2, 4) if k * args.cores <= CLIENTS and max(args.ranks) > args.cores]
    others = [Case(ranks, features) for features in args.features for ranks in args.ranks]
    messages, seconds = bare(args.launcher), measured([*work, *crowd, *others], args)
    machine = model.fit(**messages, rounds=([CLIENTS * case.work for case in work], [seconds[case] for case in work]))
    if crowd:
        machine = model.fit_turn(machine, [case.study(args) for case in crowd], [seconds[case] for case in crowd])
    return machine, {case: seconds[case] for case in others}


def compare(machine: model.Machine, found: dict[Case, float], args: argparse.Namespace) -> None:
    """Print predicted and measured rounds, and the error of the prediction."""
    errors: dict[bool, list[float]] = {False: [], True: []}
    print(f"\n{'features':>8}{'ranks':>6}{HEADINGS} predicted   measured ms   error %")
    for case, seconds in found.items():
        parts = model.round_seconds(machine, case.study(args))
        error = 100 * (parts.total / seconds - 1)
        errors[case.ranks > args.cores].append(error)
        print(f"{case.features:>8}{case.ranks:>6}{milliseconds(parts)}{figure(1e3 * seconds):>14}{error:+10.0f}")
    for crowded, values in errors.items():
        if values:
            print(
                f"error with {'more' if crowded else 'no more'} ranks than the {args.cores} cores: "
                f"median {np.median(np.abs(values)):.0f} %, largest {np.abs(values).max():.0f} %"
            )


def plan(machine: model.Machine, args: argparse.Namespace) -> None:
    """Print the predicted time of a round on clusters with the user's network."""
    machine = machine._replace(L=max(args.latency - 2 * machine.o, 0.0), G=1 / args.bandwidth)
    print(
        f"\na plan, not a measurement: {args.clients:,} clients × {SAMPLES} samples × {args.plan_features} features, "
        f"{args.cores_per_node} ranks per node;\n"
        f"assumed network: {1e6 * args.latency:g} µs, {args.bandwidth / 1e9:g} GB/s\n"
        f"{'nodes':>6}{'ranks':>7}  {'sums':<13}{HEADINGS}  round ms"
    )
    for nodes, reproducible in product((10, 100, 1000), (True, False)):
        ranks = min(nodes * args.cores_per_node, args.clients + 1)
        work = Case(ranks, args.plan_features).work
        parts = model.round_seconds(machine, model.Study(ranks, args.plan_features, args.clients, work, reproducible))
        print(f"{nodes:>6}{ranks:>7}  {'reproducible' if reproducible else 'plain':<13}{milliseconds(parts)}")


def milliseconds(parts: model.Round) -> str:
    """The parts of a round and its total, for a table."""
    return "".join(f"{figure(1e3 * part):>10}" for part in (*parts, parts.total))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--launcher", default="mpirun -n {ranks}", help="command that starts the ranks (default: %(default)r)")
    option("--ranks", type=int, nargs="+", default=[2, 3, 4, 8, 16], help="ranks including the server (2 3 4 8 16)")
    option("--features", type=int, nargs="+", default=[20, 1000, 10_000], help="features (default: 20 1000 10000)")
    option("--cores", type=int, default=len(os.sched_getaffinity(0)), help="cores in total (default: %(default)s)")
    option("--rounds", type=int, default=40, help="rounds of a run (default: 40)")
    option("--repeat", type=int, default=3, help="interleaved runs of each study (default: 3)")
    option("--reproducible", choices=("true", "false"), default="true", help="kind of sums (default: true)")
    option("--quick", action="store_true", help="few small studies, once each; takes less than a minute")
    for key, value, meaning in (
        ("latency", 1.5e-6, "seconds of an empty message"),
        ("bandwidth", 12e9, "bytes per second"),
        ("cores-per-node", 16, "cores per node"),
        ("clients", 100_000, "clients"),
        ("plan-features", 1000, "features"),
    ):
        option(f"--{key}", type=type(value), default=value, help=f"{meaning} of the plan (default: %(default)s)")
    args = parser.parse_args()
    if launcher.announced()[0] is not None:
        parser.error("start this program without a launcher; it starts the ranks itself")
    if args.quick:
        args.ranks = [2, 3, 4]
        args.features = [20, 1000]
        args.rounds = 15
        args.repeat = 1
    machine, found = calibrate(args)
    L, o, o_round, turn = 1e6 * np.array([machine.L, machine.o, machine.o_round, machine.turn])
    G, gamma, compute = 1e9 * np.array([machine.G, machine.gamma, machine.compute])
    print(
        f"L {L:.2f} µs, o {o:.2f} µs, G {G:.3f} ns/B, γ {gamma:.3f} ns/B, o_round {o_round:.0f} µs,\n"
        f"compute {compute:.3f} ns per sample, feature and step, turn {turn:.0f} µs; {args.cores} cores"
    )
    compare(machine, found, args)
    plan(machine, args)


if __name__ == "__main__":
    main()
