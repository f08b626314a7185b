"""python -m benchmarks.speed.networks: CPU time of a round of networks on one core, ours : a plain torch loop.

One epoch of mini-batches of 10 in float32, 50 samples a client, all clients in every round: MLP 784–200–10 with 50
clients, as the problems ``torch`` and ``mlp``; LeNet on 28 × 28 with 20; ResNet-8 with group norm on 3 × 32 × 32 with
10. The loop is ``benchmarks.speed.plain_networks``; ``vmap`` there trains groups of FedAvg's clients in one pass, and
shows what batching by torch alone gains. All run in the same process in turn. Before they are timed, ours and the loop
take two rounds with the same draws in double precision and must end at the same model but for rounding: ``deviation``
is the distance of the models divided by that from the start.

Ours includes recording, byte counts and timers, and the time in which repeated passes are traced; ``late`` is the ratio
of the median round of the second half, when all are. The first round is a warm-up and is left out, and so is
evaluating, which has a ratio of its own: loss, gradient and accuracy of all clients. Reported are CPU milliseconds a
round, best and median of the repetitions, and ratios of the best. Overrides such as problem.batched=false change ours.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone: ``busy`` is the
ratio of the copy that has the worst, and ``quoted`` the worse of alone and busy, which is the number to tell others.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed import busy

MISSING = "networks are trained by PyTorch, which is not installed: pip install mpifed[torch]"
CASES = ("MLP", "LeNet", "ResNet-8")
METHODS = ("fedavg", "momentum", "adam", "fedprox", "scaffold", "flame")


class Ratios(NamedTuple):
    """Best to best: rounds of ours, late ones and those of vmap, and evaluating, to those of the loop."""

    ours: float
    late: float
    vmap: float
    evaluating: float


def ratios(turns: Sequence[Sequence[float]]) -> Ratios:
    """The ratios of the best of each."""
    ours, late, loop, vmap, ours_evaluating, loop_evaluating, _ = np.min(turns, axis=0).tolist()
    return Ratios(ours / loop, late / loop, vmap / loop, ours_evaluating / loop_evaluating)


def line(job: Any, repeat: int, also_busy: bool) -> str:
    """A line of the table of a ``network_turns.Measured``."""
    from benchmarks.speed.network_turns import prepare

    prepared, cores = partial(prepare, job), busy.cores()
    (alone,) = busy.copies(prepared, repeat, cores[:1])
    best, middle = np.min(alone, axis=0) * 1e3, np.median(alone, axis=0) * 1e3
    found = ratios(alone)
    cells = "".join(f"{f'{best[k]:.2f} ({middle[k]:.2f})':<19}" for k in (0, 2))
    vmap = "–" if np.isnan(found.vmap) else f"{found.vmap:.3f}"
    text = f"{job.case.name:<10}{job.problem:<8}{job.method:<10}{cells}{alone[0].deviation:<11.1e}"
    text += f"{vmap:>6}{found.evaluating:>12.3f}{found.late:>8.3f}{found.ours:>8.3f}"
    if not also_busy:
        return text
    worst = max(ratios(copy).ours for copy in busy.copies(prepared, repeat, cores))
    return f"{text}{worst:>8.3f}{max(worst, found.ours):>8.3f}"


def head(also_busy: bool) -> str:
    """The head of the table."""
    cells = (
        f"{'network':<10}{'problem':<8}{'method':<10}{'ours ms (median)':<19}{'loop ms (median)':<19}{'deviation':<11}"
    )
    cells += f"{'vmap':>6}{'evaluating':>12}{'late':>8}{'alone':>8}"
    if not also_busy:
        return f"{cells}   (to the loop)"
    return f"{cells}{'busy':>8}{'quoted':>8}   (to the loop; busy: {len(busy.cores())} copies)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("overrides", nargs="*", metavar="KEY=VALUE", help="settings of our run")
    option("--rounds", type=int, default=4, help="rounds of a run, two or more (default: 4)")
    option("--repeat", type=int, default=5, help="repetitions (default: 5)")
    option("--cases", default=",".join(CASES), help="comma-separated (default: %(default)s)")
    option("--method", default="fedavg", help=f"comma-separated, of {', '.join(METHODS)}, or all (default: fedavg)")
    option("--loader", action="store_true", help="the loop takes its mini-batches from torch's DataLoader")
    option("--tiny", action="store_true", help="two clients of 20 samples: shows that everything runs, not how fast")
    busy.add_option(parser)
    args = parser.parse_args()
    if find_spec("torch") is None:
        print(MISSING)
        return
    from benchmarks.speed.models import CASES as KNOWN
    from benchmarks.speed.network_turns import Measured

    sys.path.insert(0, str(Path(__file__).parents[2]))  # where problem.module is looked for
    print(head(args.busy))
    for method in METHODS if args.method == "all" else args.method.split(","):
        for name in args.cases.split(","):
            case = KNOWN[name].tiny() if args.tiny else KNOWN[name]
            for problem in ("torch", "mlp") if case.hidden else ("torch",):
                job = Measured(case, problem, method, args.rounds, tuple(args.overrides), args.loader)
                print(line(job, args.repeat, args.busy), flush=True)


if __name__ == "__main__":
    main()
