"""python -m benchmarks.robust: write docs/studies/robust.md, five robust means under five attacks, in minutes."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed

PAGE = Path(__file__).parents[1] / "docs" / "studies" / "robust.md"
SEEDS = 5
SHARES = (0.1, 0.3)
Table = dict[str, Any]
COMMON: Table = {
    "selection": "all",
    "stop": {"gradient": 0.0, "diverged": 0},
    "evaluate": {"every": 1000},
    "block_bytes": 1_000_000,
}


ATTACKS: dict[str, Table] = {
    "sign-flip": {"scale": 3.0},
    "random": {"scale": 1.0},
    "little": {"z": 1.5},
    "inner-product": {"scale": 3.0},
    "labels": {},
}


class Study(NamedTuple):
    """A problem: its settings for a seed, what a run is judged by, and the radius of clipping."""

    title: str
    settings: Callable[[int], Table]
    judge: Callable[[Any, int], float]
    radius: float
    digits: str


def images(seed: int) -> Table:
    data = {"name": "digits", "clients": 20, "test": 0.2, "partition": {"name": "dirichlet", "alpha": 0.3}}
    step = {"name": "constant", "a": 0.5}
    problem = {"name": "softmax", "lam": 1e-3}
    return {"rounds": 20, "data": data, "problem": problem, "algorithm": {"name": "fedavg", "step": step}, "seed": seed}


M, D = 128, 30  # clients, samples of each
N = 20  # features
MU = 0.01


def samples(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clients (M, D, N) whose features have means of their own, and labels 0 and 1 of one model, noisy."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((M, D, N)) + 0.5 * rng.standard_normal((M, 1, N))
    z = X @ rng.standard_normal(N) / np.sqrt(N) + 0.5 * rng.standard_normal((M, D))
    return X, (z > 0).astype(float)


def regression(seed: int) -> Table:
    X, y = samples(seed)
    data = mpifed.arrays(X.reshape(-1, N), y.reshape(-1), [D] * M)
    problem = {"name": "logistic", "mu": MU, "regulariser": "whole"}
    return {"rounds": 150, "data": data, "problem": problem, "algorithm": {"name": "gd", "gamma": 1.0}, "seed": seed}


def loss(x: np.ndarray, seed: int) -> tuple[float, np.ndarray, np.ndarray]:
    """f with true labels, its gradient and Hessian."""
    X, y = (part.reshape(M * D, -1) for part in samples(seed))
    z = X @ x
    p = 1 / (1 + np.exp(-z))
    f = float(np.mean(np.logaddexp(0, z) - y[:, 0] * z) + MU / 2 * x @ x)
    hessian = (X * (p * (1 - p))[:, None]).T @ X / len(X) + MU * np.eye(N)
    return f, X.T @ (p - y[:, 0]) / len(X) + MU * x, hessian


def gap(result: Any, seed: int) -> float:
    """f − f* with true labels, f* by Newton's method."""
    x = np.zeros(N)
    for _ in range(20):
        _, g, hessian = loss(x, seed)
        x = x - np.linalg.solve(hessian, g)
    return loss(result.x, seed)[0] - loss(x, seed)[0]


STUDIES = [
    Study(
        "Digits: accuracy on test samples",
        images,
        lambda result, seed: float(result.rounds["accuracy"][-1]),
        0.5,
        ".2f",
    ),
    Study(
        "Logistic regression: f − f*",
        regression,
        gap,
        0.25,
        ".1e",
    ),
]


def means(radius: float) -> dict[str, Table | None]:
    share = max(SHARES)
    return {
        "plain mean": None,
        "median": {"name": "median"},
        "trimmed": {"name": "trimmed-mean", "share": share},
        "Krum": {"name": "krum", "share": share},
        "geometric": {"name": "geometric-median"},
        "clipping": {"name": "centred-clipping", "radius": radius},
        "median, buckets": {"name": "median", "bucket": 2},
    }


def cell(study: Study, robust: Table | None, attack: Table | None) -> str:
    """Mean and standard deviation over the seeds; ∞ where a run has overflowed."""
    found = []
    for seed in range(SEEDS):
        table = COMMON | study.settings(seed)
        table |= {} if robust is None else {"robust": robust}
        table |= {} if attack is None else {"attack": attack}
        try:
            found.append(study.judge(mpifed.run(table, progress=None), seed))
        except mpifed.RunError:
            return "∞"
    return f"{np.mean(found):{study.digits}} ± {np.std(found, ddof=1):{study.digits}}"


def lines(study: Study) -> list[str]:
    """The table of a study."""
    columns = means(study.radius)
    rows: dict[str, Table | None] = {"nobody": None}
    for name, options in ATTACKS.items():
        rows |= {f"{name}, {share:.0%}": {"name": name, "clients": share, **options} for share in SHARES}
    found = ["| attack | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, attack in rows.items():
        cells = [cell(study, robust, attack) for robust in columns.values()]
        print(name, *cells, sep=" | ", flush=True)
        found.append(f"| {name} | " + " | ".join(cells) + " |")
    return found


def replace_table(page: str, number: int, table: str) -> str:
    """A page with other lines between the marks of one of its tables."""
    begin = f"<!-- table {number} -->\n"
    end = f"<!-- end {number} -->\n"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{table}\n\n{end}{rest.partition(end)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robust", description=__doc__)
    parser.parse_args()
    for number, study in enumerate(STUDIES):
        table = "\n".join(lines(study))
        PAGE.write_text(replace_table(PAGE.read_text("utf-8"), number, table), "utf-8")


if __name__ == "__main__":
    main()
