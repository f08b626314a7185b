"""python -m benchmarks.speed.passes: where the CPU time of a round of networks goes, on one core.

The rounds are those of ``benchmarks.speed.networks``. ``round ms`` is a round as it is, the best of the repetitions.
Then a clock runs in each kernel that PyTorch calls in the rounds of further runs, and in each step of the optimiser;
again the best counts. Shares of the round: ``products``, kernels of matrix products and convolutions; ``gradient``,
joining the gradients of all parameters to one vector; ``kernels``, all others; ``step``, the optimiser's, in numpy;
``rest``, what is left: torch.func.vmap, autograd, Python and mpifed between kernels. The clock counts as kernels.
"""

import os
import sys
import time
from collections import defaultdict
from typing import Any
from unittest.mock import patch

from benchmarks.speed.measuring import among, parser
from benchmarks.speed.models import CASES, torch
from benchmarks.speed.networks import ROOT, Task, ours
from benchmarks.speed.printing import Table
from mpifed.algorithms.parts.optimizers import Optimizer
from mpifed.experiment import rounds as round_loop

TorchDispatchMode: Any = torch.utils._python_dispatch.TorchDispatchMode
PRODUCTS = ("bmm", "mm", "addmm", "baddbmm", "convolution", "convolution_backward")
STEP = "the optimiser's step"


class Clock(TorchDispatchMode):  # type: ignore[misc]
    """CPU seconds in kernels of PyTorch, by their names, while ``on``."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.on = False

    def __torch_dispatch__(self, kernel: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        begun = time.process_time()
        found = kernel(*args, **(kwargs or {}))
        if self.on:
            self.seconds[kernel.overloadpacket.__name__] += time.process_time() - begun
        return found


def watched(task: Task) -> dict[str, float]:
    """CPU seconds a round of the parts, without the rest."""
    clock = Clock()
    played, step = round_loop.play_round, Optimizer.step
    rounds = iter(range(task.rounds + 1))

    def marked(*args: Any) -> Any:
        clock.on = next(rounds) > 1  # the first round warms up
        found = played(*args)
        clock.on = False
        return found

    def clocked(*args: Any) -> Any:
        begun = time.process_time()
        found = step(*args)
        if clock.on:
            clock.seconds[STEP] += time.process_time() - begun
        return found

    with clock, patch.object(round_loop, "play_round", marked), patch.object(Optimizer, "step", clocked):
        ours(task.study(), time.process_time)
    seconds = {name: value / (task.rounds - 1) for name, value in clock.seconds.items()}
    found = {"products": sum(seconds.pop(name, 0.0) for name in PRODUCTS), "gradient": seconds.pop("cat", 0.0)}
    optimizer = seconds.pop(STEP)
    return found | {"kernels": sum(seconds.values()), "step": optimizer}


def cells(task: Task, repeat: int) -> list[Any]:
    """Milliseconds of a round, and the shares of its parts."""
    whole = min(ours(task.study(), time.process_time).round for _ in range(repeat))
    parts = min((watched(task) for _ in range(repeat)), key=lambda parts: sum(parts.values()))
    shares = [part / whole for part in parts.values()]
    return [1e3 * whole, *shares, 1 - sum(shares)]


def main() -> None:
    options: dict[str, Any] = {"rounds": 6, "repeat": 3, "cases": "MLP", "tiny": False, "to": None, "settings": None}
    args = parser(__doc__, **options).parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    sys.path.insert(0, ROOT)
    names = ("products", "gradient", "kernels", "step", "rest")
    table = Table({"network": 9, "round ms": 8, **dict.fromkeys(names, 5)}, args.to and args.to / "passes.csv")
    for name in among(args.cases, CASES):
        task = Task(CASES[name].tiny() if args.tiny else CASES[name], args.rounds, settings=tuple(args.settings))
        table.row(name, *cells(task, args.repeat))


if __name__ == "__main__":
    main()
