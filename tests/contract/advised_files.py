"""Small files of samples for the studies of advised.py, in the folder where it is called."""

import numpy as np
import scipy.sparse as sp

ROWS = 48


def write() -> None:
    """Write them: the same table with one thing that is wrong in each, and what it is when that is put right."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, ROWS)).round(3)
    y = (a - 2 * b + 0.1 * rng.normal(size=ROWS)).round(3)
    site = [f"s{k % 4}" for k in range(ROWS)]
    days = [f"2026-01-{k % 28 + 1:02d}" for k in range(ROWS)]
    gap = ["", *a[1:]]
    filled = [float(a[1:].mean()), *a[1:]]
    table("plain", a=a, b=b, y=y, site=site)
    table("whole", a=a[1:], b=b[1:], y=y[1:], site=site[1:])
    table("gaps", a=gap, b=b, y=y, site=site)
    table("filled", a=filled, b=b, y=y, site=site)
    table("untold", a=a, b=b, y=["", *y[1:]], site=site)
    table("mixed", a=[*a[1:], "low"], b=b, y=y, site=site)
    table("last", a=["low", *a[1:]], b=b, y=y, site=site)
    table("worded", a=["low", "high"] * (ROWS // 2), b=b, y=y, site=site)
    table("dates", a=a, b=b, day=days, y=y, site=site)
    table("names", a=a, b=b, day=[f"person {k}" for k in range(ROWS)], y=y, site=site)
    table("numbered", day=range(ROWS), a=a, b=b, y=y, site=site)
    table("unknown", a=a, b=b, day=[""] * ROWS, y=y, site=site)
    part = ["train", "train", "train", "train", "test", "test", "test", "test"] * (ROWS // 8)
    known = [k if kind == "test" else "" for k, kind in enumerate(part)]
    table(
        "three_roles",
        a=a,
        b=b,
        role=["train", "train", "valid", "test"] * (ROWS // 4),
        y=y,
        site=[k // 12 for k in range(ROWS)],
    )
    table("later", a=a, b=b, day=known, part=part, y=y, site=site)
    table("twice", a=a, b=b, day=a, y=y, site=site)
    table("nothing", a=a, b=b, day=[0] * ROWS, y=y, site=site)
    table("large", a=a, b=b, day=1e9 * (np.arange(ROWS) ** 2 % 7), y=y, site=site)
    table("many", a=a, b=b, y=20 + np.arange(ROWS) % 5, site=site)
    table("words", a=a, b=b, y=np.where(y > 0, "yes", "no"), site=site)
    table("zeros", a=a, b=b, y=abs(y).astype(int), site=site)
    table("classes", a=a, b=b, y=np.arange(ROWS) % 3, site=site)
    table("weighed", a=a, b=b, day=1.5 + np.arange(ROWS) % 3, y=y, site=site)
    table("survival", a=a, b=b, t=np.arange(ROWS) + 1, e=np.arange(ROWS) % 2, site=site)
    table("commas", ";", a=comma(a), b=comma(b), y=comma(y), site=site)
    X, k = np.c_[a, b], 40
    np.savez("tested.npz", X=X[:k], y=y[:k], sizes=[10] * 4, X_test=X[k:], y_test=y[k:], sizes_test=[2] * 4)
    np.savez("sized.npz", X=X, y=y, sizes=[12] * 4)
    np.savez("fed.npz", X=X, y=y, client=np.arange(ROWS) % 6)
    sp.save_npz("matrix.npz", sp.csr_array(X))
    np.savez("y.npz", y=y)
    np.savez("joined.npz", X=X, y=y)
    for name, first in (("sparse", 1), ("zero", 0)):
        lines = [f"{label} {first}:{p} {first + 1}:{q}\n" for p, q, label in zip(a, b, y, strict=True)]
        with open(f"{name}.svm", "w") as file:
            file.writelines(lines)
    for name, shape in (("short", 5), ("three", 3), ("nodes", (6, 3))):
        np.savez(f"{name}.npz", x=np.zeros(shape))
    np.savez("warm.npz", x=[0.0, 0.0, 2.5])
    np.savez("far.npz", x=[0.0, 0.0, 0.0, -6.0])


def comma(column: np.ndarray) -> list[str]:
    """Numbers with decimal commas."""
    return [str(number).replace(".", ",") for number in column]


def table(name: str, mark: str = ",", **columns: object) -> None:
    """Write a table of columns."""
    with open(f"{name}.csv", "w") as file:
        print(*columns, sep=mark, file=file)
        for row in zip(*columns.values(), strict=True):
            print(*row, sep=mark, file=file)
