"""`mpifed compare --test`: every two rows of a table, tested over the seeds that all rows have."""

import math
from collections.abc import Sequence

import numpy as np

from mpifed.core.errors import UserError
from mpifed.report import best
from mpifed.report.compare import FORMATS, Layout
from mpifed.report.groups import label, study
from mpifed.report.metrics import available, column, requested
from mpifed.report.statistics import pairwise
from mpifed.report.tables import Number, Table
from mpifed.results.result import Result

LEAST = 2  # seeds


def pairs(results: Sequence[Result], name: str, layout: Layout) -> str:
    """The table of pairs: in how many seeds either row is better in column ``name``, and p.

    Wilcoxon's signed-rank test of the differences, corrected by Holm for the number of pairs. UserError for a column
    that no run has or that is neither better nor worse, and where rows have fewer than two seeds in common.
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
    common = [key for key in ends[0] if all(math.isfinite(row.get(key, math.nan)) for row in ends)]
    if len(ends) < 2 or len(common) < LEAST:
        raise UserError(f"--test {name} is wrong: it needs two rows, and two seeds in which all of them have {name}")
    values = np.array([[-sign * row[key] for row in ends] for key in common])
    found = pairwise(values, signed=True)
    names = [label(group, groups) for group in groups.groups]
    table = Table([], [], [[] for _ in found], [])
    table.add(("", ""), "a", [f"{names[pair.a]} – {names[pair.b]}" for pair in found])
    table.add(("seeds better", "seeds better"), "better", [f"{pair.wins} : {pair.losses}" for pair in found])
    table.add(("p (Holm)", "$p$ (Holm)"), "p", [Number(pair.p) for pair in found])
    return FORMATS[layout.form](table)
