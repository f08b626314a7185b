"""python -m benchmarks.speed.peers.flute: the comparison that FLUTE published, by the whole command of mpifed.

M. H. Garcia et al., "FLUTE: a scalable, extensible framework for high-performance federated learning simulations",
arXiv:2203.13789 (2022), compares FLUTE, FedML and Flower on logistic regression on MNIST: 1000 clients, 10 of them a
round, one epoch of mini-batches of 10, 100 rounds, test every 20. Here samples are generated, 784 numbers in [0, 1] of
ten classes; sizes are log-normal, 69 on average. Of the command ``mpifed run`` on one core, start and file included,
CPU and wall seconds are measured: best and median of the repetitions.

FLUTE is a repository and no package, so that it does not run beside ours. Published are seconds on machines of its
authors: FLUTE 200, FedML with MPI 189, Flower 1,814 on CPUs, and 91 for FLUTE on two GPUs.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.speed.startup import timed

CLIENTS, MEAN = 1000, 69
FEATURES, CLASSES = 784, 10
LEAST = 12  # samples of a client
GOAL = 3.0  # CPU seconds


def write(path: Path, clients: int) -> int:
    """A file of clients; the number of their samples."""
    rng = np.random.default_rng(0)
    sizes = rng.lognormal(0, 1, clients)
    sizes = np.maximum(LEAST, np.round(MEAN * sizes / sizes.mean())).astype(np.int64)
    y = rng.integers(0, CLASSES, sizes.sum())
    patterns = rng.random((CLASSES, FEATURES), np.float32)
    X = 0.5 * patterns[y] + 0.5 * rng.random((len(y), FEATURES), np.float32)
    np.savez(path, X=X, y=y, sizes=sizes)
    return len(y)


def words(path: Path, rounds: int) -> list[str]:
    """The command line of the run."""
    return [
        *(sys.executable, "-m", "mpifed", "run", "data=file", f"data.path={path}", "data.test=0.1"),
        *("problem=softmax", "dtype=float32", f"rounds={rounds}", "evaluate.every=20", "stop.gradient=0.0"),
        *("algorithm=fedavg", "algorithm.epochs=1", "algorithm.batch_size=10"),
        *("algorithm.step=constant", "algorithm.step.a=0.03"),
        *("selection=uniform", "selection.count=10", "-q", "--force", "-o", str(path.with_suffix(".h5"))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default: 5)")
    parser.add_argument("--rounds", type=int, default=100, help="rounds (default: 100)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="clients (default: 1000)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clients.npz"
        samples = write(path, args.clients)
        command = words(path, args.rounds)
        timed(command)  # files are in memory afterwards
        found = np.array([timed(command) for _ in range(args.repeat)])
    (wall, cpu), (wall_median, cpu_median) = found.min(axis=0), np.median(found, axis=0)
    print(f"{args.clients} clients, {samples} samples, {args.rounds} rounds")
    print(f"wall s {wall:.2f} ({wall_median:.2f})\nCPU s {cpu:.2f} ({cpu_median:.2f}), goal ≤ {GOAL}")


if __name__ == "__main__":
    main()
