"""What the programs of peers share: they run in the peer's own environment, with numpy, and without mpifed.

A program is called with FILE.npz, the name of a network, the number of rounds and the device. The file has samples
``X`` (m, d, channels, side, side), classes ``y`` (m, d), the first model ``x`` (n,), how many clients a round takes,
the size of mini-batches and the step size. It prints a line of JSON: CPU and wall seconds of each round after the
first, and the mean cross-entropy of all samples at the end.
"""

import argparse
import json
import os
import time
from typing import Any, NamedTuple

import numpy as np


class Task(NamedTuple):
    """What a peer is asked for."""

    X: Any
    y: Any
    x: Any
    clients: int
    batch: int
    lr: float
    network: str
    rounds: int
    device: str


def task() -> Task:
    """The task on the command line; a CPU run is pinned to one core."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("network")
    parser.add_argument("rounds", type=int)
    parser.add_argument("device")
    args = parser.parse_args()
    if args.device == "cpu" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with np.load(args.file) as file:
        return Task(
            X=file["X"],
            y=file["y"],
            x=file["x"],
            clients=int(file["clients"]),
            batch=int(file["batch"]),
            lr=float(file["lr"]),
            network=args.network,
            rounds=args.rounds,
            device=args.device,
        )


class Marks:
    """The times at which rounds end."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def mark(self) -> None:
        self.cpu.append(time.process_time())
        self.wall.append(time.perf_counter())

    def tell(self, objective: float) -> None:
        """Print what was measured; the first round is a warm-up."""
        print(json.dumps({"cpu": np.diff(self.cpu).tolist(), "wall": np.diff(self.wall).tolist(), "f": objective}))
