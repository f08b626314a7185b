"""python -m benchmarks.private_tables: write docs/studies/private-personal.md and its picture from committed rows."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np

from benchmarks.private_personal import (
    ALPHAS,
    DATA,
    EPSILONS,
    LOCAL,
    METHODS,
    MODES,
    PAGE,
    PAIRS,
    PICTURE,
    Rows,
    committed,
    half_width,
    interval,
)
from benchmarks.robust import replace_table


def line(head: str, cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {head} | {' | '.join(cells)} |"


def lines(heads: Sequence[str], found: dict[str, list[str]]) -> str:
    """A table of Markdown; the first cell of each row is its name."""
    return "\n".join([line("", heads), "|---" * (len(heads) + 1) + "|", *itertools.starmap(line, found.items())])


def private_tables(rows: Rows) -> Iterator[str]:
    """Tables of accuracies, paired differences and chosen settings of part A."""
    heads = [f"ε = {epsilon:g}".replace("inf", "∞") for epsilon in EPSILONS]
    columns = [f"{epsilon:g}" for epsilon in EPSILONS]
    for data in DATA:
        yield lines(heads, {mode: [interval(rows.of(data, mode, column)) for column in columns] for mode in MODES})
    yield lines(
        heads,
        {
            f"{data}: {title}": [interval(rows.of(data, one, at) - rows.of(data, two, at), "+") for at in columns]
            for data, (title, (one, two)) in product(DATA, PAIRS.items())
        },
    )
    yield lines(
        heads,
        {f"{data}: {mode}": [rows.setting(data, mode, at) for at in columns] for data, mode in product(DATA, MODES)},
    )


def personal_tables(rows: Rows) -> Iterator[str]:
    """Tables of accuracies, of paired differences from two rows, and of chosen settings of part B."""
    kinds = {"accuracy": "test", "worst tenth": "worst"}
    heads = [f"α = {alpha:g}, {kind}" for alpha, kind in product(ALPHAS, kinds)]
    places = [(f"{alpha:g}", number) for alpha, number in product(ALPHAS, kinds.values())]

    def of(name: str) -> list[np.ndarray]:
        return [rows.of("personal", name, *place) for place in places]

    def less(name: str, other: str) -> list[str]:
        return [interval(mine - its, "+") for mine, its in zip(of(name), of(other), strict=True)]

    yield lines(heads, {name: [interval(found) for found in of(name)] for name in METHODS})
    yield lines(heads, {name: less(name, LOCAL) for name in METHODS if name != LOCAL})
    bases = {name: "FedAvg" + name[len(name.partition(",")[0]) :] for name in METHODS}
    yield lines(heads, {name: less(name, base) for name, base in bases.items() if name not in (base, LOCAL)})
    columns = [f"{alpha:g}" for alpha in ALPHAS]
    yield lines(
        [f"α = {alpha:g}" for alpha in ALPHAS],
        {name: [rows.setting("personal", name, column) for column in columns] for name in METHODS},
    )


def written(page: str, rows: Rows) -> str:
    """The page with the tables that rows give."""
    for number, table in enumerate([*private_tables(rows), *personal_tables(rows)]):
        page = replace_table(page, number, table)
    return page


def draw(rows: Rows) -> None:
    """Draw accuracy over ε, with the intervals of the tables."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(DATA), figsize=(8.4, 3.4), layout="constrained")
    places = np.arange(len(EPSILONS))
    for axis, data in zip(axes, DATA, strict=True):
        for number, mode in enumerate(MODES):
            found = np.array([rows.of(data, mode, f"{epsilon:g}") for epsilon in EPSILONS])
            look = {"color": f"C{number}", "marker": "osD^"[number], "linestyle": ["-", "--", "-", "--"][number]}
            x = places + 0.07 * (number - 1.5)
            axis.errorbar(x, found.mean(axis=1), half_width(found), capsize=2, markersize=4, label=mode, **look)
        axis.set_xticks(places, [f"{epsilon:g}".replace("inf", "∞") for epsilon in EPSILONS])
        axis.set_xlabel("ε")
        axis.set_title(data)
        axis.grid(axis="y", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("accuracy on test samples, %")
    axes[0].legend(fontsize="small")
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8"), committed()), "utf-8")
    draw(committed())
