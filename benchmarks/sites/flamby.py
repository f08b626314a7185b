"""FLamby's Heart and TCGA-BRCA: files, splits, its published numbers, and the accuracy and c-index on its test sets."""

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from mpifed import UserError
from mpifed.core.typing import Array

SPLIT = 43  # FLamby's seed of the split of heart
SEEDS = range(42, 47)
FLAT = 1e-8  # of the largest variance: that of no direction


class Task(NamedTuple):
    """A task's samples by client, for training and for testing, and what is fitted."""

    name: str
    metric: str
    problem: dict[str, Any]
    train: list[tuple[Array, Array]]  # X (d_i, n), y (d_i,) of each client; y of heart 0 and 1, of TCGA ± times
    test: list[tuple[Array, Array]]

    def data(self, clients: list[int] | None = None) -> Any:
        """The training samples as data of a run, of all clients or of some."""
        parts = [self.train[i] for i in (range(len(self.train)) if clients is None else clients)]
        X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return mpifed.arrays(X, y, [len(labels) for _, labels in parts])

    def scores(self, x: Array) -> list[float]:
        """The metric on the test samples of each client, then on those of all together."""
        whole = tuple(np.concatenate(arrays) for arrays in zip(*self.test, strict=True))
        measure = accuracy if self.metric == "accuracy" else c_index
        return [measure(X @ x, y) for X, y in (*self.test, whole)]


def folder() -> Path:
    """FLamby's files; UserError where there are none."""
    found = Path(os.environ.get("MPIFED_DATA", ""), "flamby")
    if not os.environ.get("MPIFED_DATA") or not found.is_dir():
        raise UserError("MPIFED_DATA must name a folder with flamby/, FLamby's files of Heart and TCGA-BRCA")
    return found


def heart(normalised: str) -> Task:
    """Heart disease in four hospitals, features normalised with training means "pooled" or of each hospital, "own"."""
    names = ("cleveland", "hungarian", "switzerland", "va")
    options = {"ignore": [10, 11, 12], "categories": [2, 6], "above": 0, "missing": "drop"}
    paths = [str(folder() / f"heart/processed.{name}.data") for name in names]
    data = mpifed.extend.Data.build({"name": "file", "path": paths, **options}, "data").load(0, "float64")
    X, y = data.rows(0, data.m)
    ends = np.cumsum(data.sizes)[:-1]
    rows = list(zip(np.split(X, ends), np.split(y, ends), strict=True))
    train, test = [], []
    for A, b in rows:
        kept, held = stratified(b, SPLIT)
        train.append((A[kept], b[kept]))
        test.append((A[held], b[held]))
    pooled = np.concatenate([A for A, _ in train])
    for i, ((A, b), (T, c)) in enumerate(zip(train, test, strict=True)):
        by = pooled if normalised == "pooled" else A
        train[i] = (with_ones(A, by), b)
        test[i] = (with_ones(T, by), c)
    return Task(f"heart, {normalised} normalisation", "accuracy", {"name": "logistic", "mu": 0.0}, train, test)


def with_ones(A: Array, of: Array) -> Array:
    """The features (d, n) with the mean and deviation of ``of``, and a column of ones."""
    deviation = of.std(axis=0, ddof=1)
    scaled = (A - of.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return np.column_stack([scaled, np.ones(len(A))])


def stratified(y: Array, seed: int) -> tuple[Array, Array]:
    """Return the rows for training and testing as FLamby splits them, by scikit-learn.

    It is stratified by y where each class has more than two samples.
    """
    from sklearn.model_selection import train_test_split

    counts = np.unique(y, return_counts=True)[1]
    by = y if len(counts) > 1 and counts.min() > 2 else None
    train, test = train_test_split(np.arange(len(y)), train_size=0.66, test_size=0.34, random_state=seed, stratify=by)
    return train, test


def brca() -> Task:
    """Survival with breast cancer in six regions, features as FLamby has them."""
    options = {"client": "fold2", "test": "fold2", "ignore": ["fold"], "time": "T", "event": "E"}
    paths = {"path": str(folder() / "brca.csv"), "join": str(folder() / "train_test_split.csv")}
    data = mpifed.extend.Data.build({"name": "file", **paths, **options}, "data").load(0, "float64")
    parts = []
    for (X, y), sizes in ((data.rows(0, data.m), data.sizes), (data.rows_test(0, data.m), data.sizes_test)):
        assert sizes is not None
        ends = np.cumsum(sizes)[:-1]
        parts.append(list(zip(np.split(X, ends), np.split(y, ends), strict=True)))
    return Task("TCGA-BRCA", "c-index", {"name": "cox", "lam": 1e-4}, *parts)


def whitened(task: Task) -> Task:
    """The task with features in which its training samples together have mean 0 and covariance I.

    Directions without variance are left out. Clients could send Σa and Σaaᵀ for it, once.
    """
    pooled = np.concatenate([X for X, _ in task.train])
    mean = pooled.mean(axis=0)
    values, vectors = np.linalg.eigh((pooled - mean).T @ (pooled - mean) / len(pooled))
    there = values > FLAT * values[-1]
    turn = vectors[:, there] / np.sqrt(values[there])
    train, test = ([((X - mean) @ turn, y) for X, y in parts] for parts in (task.train, task.test))
    return task._replace(train=train, test=test)


def accuracy(scores: Array, y: Array) -> float:
    return float(np.mean((scores > 0) == (y > 0)))


def c_index(scores: Array, y: Array) -> float:
    """Harrell's c-index at scores (d,) of labels ± times; FLamby takes that of lifelines, which is the same."""
    times, events = np.abs(y), ~np.signbit(y)
    later = (times[None, :] > times[:, None]) | ((times[None, :] == times[:, None]) & ~events[None, :])
    pairs = events[:, None] & later
    if not pairs.any():
        return float("nan")
    wins = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return float(wins[pairs].mean())


def published(task: Task) -> dict[str, Array]:
    """FLamby's numbers: method -> (seeds, clients + 1), the last column of the pooled test set."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    for seed in SEEDS:
        rows: dict[str, list[float]] = defaultdict(list)
        file = folder() / f"published/{'tcga' if task.metric == 'c-index' else 'heart'}_{seed}.csv"
        with file.open() as lines:
            for row in csv.DictReader(lines):
                rows[row["Method"].removesuffix("100")].append(float(row["Metric"]))
        for method, values in rows.items():
            found[method].append(values)
    return {method: np.array(values) for method, values in found.items()}
