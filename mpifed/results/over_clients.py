"""Statistics of a number over all clients: its mean, the worst tenth, and how far clients differ."""

import numpy as np

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.typing import Array
from mpifed.results.columns import Columns, client_column_info

TENTH = 10  # one worst client among so many counts
SPREADS = ("mean", "worst_tenth", "sd", "iqr", "min", "max", "missing")


def client_metrics(tables: Columns) -> list[str]:
    """Return the names of the numbers of each client in the tables of a result."""
    return [name for name, table in tables.items() if table.ndim == 2]


def summarise_clients(tables: Columns, name: str) -> Columns:
    """Return ``round`` (k,) and statistics (k,) by name, over the clients that have the number ``name``.

    ``mean``; ``worst_tenth``, the mean over the worst tenth of the clients, rounded up, NaN where neither more nor less
    is better; ``sd`` with the number of these clients as divisor; ``iqr``, from the first to the third quartile;
    ``min``, ``max``; and ``missing``, the number of clients without it. UserError where the result has no such number.
    """
    names = client_metrics(tables)
    if not names:
        raise UserError("no numbers of clients are stored: evaluate.clients or evaluate.unseen asks for some")
    if name not in names:
        raise_unknown("number of clients", name, names)
    better = client_column_info(name).better
    rows = np.array([statistics_of(row, better) for row in tables[name]]).reshape(-1, len(SPREADS))
    statistics = Columns(zip(SPREADS, rows.T, strict=True), round=tables["round"])
    return Columns(statistics, missing=statistics["missing"].astype(np.int64))


@np.errstate(invalid="ignore")  # runs that diverged
def statistics_of(values: Array, better: int) -> list[float]:
    """Return the statistics SPREADS of values (m,); NaN, except the last, where no client has a value."""
    rising = np.sort(values[~np.isnan(values)].astype(float))
    missing = float(len(values) - len(rising))
    if not len(rising):
        return [np.nan] * (len(SPREADS) - 1) + [missing]
    # Sorted, so that sums have the same bits in whatever order the clients were evaluated.
    quarter, three_quarters = np.quantile(rising, [0.25, 0.75])
    ends = [float(three_quarters - quarter), float(rising[0]), float(rising[-1])]
    return [float(rising.mean()), worst_tenth_mean(rising, better), float(rising.std()), *ends, missing]


def worst_tenth_mean(rising: Array, better: int) -> float:
    """Return the mean over the worst tenth of rising values, rounded up; NaN where ``better`` says neither is worse."""
    count = -(-len(rising) // TENTH)
    if not better:
        return np.nan
    return float((rising[:count] if better > 0 else rising[-count:]).mean())
