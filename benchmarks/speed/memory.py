"""python -m benchmarks.speed.memory: the peak memory of a run, by number of clients.

Logistic regression on gaussian data in one process, 20 samples × 20 features per client: FedGiA with all clients, and
FedAvg with 1000 selected clients, which averages only their models. Every run is a new process; sizes are interleaved.

``peak : samples`` is the peak resident memory divided by the bytes of the samples (features and labels); near 1,
nothing large is stored twice. ``slope`` is the growth of the peak since the previous line (for the first line: since
the base, one client without rounds) divided by the growth of the samples: the cost of a further client in units of its
samples. ``rest`` is the peak minus base and samples, in models of n parameters per client: state, replies and buffers.
Ratios and seconds are median (smallest–largest) over the repetitions; start is the wall time of the command without
rounds and evaluation.

--wide takes 500 clients × 4 samples × 200,000 features (3.2 GB of samples in float64; --dtype float32 halves it). There
models and messages are as large as samples.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed.common import figure, gaussian, launched, round_seconds, spread

RUNS = {
    "FedGiA, all": ("algorithm=fedgia", "selection=all"),
    "FedAvg, 1000": ("algorithm=fedavg", "algorithm.aggregate=chosen", "selection=uniform"),
}
MB = 1e6


class Measured(NamedTuple):
    """Peak bytes, and seconds of the start and of a round."""

    peak: float
    start: float
    round: float


def measure(name: str, m: int, args: argparse.Namespace, folder: Path) -> Measured:
    """Measure one run in a new process."""
    words = [
        *RUNS[name],
        *gaussian(m, args.samples, args.features),
        f"dtype={args.dtype}",
        f"rounds={args.rounds}",
        f"evaluate.every={max(1, args.rounds)}",
        *args.override,
    ]
    if "selection=uniform" in words:
        words.append(f"selection.count={min(m, args.selected)}")
    result, seconds = launched("", 1, words, folder / "run.h5", args.timeout)
    (folder / "run.h5").unlink()
    spent = float(np.nansum(result.rounds["evaluate_seconds"])) + result.tct
    return Measured(
        float(result.ranks["max_rss_bytes"].max()), seconds - spent, float(np.median(round_seconds(result)))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--clients", help="numbers of clients, comma-separated (default: 1e3,1e4,1e5; wide: 500)")
    option("--wide", action="store_true", help="4 samples × 200,000 features per client")
    option("--samples", type=int, help="samples per client (default: 20; wide: 4)")
    option("--features", type=int, help="features (default: 20; wide: 200,000)")
    option("--selected", type=int, default=1000, help="clients that FedAvg selects in a round (default: 1000)")
    option("--dtype", default="float64", choices=["float32", "float64"], help="numbers (default: float64)")
    option("--rounds", type=int, default=5, help="rounds of a run (default: 5)")
    option("--repeat", type=int, default=2, help="interleaved repetitions (default: 2)")
    option("--only", default="", help="only the algorithms whose name contains this")
    option("--timeout", type=float, default=600, help="maximum seconds of a run (default: 600)")
    option("override", nargs="*", metavar="KEY=VALUE", help="overrides of the experiment, for all runs")
    args = parser.parse_args()
    args.samples = args.samples or (4 if args.wide else 20)
    args.features = args.features or (200_000 if args.wide else 20)
    counts = [int(float(word)) for word in (args.clients or ("500" if args.wide else "1e3,1e4,1e5")).split(",")]
    item = np.dtype(args.dtype).itemsize
    sample, model = args.samples * (args.features + 1) * item, args.features * item
    print(
        f"a client: {args.samples} samples × {args.features} features, {args.dtype}, {sample} bytes; "
        f"a model: {model} bytes",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        base = launched("", 1, ["data=gaussian", "data.clients=1", "rounds=0"], Path(folder) / "base.h5", args.timeout)
        floor = float(base.result.ranks["max_rss_bytes"].max())
        print(
            f"base {floor / MB:.1f} MB\n{'algorithm':<14}{'clients':>9}{'samples MB':>12}{'peak MB':>10}  "
            f"{'peak : samples':<22}{'slope':>8}{'rest':>8}   {'start s':<22}round ms"
        )
        for name in RUNS:
            if args.only.lower() in name.lower():
                found: dict[int, list[Measured]] = {m: [] for m in counts}
                for _, m in product(range(args.repeat), counts):
                    found[m].append(measure(name, m, args, Path(folder)))
                show(name, found, floor, sample, model)


def show(name: str, found: dict[int, list[Measured]], floor: float, sample: int, model: int) -> None:
    """Print the lines of an algorithm; ``floor``: bytes of the base; ``sample`` and ``model``: bytes of a client."""
    before, least = 0, floor
    for m, runs in found.items():
        peaks, start, rounds = np.array(runs).T
        peak = float(np.median(peaks))
        slope, rest = (peak - least) / (m - before) / sample, (peak - floor - m * sample) / m / model
        print(
            f"{name:<14}{m:>9}{m * sample / MB:>12.1f}{peak / MB:>10.1f}  {spread(peaks / (m * sample))!s:<22}"
            f"{figure(slope):>8}{figure(rest):>8}   {spread(start)!s:<22}{spread(rounds * 1e3)}",
            flush=True,
        )
        before, least = m, peak


if __name__ == "__main__":
    main()
