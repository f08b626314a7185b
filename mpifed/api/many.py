"""Many results at once: read, in a data frame, in a table, in a picture."""

import glob
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict, Unpack

from mpifed.api.result import Result, draw, load
from mpifed.core.errors import UserError, import_required
from mpifed.core.toml import flatten, toml_value
from mpifed.report import compare as tables
from mpifed.report import settings as groups
from mpifed.report.metrics import DERIVED, available_metrics, final_metric, metric_info
from mpifed.results import result as results

ResultsLike = str | os.PathLike[str] | results.RunRecord | Iterable[str | os.PathLike[str] | results.RunRecord]

OUTCOME = ("status", "stop_reason", "cr", "tct", "lct")
OVER = ("evaluated_on", "missing")  # attributes about numbers over samples


def load_results(runs: ResultsLike) -> list[Result]:
    """Load the results that ``runs`` names: a file, a folder, a pattern such as results/*.h5, a result, or several.

    UserError where there is none, and for the first that cannot be read.
    """
    several = [runs] if isinstance(runs, str | os.PathLike | results.RunRecord) else list(runs)
    loaded = list[Result]()
    for item in several:
        if isinstance(item, results.RunRecord):
            loaded.append(item if isinstance(item, Result) else Result.of(item))
        else:
            loaded += map(load, expand(os.fspath(item)))
    if not loaded:
        raise UserError("there is no result: give files, a pattern such as results/*.h5, or results")
    return loaded


def expand(name: str) -> list[str]:
    """Return the files of a pattern or in a folder, by name. UserError where there is none."""
    pattern = os.path.join(glob.escape(name), "*.h5") if os.path.isdir(name) else name
    # names of a sweep may have brackets and stars: a file of exactly this name comes first
    if (pattern == name and os.path.lexists(name)) or not glob.has_magic(pattern):
        return [name]
    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        raise UserError(f"there is no file {pattern}")
    return matches


def frame(runs: ResultsLike) -> Any:
    """Return a pandas DataFrame with one row for each run: ``mpifed.frame("results/*.h5")``.

    ``runs``: a pattern, a folder, results, or a list of files or results. Columns: the settings in which the runs
    differ, by the last part of their keys where that is enough; ``status``, ``stop_reason``, ``cr``, ``tct`` and
    ``lct``; every column of /rounds, its last finite value or, for seconds of a round, their sum; where accuracies or
    other numbers over samples are among them, ``evaluated_on``, which samples these are, and ``missing``, how many
    clients have none; ``ranks`` and ``path``. UserError where there is no run, and without pandas.
    """
    pandas = import_required("pandas", 'frame needs pandas: pip install "mpifed[frames]"')
    loaded = load_results(runs)
    measured = [name for name in available_metrics(loaded) if name not in DERIVED]
    rows = [groups.run_settings(result) for result in loaded]
    keys = [key for key in groups.differing_keys(rows) if key != "ranks"]
    over = [name for name in OVER if any(result.attrs.get("evaluated") for result in loaded)]
    names = groups.short_names(keys, [*OUTCOME, *measured, *over, "ranks", "path"])
    table = []
    for result in loaded:
        row = {names[key]: setting_value(result, key) for key in keys}
        row |= {name: getattr(result, name) for name in OUTCOME}
        row |= {name: final_value(result, name) for name in measured}
        row |= {name: result.attrs.get(name) for name in over}
        table.append(row | {"ranks": int(result.attrs.get("ranks", 1)), "path": result.path})
    return pandas.DataFrame(table, columns=[*names.values(), *OUTCOME, *measured, *over, "ranks", "path"])


def final_value(result: results.RunRecord, name: str) -> float:
    """Return a column at the end of a run; counts are whole numbers."""
    value = final_metric(result, name)
    return int(value) if metric_info(name).integer and math.isfinite(value) else value


def setting_value(result: results.RunRecord, key: str) -> Any:
    """Return a setting as a number or a text; None where the run has none."""
    values = flatten(result.config)
    value = values.get(key, values.get(f"{key}.name"))
    if value is None and key in groups.run_settings(result):
        return groups.THERE
    return toml_value(value) if isinstance(value, list) else value


class TableForm(TypedDict, total=False):
    """The form of a table, and the round whose numbers it has."""

    format: str
    at: str


def compare(
    runs: ResultsLike,
    columns: Sequence[str] | None = None,
    *,
    by: Sequence[str] = ("seed",),
    sort: str | None = None,
    all: bool = False,
    **form: Unpack[TableForm],
) -> str:
    """Return a table of runs, mean ± standard deviation over ``by``, as the command ``compare`` prints it.

    ``mpifed.compare("results/*.h5", ["objective", "rounds"])``.

    ``runs`` as for ``frame``. ``columns``: recorded columns, or rounds, tct, lct and bytes; None: the default ones.
    ``sort``: a setting, from small to large, or a column, best first. ``all``: count runs that did not finish, too.
    ``format``: terminal, markdown, latex or csv. ``at``: "end", or "best", numbers of the best round by what the run
    chose by, as ``Result.best``. UserError for a setting or column that no run has.
    """
    return tables.compare(load_results(runs), tables.TableOptions(by, columns, sort, all, **form))


def plot(
    runs: ResultsLike,
    y: str | Sequence[str] | None = None,
    x: str = "round",
    *,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    **options: Any,
) -> Any:
    """Plot columns ``y`` against ``x``, a curve for each setting, its mean over seeds; return a figure of matplotlib.

    ``mpifed.plot("results/*.h5", "objective", "bytes", log="y")``.

    ``runs`` as for ``frame``. ``x`` and ``y``: columns of /rounds, or bytes, seconds, and error, which is f − f*. A
    panel for each of several ``y``; None: the objective. ``path``: a file for the figure too, as PNG, PDF or SVG.
    ``options``: ``log`` ("x", "y", "xy" or "none"), ``width`` ("single", "double" or inches), ``title``, ``band``
    ("none", "sd" or "minmax"), ``rename`` (old name -> new name), ``all`` (True: show runs that did not finish, too,
    else the figure says how many are left out). UserError for a column that no run has.
    """
    return draw(load_results(runs), y, x, path, force, **options)
