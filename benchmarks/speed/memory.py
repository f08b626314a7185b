"""python -m benchmarks.speed.memory: the most memory that a run holds, by number of clients.

Logistic regression on gaussian data, 20 samples × 20 features a client, in one process: FedGiA on all clients, and FedAvg
with 1000 selected, whose models alone are averaged. Every run is a process of its own, the sizes in turns.
``peak : samples`` is the most resident memory over the bytes of the samples (features and labels); near 1, nothing of size
is held twice. ``slope`` is the growth from the line before (from the base: one client, no round) over the growth of the
samples: what a further client costs in units of its samples. ``rest`` is the peak less base and samples, in models of n
parameters a client: state, replies and buffers. Ratios and seconds are median (least–most) of the repetitions; start is
the wall time of the command without rounds and measuring.

--wide is 500 clients × 4 samples × 200,000 features (3.2 GB of samples in float64; --dtype float32 halves it), where
models and messages weigh as much as samples.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import figure, launched, round_seconds, spread

RUNS = {
    "FedGiA, all": ("algorithm=fedgia", "selection=all"),
    "FedAvg, 1000": ("algorithm=fedavg", "algorithm.aggregate=chosen", "selection=uniform"),
}
MB = 1e6


class Measured(NamedTuple):
    """Bytes at the peak, seconds of the start and of a round."""

    peak: float
    start: float
    round: float


def measure(name: str, m: int, args: argparse.Namespace, folder: Path) -> Measured:
    """One run in a process of its own."""
    words = [
        *RUNS[name],
        "data=gaussian",
        f"data.clients={m}",
        f"data.samples={args.samples}",
        f"data.features={args.features}",
        "problem=logistic",
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
    parser.add_argument("--clients", help="numbers of clients, comma-separated (default: 1e3,1e4,1e5; wide: 500)")
    parser.add_argument("--wide", action="store_true", help="4 samples × 200,000 features a client")
    parser.add_argument("--samples", type=int, help="samples a client (default: 20; wide: 4)")
    parser.add_argument("--features", type=int, help="features (default: 20; wide: 200,000)")
    parser.add_argument("--selected", type=int, default=1000, help="clients a round of FedAvg (default: 1000)")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2, help="repetitions, in turns (default: 2)")
    parser.add_argument("--only", default="", help="the algorithm whose name contains this")
    parser.add_argument("--timeout", type=float, default=600, help="most seconds of a run (default: 600)")
    parser.add_argument("override", nargs="*", metavar="KEY=VALUE", help="overrides of the experiment, for all runs")
    args = parser.parse_args()
    args.samples = args.samples or (4 if args.wide else 20)
    args.features = args.features or (200_000 if args.wide else 20)
    counts = [int(float(word)) for word in (args.clients or ("500" if args.wide else "1e3,1e4,1e5")).split(",")]
    item = np.dtype(args.dtype).itemsize
    sample, vector = args.samples * (args.features + 1) * item, args.features * item
    print(
        f"a client: {args.samples} samples × {args.features} features, {args.dtype}, {sample} bytes; "
        f"a model: {vector} bytes",
        flush=True,
    )
    names = [name for name in RUNS if args.only.lower() in name.lower()]
    with tempfile.TemporaryDirectory() as folder:
        base = launched("", 1, ["data=gaussian", "data.clients=1", "rounds=0"], Path(folder) / "base.h5", args.timeout)
        floor = float(base.result.ranks["max_rss_bytes"].max())
        print(
            f"base {floor / MB:.1f} MB\n{'algorithm':<14}{'clients':>9}{'samples MB':>12}{'peak MB':>10}  "
            f"{'peak : samples':<22}{'slope':>8}{'rest':>8}   {'start s':<22}round ms"
        )
        for name in names:
            found: dict[int, list[Any]] = {m: [] for m in counts}
            for _ in range(args.repeat):
                for m in counts:
                    found[m].append(measure(name, m, args, Path(folder)))
            before, least = 0, floor
            for m in counts:
                peaks, start, rounds = map(np.array, zip(*found[m], strict=True))
                peak = float(np.median(peaks))
                slope, rest = (peak - least) / (m - before) / sample, (peak - floor - m * sample) / m / vector
                print(
                    f"{name:<14}{m:>9}{m * sample / MB:>12.1f}{peak / MB:>10.1f}  {spread(peaks / (m * sample))!s:<22}"
                    f"{figure(slope):>8}{figure(rest):>8}   {spread(start)!s:<22}{spread(rounds * 1e3)}",
                    flush=True,
                )
                before, least = m, peak


if __name__ == "__main__":
    main()
