"""`mpifed compare --test`: every two rows of a table, tested over the seeds that all rows have."""

import math
from collections.abc import Sequence

import numpy as np

from mpifed.core.errors import UserError
from mpifed.report import best
from mpifed.report.compare import Layout
from mpifed.report.groups import label, study
from mpifed.report.metrics import available, column, requested
from mpifed.report.statistics import pairwise
from mpifed.report.tables import FORMATS, Number, Table
from mpifed.results.result import Result

LEVEL = 0.05  # of p


def pairs(results: Sequence[Result], name: str, layout: Layout) -> str:
    """The table of pairs: in how many seeds either row is better in column ``name``, and p.

    Wilcoxon's signed-rank test of the differences, corrected by Holm for the number of pairs. Where the rows have too
    few seeds in common for any p below ``LEVEL``, a sentence that says so. UserError for a column that no run or not
    every row has or that is neither better nor worse, and for a single row.
    """
    if layout.form == "csv":
        raise UserError(
            "--test does not go with --format csv, which holds one table: choose terminal, markdown or latex"
        )
    groups = study(results, layout.by, [*available(results), "n", "status"], layout.rename)
    requested(results, [name])
    sign = column(name).better
    if not sign:
        raise UserError(f"--test {name} is wrong: neither more nor less of {name} is better")
    ends = best.final_values(groups, name, layout.by, layout.everything)
    if len(ends) < 2:
        raise UserError(f"--test {name} is wrong: it needs two rows, and there is one")
    names = [label(group, groups) for group in groups.groups]
    for own, row in zip(names, ends, strict=True):
        if not any(map(math.isfinite, row.values())):
            raise UserError(f"--test {name} is wrong: no run of the row {own} that counts has {name}")
    common = [key for key in ends[0] if all(math.isfinite(row.get(key, math.nan)) for row in ends)]
    if few := too_few(len(common), len(ends)):
        comment = "% " if layout.form == "latex" else ""
        return f"{comment}--test {name} has too few seeds: {few}"
    values = np.array([[-sign * row[key] for row in ends] for key in common])
    found = pairwise(values, signed=True)
    table = Table([], [], [[] for _ in found], [])
    table.add(("", ""), "a", [f"{names[pair.a]} – {names[pair.b]}" for pair in found])
    table.add(("seeds better", "seeds better"), "better", [f"{pair.wins} : {pair.losses}" for pair in found])
    table.add(("p (Holm)", "$p$ (Holm)"), "p", [Number(pair.p) for pair in found])
    return FORMATS[layout.form](table)


def too_few(seeds: int, rows: int) -> str:
    """Why no outcome of the test can have a p below ``LEVEL``, and what would be enough; nothing where one can.

    The least p is 2/2^seeds, of a row that is better with every seed, times the number of pairs.
    """
    pairs = math.comb(rows, 2)
    needed = math.ceil(math.log2(2 * pairs / LEVEL))
    if seeds >= needed:
        return ""
    least = min(1.0, pairs * 2.0 ** (1 - seeds))
    return (
        f"the {rows} rows share {seeds}, with which p is at least {least:.2g}; from {needed} on it can be below {LEVEL}"
    )
