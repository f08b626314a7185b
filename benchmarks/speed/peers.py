"""python -m benchmarks.speed.peers: rounds of networks by other simulators beside ours, on the same machine.

The same clients, samples, networks, first model and settings as ``benchmarks.speed.networks`` and, with --device cuda,
``benchmarks.speed.gpu_networks``: FedAvg, one epoch of mini-batches of 10. Peers are pfl-research and FedJAX; each runs
in an environment of its own, whose Python --pfl and --fedjax name (default: this one), and one that is not installed is
told in a sentence. Measured in turn, a new process each: CPU milliseconds of a round on one core, wall milliseconds on
a GPU, the median of the rounds after the first and the best of the repetitions; ``to ours`` is their ratio. ``f`` is
the mean cross-entropy of all samples at the end: each shuffles and selects by draws of its own, so that it is near to
ours and no more.

``python -m benchmarks.speed.startup --part flute`` runs the study whose times FLUTE published.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.gpu_networks import seconds
from benchmarks.speed.measuring import among, parser, printed
from benchmarks.speed.models import BATCH, CASES, LR, stacked
from benchmarks.speed.networks import ROOT, Task, ours, samples, start
from benchmarks.speed.printing import Table
from benchmarks.speed.simulators import LAYERS

PEERS = {"pfl": ("pfl-research", "pfl, torch"), "fedjax": ("FedJAX", "fedjax")}  # name, and modules that it needs
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
    variables = {"PYTHONPATH": ROOT, "JAX_PLATFORMS": device} | (ONE_CORE if device == "cpu" else {})
    text = printed([python, "-m", "benchmarks.speed.simulators", peer, *words], variables=variables)
    told = json.loads(text.splitlines()[-1])
    return Found(float(np.median(told["cpu" if device == "cpu" else "wall"])) * 1e3, told["f"])


def our(task: Task) -> Callable[[], Found]:
    """Our run, to be run in this process."""
    setup = task.study()

    def run() -> Found:
        found = ours(setup, time.process_time if task.device == "cpu" else partial(seconds, task.device))
        return Found(found.round * 1e3, float(found.result.rounds["objective"][-1]))

    return run


def write(task: Task, path: Path) -> None:
    """The file that peers read."""
    setup = task.study()
    X, y = stacked(samples(setup, task._replace(device="cpu")))
    x = start(setup).numpy()
    np.savez(path, X=X.numpy(), y=y.numpy(), x=x, clients=task.case.clients, batch=BATCH, lr=LR)


def lines(table: Table, task: Task, pythons: dict[str, str], repeat: int) -> None:
    """The lines of a network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clients.npz"
        write(task, path)
        words = [str(path), task.case.name, str(task.rounds), task.device]
        jobs = {"mpifed": our(task)}
        jobs |= {PEERS[peer][0]: partial(beside, peer, python, words) for peer, python in pythons.items()}
        found: dict[str, list[Found]] = {name: [] for name in jobs}
        for _ in range(repeat):
            for name, job in jobs.items():
                found[name].append(job())
    least = min(one.ms for one in found["mpifed"])
    for name, turns in found.items():
        table.row(task.case.name, name, min(turns).ms, min(turns).ms / least, min(turns).f)


def there(args: argparse.Namespace) -> dict[str, str]:
    """The Pythons of the peers; those that are not installed are told."""
    found = {}
    for peer in PEERS:
        why = missing(peer, getattr(args, peer))
        if why:
            print(why)
        else:
            found[peer] = getattr(args, peer)
    return found


def main() -> None:
    options: dict[str, Any] = {"rounds": 6, "repeat": 3, "device": "cpu", "tiny": False, "to": None, "settings": None}
    command = parser(__doc__, cases=None, **options)
    for peer, (name, _) in PEERS.items():
        command.add_argument(f"--{peer}", metavar="PYTHON", default=sys.executable, help=f"the Python that has {name}")
    args = command.parse_args()
    sys.path.insert(0, ROOT)
    pythons = there(args)
    table = Table({"network": 9, "simulator": 12, "ms": 8, "to ours": 7, "f": 6}, args.to and args.to / "peers.csv")
    for name in among(args.cases or (["CNN"] if args.device == "cuda" else ["MLP", "LeNet"]), LAYERS):
        case = CASES[name].tiny() if args.tiny else CASES[name]
        lines(table, Task(case, args.rounds, settings=tuple(args.settings), device=args.device), pythons, args.repeat)


if __name__ == "__main__":
    main()
