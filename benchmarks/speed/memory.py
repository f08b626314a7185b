"""python -m benchmarks.speed.memory: the memory of a rank, as a multiple of the bytes of its samples.

samples    every run is a new process, and every row two runs: with few clients and with more. A multiple is the growth
           of the peak from the first to the second, divided by the growth of the samples: what a byte of samples costs,
           without Python, its libraries and what does not grow. Near 1 nothing large is stored twice. Samples are
           features and labels; of CSR data features are the numbers, their columns and the ends of rows. ``peak`` is of
           the larger run, on the rank with the highest. Linear models take five steps with all clients, those of
           FedGiA and FedAvg with 1000 clients one round after another of their own; small clients, whose samples have
           10 classes, 1000 in each round of softmax; a network trains 16 of its clients in each of two rounds, and all
           are evaluated. ``CPU µs`` is what a client more adds to the CPU time of the whole command
endurance  the memory of a long run, and whether its rounds become slower: FedAvg on 8 clients × 4 samples × 4 features,
           with a result file and three records. ``resident MB`` is the memory after the warm-up (1000 rounds, when
           everything has been used once) and at the end, ``growth`` the difference in per cent; the goal is below 5.
           ``round µs`` is the wall time of a round in the first and in the last tenth of the rounds after the warm-up,
           with evaluation and writing; ``file`` the size of the result
"""

import argparse
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import mpifed
from benchmarks.speed.measuring import LAUNCHER, Table, children, fresh, gaussian, launched, parser, play

MB = 1e6
NONZEROS = 50  # of each row of CSR
STEPS = ["algorithm=fedavg", "algorithm.k0=5", "algorithm.step=constant", "algorithm.step.a=0.01", "stop.gradient=0"]
SELECTED = 16  # clients that train in a round of a network
TRAINED = ["algorithm.epochs=1", "algorithm.batch_size=10", "selection=uniform", f"selection.count={SELECTED}"]
IMAGES = ["data.size=28", "data.channels=1", "data.classes=10", "data.per_client=10", "data.test=0"]
METHODS = {
    "FedGiA, all": ("algorithm=fedgia", "selection=all"),
    "FedAvg, 1000": ("algorithm=fedavg", "algorithm.aggregate=chosen", "selection=uniform", "selection.count=1000"),
}
MODULES = {"MLP": "mlp", "LeNet": "lenet"}
RECORDS: dict[str, dict[str, Any]] = {
    "f every 100 rounds": {},
    "f in every round": {"evaluate.every": 1},
    "and a model every 100": {"record.models": 100},
}
WARM = 1000  # rounds of the warm-up
GOAL = 5.0  # per cent


class Row(NamedTuple):
    """So many clients, few and more, with so many samples of so many features, and the words of ``mpifed run``."""

    few: int
    more: int
    samples: int
    features: int
    dtype: str
    words: tuple[str, ...] = ()
    kind: str = "dense"  # or CSR, small, or network

    def scaled(self, scale: float) -> tuple[int, int]:
        """Few and more clients, so many times as many."""
        least = SELECTED if self.kind == "network" else 2
        return max(least, round(self.few * scale)), max(2 * least, round(self.more * scale))


def known() -> dict[str, Row]:
    """All rows: logistic regression in the shapes of cases A and B and on CSR data, two methods, and networks."""
    found = {}
    for name, shape in {"A": (128, 1280, 70, 1024), "B": (10_000, 200_000, 20, 20)}.items():
        for dtype in ("float32", "float64"):
            for kernels in ("numpy", "compiled", "torch"):
                found[f"{name} {dtype} {kernels}"] = Row(*shape, dtype, (*STEPS, f"kernels={kernels}"))
    for kernels in ("numpy", "torch"):
        words = (*STEPS, f"kernels={kernels}")
        found[f"CSR float64 {kernels}"] = Row(400, 2400, 100, 5000, "float64", words, "CSR")
    for name, method in METHODS.items():
        found[name] = Row(10_000, 100_000, 20, 20, "float64", method)
    for name, module in MODULES.items():
        network = (f"problem.module=benchmarks.speed.models:{module}", "problem.shape=[1,28,28]")
        for batched, how in {"auto": "in groups", "false": "one at a time"}.items():
            words = (*STEPS, *network, f"problem.batched={batched}", *TRAINED)
            found[f"{name} {how}"] = Row(564, 1564, 50, 784, "float32", words, "network")
    for name, share in {"5 samples": 0.0, "5 samples, 1 a test": 0.2}.items():
        found[name] = Row(
            10_000, 1_000_000, 5, 20, "float32", (*METHODS["FedAvg, 1000"], f"data.test={share}"), "small"
        )
    return found


def chosen(args: argparse.Namespace) -> dict[str, Row]:
    """The rows that are asked for and can be measured here."""
    there = {"compiled": find_spec("numba"), "torch": find_spec("torch")}
    found = {name: row for name, row in known().items() if there.get(name.split()[-1], True)}
    if there["torch"] is None:
        found = {name: row for name, row in found.items() if row.kind != "network"}
    return {name: row for name, row in found.items() if args.only.lower() in name.lower()}


def csr(path: Path, row: Row, clients: int) -> float:
    """Write a file of CSR samples; the bytes of what is in it."""
    rng = np.random.default_rng(0)
    count = clients * row.samples
    columns = np.sort(rng.integers(0, row.features // NONZEROS, (count, NONZEROS)) + np.arange(NONZEROS) * 100)
    ends = NONZEROS * np.arange(count + 1)
    values = rng.standard_normal(columns.size)
    X = sp.csr_array((values, columns.ravel().astype(np.int32), ends.astype(np.int32)), shape=(count, row.features))
    y = rng.integers(0, 2, count).astype(float)
    parts = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array(X.shape)}
    np.savez(path, y=y, sizes=np.full(clients, row.samples), **parts)
    return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes)


def study(row: Row, clients: int, folder: Path) -> tuple[list[str], float]:
    """The words of ``mpifed run`` for a row, and the bytes of its samples."""
    words = [*row.words, f"dtype={row.dtype}", "rounds=2", "evaluate.every=2"]
    if row.kind == "CSR":
        path = folder / f"{clients}.npz"
        size = fresh(csr, path, row, clients)  # a process that is started has the peak of this one, if that is higher
        return [f"data={path}", "problem=logistic", *words], size
    data = gaussian(clients, row.samples, row.features)
    if row.kind == "network":
        data = ["data=images", *data[1:3], *IMAGES, "problem=torch"]
    if row.kind == "small":
        data = ["data=synthetic", data[1], f"data.least={row.samples}", f"data.most={row.samples}", data[3]]
        data += ["problem=softmax"]
    count = [f"selection.count={min(clients, 1000)}"] if "selection.count=1000" in words else []
    words = [word for word in words if not count or not word.startswith("selection.count")]
    size = clients * row.samples * (row.features + 1) * float(np.dtype(row.dtype).itemsize)
    return [*data, *words, *count], size


def peak(words: list[str], folder: Path, args: argparse.Namespace) -> float:
    """The bytes of the rank that has most, of a run in new processes."""
    ranks = args.ranks[0]
    run = launched(args.launcher if ranks > 1 else "", ranks, words, folder / "run.h5", args.timeout).result
    return float(np.max(run.ranks["max_rss_bytes"]))


def samples(args: argparse.Namespace) -> None:
    """The table of multiples."""
    columns = {"row": 22, "clients": 7, "samples MB": 6, "peak MB": 6, "a byte of samples": 6, "CPU µs": 6}
    table = Table(columns, args.to and args.to / "memory.csv")
    with tempfile.TemporaryDirectory() as folder:
        for name, row in chosen(args).items():
            counts = row.scaled(args.scale)
            (few, less), (many, size) = (study(row, count, Path(folder)) for count in counts)
            begun = children()
            least, between = peak(few, Path(folder), args), children()
            most, ended = peak(many, Path(folder), args), children()
            multiple = (most - least) / (size - less) * max(1, args.ranks[0] - 1)
            spent = (ended - 2 * between + begun) / (counts[1] - counts[0]) * 1e6
            table.row(name, counts[1], size / MB, most / MB, multiple, spent)


class Mark(NamedTuple):
    """The state after a round: bytes of memory, and seconds since the start."""

    round: int
    memory: int
    seconds: float


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def marked(rounds: int) -> list[int]:
    """The rounds to be looked at: end of the warm-up, of the first tenth, begin of the last tenth, end."""
    tenth = (rounds - WARM) // 10
    return [WARM, WARM + tenth, rounds - tenth, rounds]


def long_run(rounds: int, record: dict[str, Any], path: Path) -> list[Mark]:
    """Run the study in this process, a new one: the marks of its rounds."""
    marks: list[Mark] = []
    wanted, begun = set(marked(rounds)), time.perf_counter()
    data = {"data": "gaussian", "data.clients": 8, "data.samples": 4, "data.features": 4}
    study = {"algorithm": "fedavg", **data, "stop.gradient": 0.0, "evaluate.every": 100, "rounds": rounds}

    def look(round: int, row: object) -> None:
        if round in wanted:
            marks.append(Mark(round, resident(), time.perf_counter() - begun))

    mpifed.run(None, study | record, path=path, force=True, progress=False, callback=look)
    return marks


def growth(marks: list[Mark]) -> list[float]:
    """MB after the warm-up and at the end, growth in per cent, and µs of a round in the first and the last tenth."""
    warm, early, late, end = marks
    first = (early.seconds - warm.seconds) / (early.round - warm.round) * 1e6
    last = (end.seconds - late.seconds) / (end.round - late.round) * 1e6
    return [warm.memory / MB, end.memory / MB, 100 * (end.memory / warm.memory - 1), first, last]


def endurance(args: argparse.Namespace) -> None:
    """The table of long runs."""
    if args.rounds < 2 * WARM:
        sys.exit(f"--rounds must be at least {2 * WARM}")
    names = ("resident MB", "at the end", "growth %", "round µs", "at the end ", "file MB")
    table = Table({"recorded": 22, "rounds": 7, **dict.fromkeys(names, 6)}, args.to and args.to / "endurance.csv")
    above = []
    for name, record in RECORDS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.h5"
            cells = growth(fresh(long_run, args.rounds, record, path))
            table.row(name, args.rounds, *cells, path.stat().st_size / MB)
        if cells[2] >= GOAL:
            above.append(name)
    print(f"growth below {GOAL:.0f} %: " + (f"not of {', '.join(above)}" if above else "yes"))


def main() -> None:
    options: dict[str, Any] = {"only": "", "scale": 1.0, "ranks": "1", "rounds": 200_000, "to": None}
    args = parser(__doc__, part="samples", **options, launcher=LAUNCHER, timeout=600.0).parse_args()
    play({"samples": samples, "endurance": endurance}, args)


if __name__ == "__main__":
    main()
