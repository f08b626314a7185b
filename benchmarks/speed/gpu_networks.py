"""python -m benchmarks.speed.gpu_networks: rounds of a CNN on a GPU, how a run starts there, and the memory it takes.

conv 32 – conv 64 – 128 – 10 on 3 × 32 × 32 (315,722 parameters), 1000 clients of 50 samples in float32, 50 of them a
round, one epoch of mini-batches of 10. ``--part`` takes some of

rounds   wall milliseconds a round of FedAvg, best and median of the repetitions, which go in turn, and the time to that
         of the plain loop over clients: ours; the loop; ``torch.func.vmap`` in twenty lines; the same with convolutions
         as matrix products, through torch.compile; both as CUDA graphs. Before that, ours and the loop take two rounds
         with the same clients and draws in double precision and must end at the same model but for rounding
methods  ours with Adam, SCAFFOLD and FLAME to FedAvg
start    seconds of the whole command without rounds and evaluations, and of what it waits for: imports, CUDA context,
         first kernels, samples to the device
memory   peak on device and host, and what it grows by for each byte of samples more: a run with few clients, in a
         process of its own as well, is the base

Ours includes recording, byte counts and timers; its first round and evaluating are left out. Overrides such as
problem.batched=false change ours. ``--device cpu --tiny`` runs everything small without a GPU, which shows that it
runs, not how fast.
"""

import argparse
import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.common import figure, fresh, launched, printed, spread
from benchmarks.speed.networks import MISSING
from mpifed.core.toml import toml_value

NO_GPU = "PyTorch finds no GPU here; --device cpu --tiny runs everything small on the CPU, to see that it runs"
METHODS = ("fedavg", "adam", "scaffold", "flame")
MB = 1e6


def rounds(case: Any, device: Any, args: argparse.Namespace) -> None:
    """The table of rounds."""
    from benchmarks.speed import gpu_turns

    jobs = gpu_turns.rounds(case, device, args.rounds, args.overrides)
    found = np.array([[job() for job in jobs.values()] for _ in range(args.repeat)]) * 1e3
    best, middle = found.min(axis=0), np.median(found, axis=0)
    loop = best[list(jobs).index("plain loop")]
    print(f"{case.name}, {case.clients} of {case.all} clients\n{'round':<44}{'ms (median)':<20}{'to the loop':>11}")
    for name, least, median in zip(jobs, best, middle, strict=True):
        print(f"{name:<44}{f'{figure(least)} ({figure(median)})':<20}{least / loop:>11.3f}", flush=True)


def methods(case: Any, device: Any, args: argparse.Namespace) -> None:
    """The table of methods."""
    from benchmarks.speed import gpu_turns

    turns = [gpu_turns.methods(case, device, METHODS, args.rounds, args.overrides) for _ in range(args.repeat)]
    best = {name: min(turn[name] for turn in turns) for name in METHODS}
    print(f"\n{'method':<20}{'ms':<12}to FedAvg")
    for name, seconds in best.items():
        print(f"{name:<20}{figure(seconds * 1e3):<12}{seconds / best['fedavg']:.2f}", flush=True)


def start(case: Any, device: Any, args: argparse.Namespace) -> None:
    """The table of the start."""
    from benchmarks.speed.network_runs import table

    words = [f"{key}={toml_value(value)}" for key, value in table(case, "fedavg", 2).items()]
    tiny = ["--tiny"] if args.tiny else []
    command = [sys.executable, "-m", "benchmarks.speed.gpu_start", "--device", device.name, *tiny]
    wholes: list[float] = []
    parts: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.repeat):
            path = Path(folder) / "run.h5"
            result, seconds = launched("", 1, [*words, *device.words(), *args.overrides, "--force"], path, 600)
            later = result.rounds["elapsed_seconds"][-1] + float(np.nansum(result.rounds["evaluate_seconds"]))
            wholes.append(seconds - later)
            for name, value in json.loads(printed(command)).items():
                parts.setdefault(name, []).append(value)
    print(f"\n{'start':<20}seconds\n{'the whole command':<20}{spread(wholes)}")
    for name, values in parts.items():
        print(f"  {name:<18}{spread(values)}", flush=True)


def memory(case: Any, device: Any, args: argparse.Namespace) -> None:
    """The table of memory."""
    from benchmarks.speed import gpu_turns

    small = case._replace(all=case.clients)
    base, full = (fresh(gpu_turns.peak, run, device, args.rounds, args.overrides) for run in (small, case))
    more = full.samples - base.samples
    print(f"\n{'memory':<20}{'peak MB':<12}a byte of samples more\n{'samples':<20}{full.samples / MB:<12.1f}1")
    for name in ("device", "host"):
        least, most = getattr(base, name), getattr(full, name)
        print(f"{name:<20}{most / MB:<12.1f}{(most - least) / more:.2f}", flush=True)


PARTS = {"rounds": rounds, "methods": methods, "start": start, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("overrides", nargs="*", metavar="KEY=VALUE", help="settings of our run")
    option("--part", default=",".join(PARTS), help="comma-separated (default: %(default)s)")
    option("--rounds", type=int, default=10, help="rounds of a repetition (default: 10)")
    option("--repeat", type=int, default=5, help="repetitions (default: 5)")
    option("--device", default="cuda", choices=("cuda", "cpu"), help="default: cuda")
    option("--tiny", action="store_true", help="a small network, 2 of 3 clients, 20 samples each")
    args = parser.parse_args()
    if find_spec("torch") is None:
        print(MISSING)
        return
    import torch

    from benchmarks.speed.gpu_turns import Device
    from benchmarks.speed.models import CASES, SMALL

    if args.device == "cuda" and not torch.cuda.is_available():
        print(NO_GPU)
        return
    sys.path.insert(0, str(Path(__file__).parents[2]))  # where problem.module is looked for
    case = SMALL if args.tiny else CASES["CNN"]
    for name in args.part.split(","):
        PARTS[name](case, Device(args.device), args)


if __name__ == "__main__":
    main()
