"""python -m benchmarks.speed.memory_table: the memory of a rank, as a multiple of the bytes of its samples.

Every run is a new process, and every row two runs: with few clients and with more. A multiple is the growth of the
peak from the first to the second, divided by the growth of the samples: what a byte of samples costs, without Python,
its libraries and what does not grow. Samples are features and labels; of CSR data features are the numbers, their
columns and the ends of rows. ``peak`` is of the larger run, on the rank with the highest. A network trains 16 of its
clients in each of two rounds, and all are evaluated; otherwise all clients take five steps.

``device`` is the same of the memory that PyTorch had from a GPU at its peak. With ``--device cuda`` all rows but those
of CSR and of numba compute there; without it the column is empty. ``--ranks 3`` takes one server and two hosts.
"""

import argparse
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.speed.common import figure, fresh, gaussian, launched
from mpifed import Result

MB = 1e6
NONZEROS = 50  # of each row of CSR
STEPS = ["algorithm=fedavg", "algorithm.k0=5", "algorithm.step=constant", "algorithm.step.a=0.01", "stop.gradient=0"]
SELECTED = 16  # clients that train in a round of a network
TRAINED = ["algorithm.epochs=1", "algorithm.batch_size=10", "selection=uniform", f"selection.count={SELECTED}"]
IMAGES = ["data.size=28", "data.channels=1", "data.classes=10", "data.per_client=10", "data.test=0"]
MODULES = {"MLP": ("mlp", 784), "LeNet": ("lenet", 784)}


class Row(NamedTuple):
    """So many clients, few and more, with so many samples of so many features."""

    few: int
    more: int
    samples: int
    features: int
    dtype: str = "float32"
    words: tuple[str, ...] = ()


def linear() -> dict[str, Row]:
    """Logistic regression in the shapes of cases A and B, and on CSR data."""
    found = {}
    for name, shape in {"A": (128, 1280, 70, 1024), "B": (10_000, 200_000, 20, 20)}.items():
        for dtype in ("float32", "float64"):
            for kernels in ("numpy", "compiled", "torch"):
                found[f"{name} {dtype} {kernels}"] = Row(*shape, dtype, (f"kernels={kernels}",))
    for kernels in ("numpy", "torch"):
        found[f"CSR float64 {kernels}"] = Row(400, 2400, 100, 5000, "float64", (f"kernels={kernels}",))
    return found


def networks() -> dict[str, Row]:
    """Networks of ``benchmarks.speed.models`` in groups and one client at a time."""
    found = {}
    for name, (module, features) in MODULES.items():
        for batched in ("auto", "false"):
            words = (f"problem.module=benchmarks.speed.models:{module}", "problem.shape=[1,28,28]")
            row = Row(564, 1564, 50, features, "float32", (*words, f"problem.batched={batched}", *TRAINED))
            found[f"{name} {'one at a time' if batched == 'false' else 'in groups'}"] = row
    return found


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


def study(name: str, row: Row, clients: int, folder: Path) -> tuple[list[str], float]:
    """The words of ``mpifed run`` for a row, and the bytes of its samples."""
    words = [*STEPS, *row.words, f"dtype={row.dtype}", "rounds=2", "evaluate.every=2"]
    if name.startswith("CSR"):
        path = folder / f"{clients}.npz"
        size = fresh(csr, path, row, clients)  # a process that is started has the peak of this one, if that is higher
        return [f"data={path}", "problem=logistic", *words], size
    data = gaussian(clients, row.samples, row.features)
    if name.split()[0] in MODULES:
        data = ["data=images", *data[1:3], *IMAGES, "problem=torch"]
    return [*data, *words], clients * row.samples * (row.features + 1) * float(np.dtype(row.dtype).itemsize)


def run(words: Sequence[str], folder: Path, args: argparse.Namespace) -> Result:
    """The result of one run in new processes."""
    path = folder / "run.h5"
    result = launched(args.launcher if args.ranks > 1 else "", args.ranks, words, path, args.timeout).result
    path.unlink()
    return result


def peaks(result: Result) -> np.ndarray:
    """The bytes of the rank that has most, on the host and on the device."""
    ranks = result.ranks
    return np.array([float(np.max(ranks[column])) for column in ("max_rss_bytes", "max_device_bytes")])


def moved(row: Row, name: str) -> Row:
    """The same on a GPU."""
    network = name.split()[0] in MODULES
    words = [word for word in row.words if not word.startswith("kernels=")]
    return row._replace(words=(*words, "problem.device=cuda" if network else "kernels=cuda"))


def chosen(args: argparse.Namespace) -> dict[str, Row]:
    """The rows that are asked for and can be measured here."""
    found = linear() | (networks() if find_spec("torch") else {})
    absent = [name for name, needs in (("compiled", "numba"), ("torch", "torch")) if find_spec(needs) is None]
    if args.device == "cuda":
        absent = ["compiled", "torch"]
    found = {name: row for name, row in found.items() if name.split()[-1] not in absent}
    if args.device == "cuda":
        found = {name: moved(row, name) for name, row in found.items() if not name.startswith("CSR")}
    return {name: row for name, row in found.items() if args.only.lower() in name.lower()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--only", default="", help="only the rows whose name contains this")
    option("--scale", type=float, default=1.0, help="so many times the clients (default: 1)")
    option("--device", default="cpu", choices=("cpu", "cuda"), help="default: cpu")
    option("--ranks", type=int, default=1, help="ranks of a run (default: 1, without MPI)")
    option("--launcher", default="mpirun -n {ranks}", help="command that starts ranks (default: %(default)s)")
    option("--timeout", type=float, default=600, help="maximum seconds of a run (default: 600)")
    args = parser.parse_args()
    print(f"{'row':<24}{'clients':>8}{'samples MB':>12}{'peak MB':>10}{'host':>8}{'device':>8}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, row in chosen(args).items():
            fewest = SELECTED if name.split()[0] in MODULES else 2
            counts = [max(fewest, round(row.few * args.scale)), max(2 * fewest, round(row.more * args.scale))]
            studies = [study(name, row, count, Path(folder)) for count in counts]
            least, most = (peaks(run(words, Path(folder), args)) for words, _ in studies)
            sizes = [size for _, size in studies]
            host, device = (most - least) / (sizes[1] - sizes[0]) * max(1, args.ranks - 1)
            print(
                f"{name:<24}{counts[1]:>8}{sizes[1] / MB:>12.1f}{most[0] / MB:>10.1f}{host:>8.2f}"
                f"{figure(device) if device else '-':>8}",
                flush=True,
            )


if __name__ == "__main__":
    main()
