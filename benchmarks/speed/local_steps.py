"""python -m benchmarks.speed.local_steps: CPU time of a round over its number of local steps, in both forms of them.

FedAvg with full-gradient steps on logistic loss, all clients in every round: a plain numpy loop over clients, mpifed
with steps on the parameters (space=parameters) and on the scores of samples (space=samples), in one process in turn;
milliseconds a round, the least of the repetitions, and ratios to the loop. A: 128 clients × 70 samples × 1024 features;
W: 128 × 70 × 7850; M: 200 × 20 × 784; S: 1000 × 100 × 100, where the scores do not pay. What a run does once is part of
its rounds: K_i = A_iA_iᵀ, and the sizes of blocks that the first rounds try.

``reading`` and ``scores`` are what a round on the scores cannot go below: two products of all samples with a vector,
and a product of all K_i with one a step, by numpy. With ``--busy`` a copy on each core measures at once, after the
measurement alone, and ratios of the worst copy are told. With ``--to`` a picture of each case, if matplotlib is there.
"""

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.measuring import Table, among, everyone, figure, kernels, parser, quoted, tiny
from benchmarks.speed.rounds import MU, away, fedavg_loop, ours
from mpifed.experiment import config
from mpifed.extend import Array
from mpifed.report.style import matplotlib_style

CASES = {"A": (128, 70, 1024), "W": (128, 70, 7850), "M": (200, 20, 784), "S": (1000, 100, 100)}
LINES = {"loop": "plain loop", "parameters": "mpifed, on the parameters", "scores": "mpifed, on the scores"}


class Times(NamedTuple):
    """One repetition: CPU seconds of a round of each, of two readings and of the products with K_i; a deviation."""

    loop: float
    parameters: float
    scores: float
    reading: float
    products: float
    deviation: float


def prepare(case: str, steps: int, kind: str, rounds: int) -> Callable[[], Times]:
    """A repetition, to be run."""
    m, d, n = CASES[case]
    table = {
        "rounds": rounds,
        "dtype": "float32",
        "kernels": kind,
        "data": {"name": "gaussian", "clients": m, "samples": d, "features": n},
        "problem": {"name": "logistic", "mu": MU},
        "evaluate": {"every": 20},
        "stop": {"gradient": 0.0},
        "algorithm": {"name": "fedavg", "k0": steps, "step": {"name": "constant", "a": 0.1}},
        "selection": "all",
    }
    plain, scores = (config.experiment(table | {"space": space}) for space in ("parameters", "samples"))
    loop = fedavg_loop(plain)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, d, n), np.float32)
    K = np.matmul(A, A.mT)

    def run() -> Times:
        of_loop, x = loop()
        of_plain, y = ours(plain)
        of_scores, z = ours(scores)
        least = 2 * clock_product(A), steps * clock_product(K)
        return Times(of_loop, of_plain, of_scores, *least, max(away(y, x), away(z, x)))

    return run


def clock_product(matrices: Array) -> float:
    """CPU seconds of a product of every matrix with a vector, the least of five."""
    vectors = np.ones((len(matrices), matrices.shape[-1]), matrices.dtype)
    seconds = []
    for _ in range(5):
        begun = time.process_time()
        np.matvec(matrices, vectors)
        seconds.append(time.process_time() - begun)
    return min(seconds)


def ratio(own: list[Times], name: str) -> float:
    """The ratio of the least of some repetitions to the loop's."""
    return float(min(getattr(times, name) for times in own) / min(times.loop for times in own))


def draw(case: str, kind: str, found: dict[int, list[Times]], path: Path) -> None:
    """Draw milliseconds of a round over steps, with the two lines that bound the scores from below."""
    if find_spec("matplotlib") is None:
        print("the picture needs matplotlib: pip install matplotlib")
        return
    from matplotlib.figure import Figure

    def least(name: str) -> list[float]:
        return [1e3 * min(getattr(times, name) for times in own) for own in found.values()]

    with matplotlib_style():
        page = Figure(figsize=(5.4, 3.6), layout="constrained")
        axis: Any = page.subplots()
        for name, label in LINES.items():
            axis.loglog([*found], least(name), marker="o", label=label)
        axis.loglog([*found], least("reading"), color="gray", linestyle="--", label="samples read twice")
        axis.loglog([*found], least("products"), color="gray", linestyle=":", label="products with $K_i$")
        axis.set_xticks([*found], [str(steps) for steps in found])
        axis.minorticks_off()
        size = " × ".join(f"{number:,}" for number in CASES[case])
        axis.set(
            xlabel="local steps of a round", ylabel="CPU milliseconds of a round", title=f"{size}, float32, {kind}"
        )
        page.legend(loc="outside lower center", ncols=2, fontsize="small")
        page.savefig(path, dpi=150)
    print(f"written to {path}")


def main() -> None:
    options: dict[str, Any] = {"rounds": 100, "repeat": 3, "cases": "A", "steps": "2,5,10,20,40"}
    args = parser(__doc__, **options | {"kernels": "numpy", "busy": False, "to": None}).parse_args()
    columns = {"case": 4, "steps": 5, "kernels": 8, "loop ms": 8, "parameters": 10, "scores": 7, "reading": 7}
    columns |= {"products": 8, "deviation": 9, "plain": 6, "alone": 6} | ({"busy": 6, "quoted": 6} if args.busy else {})
    table = Table(columns, args.to and args.to / "local_steps.csv")
    for case, kind in product(among(args.cases, CASES), kernels(args)):
        found = {}
        for steps in args.steps:
            copies = everyone(partial(prepare, case, steps, kind, args.rounds), args)
            found[steps] = copies[0]
            cells = [figure(1e3 * min(times[k] for times in copies[0])) for k in range(5)]
            deviation = tiny(max(times.deviation for times in copies[0]))
            ratios = quoted([ratio(own, "scores") for own in copies])
            table.row(case, steps, kind, *cells, deviation, max(ratio(own, "parameters") for own in copies), *ratios)
        if args.to:
            draw(case, kind, found, args.to / f"local_steps_{case}_{kind}.png")


if __name__ == "__main__":
    main()
