"""A number of each client over all of them: its mean, the worst tenth, and how far clients are apart."""

import numpy as np

from mpifed.core.errors import UserError, unknown
from mpifed.core.typing import Array
from mpifed.results.columns import Columns, of_client

TENTH = 10  # clients of which the worst one counts
SPREADS = ("mean", "worst_tenth", "sd", "iqr", "min", "max", "missing")


def client_columns(tables: Columns) -> list[str]:
    """The numbers of each client in the tables of a result."""
    return [name for name, table in tables.items() if table.ndim == 2]


def over_clients(tables: Columns, name: str) -> Columns:
    """``round`` (k,) and by name (k,) each, over the clients that have the number ``name``.

    ``mean``; ``worst_tenth``, the mean over a tenth of the clients with the worst, rounded up, NaN where neither more
    nor less is better; ``sd`` with the number of these clients as divisor; ``iqr``, from the first to the third
    quartile; ``min``, ``max``; and ``missing``, how many clients have none. UserError where the result has no such
    number.
    """
    there = client_columns(tables)
    if not there:
        raise UserError("no numbers of clients are stored: evaluate.clients or evaluate.unseen asks for some")
    if name not in there:
        unknown("number of clients", name, there)
    better = of_client(name).better
    rows = np.array([spread(row, better) for row in tables[name]]).reshape(-1, len(SPREADS))
    found = Columns(zip(SPREADS, rows.T, strict=True), round=tables["round"])
    return Columns(found, missing=found["missing"].astype(np.int64))


@np.errstate(invalid="ignore")  # runs that diverged
def spread(values: Array, better: int) -> list[float]:
    """The numbers SPREADS of values (m,); NaN, all but the last, where no client has one."""
    own = np.sort(values[~np.isnan(values)].astype(float))
    missing = float(len(values) - len(own))
    if not len(own):
        return [np.nan] * (len(SPREADS) - 1) + [missing]
    # Sorted, so that sums have the same bits in whatever order the clients were evaluated.
    quarter, three = np.quantile(own, [0.25, 0.75])
    ends = [float(three - quarter), float(own[0]), float(own[-1])]
    return [float(own.mean()), worst_tenth(own, better), float(own.std()), *ends, missing]


def worst_tenth(rising: Array, better: int) -> float:
    """The mean over a tenth of rising values, rounded up: of the least where more is better, of the largest where less
    is; NaN where neither is.
    """
    count = -(-len(rising) // TENTH)
    if not better:
        return np.nan
    return float((rising[:count] if better > 0 else rising[-count:]).mean())
