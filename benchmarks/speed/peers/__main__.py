"""python -m benchmarks.speed.peers: rounds of networks by other simulators beside ours, on the same machine.

The same clients, samples, networks, first model and settings as ``benchmarks.speed.networks`` and, with --device cuda,
``benchmarks.speed.gpu_networks``: FedAvg, one epoch of mini-batches of 10. Peers are pfl-research and FedJAX; each runs
in an environment of its own, whose Python --pfl and --fedjax name (default: this one), and one that is not installed is
told in a sentence. Measured in turn, a new process each: CPU milliseconds of a round on one core, wall milliseconds on
a GPU, the median of the rounds after the first and the best of the repetitions; ``to ours`` is their ratio. ``f`` is
the mean cross-entropy of all samples at the end: each shuffles and selects by draws of its own, so that it is near to
ours and no more.

``python -m benchmarks.speed.flute`` has the comparison that FLUTE published.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import figure, printed
from benchmarks.speed.networks import MISSING

ROOT = Path(__file__).parents[3]
PEERS = {"pfl": ("pfl-research", "pfl, torch"), "fedjax": ("FedJAX", "fedjax")}  # name, and modules that it needs
CASES = ("MLP", "LeNet")
ONE_CORE = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


class Found(NamedTuple):
    """Milliseconds of a round, and the objective at the end."""

    ms: float
    f: float


def missing(peer: str, python: str) -> str:
    """The sentence about a peer that a Python does not have, or nothing."""
    name, modules = PEERS[peer]
    done = subprocess.run([python, "-c", f"import {modules}"], capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return f"{name} is not installed for {python} ({reason}): pip install {modules.replace(',', '')}"


def beside(peer: str, python: str, words: list[str]) -> Found:
    """What a peer measures in its own environment."""
    device = words[-1]
    one_core = ONE_CORE if device == "cpu" else {}
    environment = os.environ | one_core | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": device}
    text = printed([python, "-m", f"benchmarks.speed.peers.with_{peer}", *words], environment=environment)
    told = json.loads(text.splitlines()[-1])
    return Found(float(np.median(told["cpu" if device == "cpu" else "wall"])) * 1e3, told["f"])


def our(case: Any, device: str, rounds: int, overrides: list[str]) -> Callable[[], Found]:
    """Our run, to be run in this process."""
    from benchmarks.speed.gpu_turns import Device
    from benchmarks.speed.network_runs import ours, study

    where = Device(device)
    setup = study(case, "fedavg", rounds, overrides=[*where.words(), *overrides])

    def run() -> Found:
        found = ours(setup, time.process_time if device == "cpu" else where.seconds)
        return Found(found.round * 1e3, float(found.result.rounds["objective"][-1]))

    return run


def write(case: Any, path: Path) -> None:
    """The file that peers read."""
    import torch

    from benchmarks.speed.network_runs import samples, start, study
    from benchmarks.speed.plain_networks import BATCH, LR

    setup = study(case, "fedavg", 2)
    X, y = (torch.stack(part).numpy() for part in zip(*samples(setup, case), strict=True))
    np.savez(path, X=X, y=y, x=start(setup).numpy(), clients=case.clients, batch=BATCH, lr=LR)


def table(case: Any, pythons: dict[str, str], args: argparse.Namespace) -> None:
    """The lines of a network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clients.npz"
        write(case, path)
        words = [str(path), case.name, str(args.rounds), args.device]
        found: dict[str, list[Found]] = {name: [] for name in ("mpifed", *(PEERS[peer][0] for peer in pythons))}
        mine = our(case, args.device, args.rounds, args.overrides)
        for _ in range(args.repeat):
            found["mpifed"].append(mine())
            for peer, python in pythons.items():
                found[PEERS[peer][0]].append(beside(peer, python, words))
    least = min(one.ms for one in found["mpifed"])
    for name, turns in found.items():
        best = min(turns)
        print(f"{case.name:<12}{name:<14}{figure(best.ms):>10}{best.ms / least:>10.2f}{best.f:>10.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("overrides", nargs="*", metavar="KEY=VALUE", help="settings of our run")
    for peer, (name, _) in PEERS.items():
        option(f"--{peer}", metavar="PYTHON", default=sys.executable, help=f"the Python that has {name}")
    option("--rounds", type=int, default=6, help="rounds of a run, two or more (default: 6)")
    option("--repeat", type=int, default=3, help="repetitions (default: 3)")
    option("--device", default="cpu", choices=("cpu", "cuda"), help="default: cpu")
    option("--cases", help=f"comma-separated (default: {','.join(CASES)}; cuda: CNN)")
    option("--tiny", action="store_true", help="a few small clients: shows that everything runs, not how fast")
    args = parser.parse_args()
    if find_spec("torch") is None:
        print(MISSING)
        return
    from benchmarks.speed.models import CASES as KNOWN

    sys.path.insert(0, str(ROOT))  # where problem.module is looked for
    pythons = {peer: getattr(args, peer) for peer in PEERS}
    for peer, python in list(pythons.items()):
        if why := missing(peer, python):
            print(why)
            del pythons[peer]
    print(f"{'network':<12}{'simulator':<14}{'ms':>10}{'to ours':>10}{'f':>10}")
    for name in (args.cases or ("CNN" if args.device == "cuda" else ",".join(CASES))).split(","):
        table(KNOWN[name].tiny() if args.tiny else KNOWN[name], pythons, args)


if __name__ == "__main__":
    main()
