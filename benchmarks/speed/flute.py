"""python -m benchmarks.speed.flute: CPU seconds of a whole command, on the study of FLUTE's table of speeds.

Logistic regression on MNIST: 1000 clients of log-normal sizes, 69 samples in the mean, a tenth of them for testing; 10
clients a round, one epoch of mini-batches of 10, 100 rounds, an evaluation every 20; float32, numpy, one process. The
images are MNIST's 70,000 where MPIFED_DATA has them, otherwise random bytes in files of the same shapes. ``whole`` is
``python -m mpifed run`` from its start to its end, all modules compiled to bytecode before: median (least–most) of the
repetitions. Below it is what takes this time, from one more run.

Published for such a study, on other machines and not measured here: FLUTE 200 s, FedML with MPI 189 s, Flower 1,814 s
on CPUs, FLUTE 91 s on two GPUs (arXiv:2203.13789).
"""

import argparse
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.common import spread
from benchmarks.speed.startup import children
from mpifed.core.errors import UserError
from mpifed.core.toml import to_toml
from mpifed.data.base import Data

GOAL = 3.0
CLIENTS = 1000
SAMPLES = 69_000
LEAST = 10  # of a client
IMAGES = {"train": 60_000, "t10k": 10_000}
SIDE = 28
PARTS = {  # what is timed: where a function is, and what it does
    "experiment.run:prepare": "reading images and dividing them",
    "experiment.run:housed": "filling blocks",
    "experiment.rounds:played": "local steps and means",
    "experiment.rounds:evaluated": "evaluating 1000 clients, six times",
}


def study(rounds: int) -> dict[str, Any]:
    """The experiment."""
    return {
        "rounds": rounds,
        "dtype": "float32",
        "kernels": "numpy",
        "problem": "softmax",
        "data": {"name": "mnist", "part": "both", "clients": CLIENTS, "test": 0.1, "partition": partition()},
        "selection": {"name": "uniform", "count": 10},
        "evaluate": {"every": 20},
        "algorithm": {"name": "fedavg", "epochs": 1, "batch_size": 10, "step": {"name": "constant", "a": 0.03}},
        "stop": {"gradient": 0.0},
    }


def partition() -> dict[str, Any]:
    """Log-normal sizes of the clients, at least ``LEAST`` and ``SAMPLES`` together."""
    share = np.random.default_rng(0).lognormal(size=CLIENTS)
    sizes = LEAST + np.floor(share / share.sum() * (SAMPLES - LEAST * CLIENTS)).astype(int)
    sizes[: SAMPLES - sizes.sum()] += 1
    return {"name": "sizes", "sizes": sizes.tolist()}


def images(folder: Path) -> str:
    """A value of MPIFED_DATA with MNIST, generated into ``folder`` where there is none."""
    try:
        Data.build({"name": "mnist", "part": "both"}, "data").locate()
        return os.environ["MPIFED_DATA"]
    except UserError:
        rng = np.random.default_rng(0)
        (folder / "mnist").mkdir()
        for part, count in IMAGES.items():
            pixels, labels = rng.integers(0, 256, (count, SIDE, SIDE), np.uint8), rng.integers(0, 10, count, np.uint8)
            for kind, values in (("images-idx3", pixels), ("labels-idx1", labels)):
                head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
                (folder / "mnist" / f"{part}-{kind}-ubyte").write_bytes(head + values.tobytes())
        return str(folder)


def inside(path: str, out: str) -> None:
    """Run the study in this process, and print as JSON what takes its CPU seconds."""
    from mpifed.cli.main import main as command
    from mpifed.experiment import rounds, run

    modules: dict[str, Any] = {"run": run, "rounds": rounds}
    spent = {"Python, modules": time.process_time()}
    for place, what in PARTS.items():
        module, name = place.removeprefix("experiment.").split(":")
        setattr(modules[module], name, timed(getattr(modules[module], name), what, spent))
    command(["run", path, "-q", "--force", "-o", out])
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent["the rest: records, result file, checks"] = used.ru_utime + used.ru_stime - sum(spent.values())
    print(json.dumps(spent))


def timed(function: Any, what: str, spent: dict[str, float]) -> Any:
    """The same function, whose CPU seconds are added to ``spent``."""

    @functools.wraps(function)
    def measured(*args: Any) -> Any:
        begun = time.process_time()
        try:
            return function(*args)
        finally:
            spent[what] = spent.get(what, 0.0) + time.process_time() - begun

    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default: 5)")
    parser.add_argument("--rounds", type=int, default=100, help="rounds (default: 100)")
    parser.add_argument("--inside", nargs=2, metavar=("STUDY", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        inside(*args.inside)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = images(folder)
        (folder / "study.toml").write_text(to_toml(study(args.rounds)), "utf-8")
        variables = {**os.environ, "MPIFED_DATA": data, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        call = functools.partial(subprocess.run, check=True, env=variables, stdout=subprocess.PIPE, text=True)
        words = [str(folder / "study.toml"), "-q", "--force", "-o", str(folder / "out.h5")]
        whole = []
        for _ in range(args.repeat + 1):
            before = children()
            call([sys.executable, "-m", "mpifed", "run", *words])
            whole.append(children() - before)
        told = call([sys.executable, "-m", "benchmarks.speed.flute", "--inside", words[0], words[-1]]).stdout
    kind = "random bytes in the shapes of MNIST" if data == name else "MNIST"
    found = spread(whole[1:])
    print(f"{kind}, {args.rounds} rounds; CPU seconds")
    print(f"{'whole':<42}{found!s:<22}goal ≤ {GOAL}: {'yes' if found.median <= GOAL else 'no'}")
    for what, seconds in json.loads(told).items():
        print(f"  {what:<40}{seconds:.2f}")


if __name__ == "__main__":
    main()
