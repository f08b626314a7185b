"""Runs side by side: what differs between their experiment files, and which differ in nothing but the seed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mpifed.core.errors import UserError, printable, unknown
from mpifed.report.summary import flat
from mpifed.results.result import Result, load

ASIDE = ("checkpoint", "record")  # tables that change nothing of what is computed
NAMED = ("algorithm", "data", "problem", "selection")  # settings whose value says enough
THERE = "yes"  # the value of a table without a name, which may be there or not

Settings = dict[str, str]


class Group(NamedTuple):
    """Runs whose ``settings`` are the same, by key of the experiment file."""

    settings: Settings
    runs: list[Result]


class Study(NamedTuple):
    """Groups of runs and, key -> short name, the settings in which groups differ; the algorithm is always there."""

    keys: dict[str, str]
    groups: list[Group]


def read(paths: Iterable[str | os.PathLike[str]]) -> list[Result]:
    """The results in files, one that is named twice once. Raises UserError for the first that cannot be read."""
    return [load(path) for path in {os.path.realpath(path): path for path in paths}.values()]


def settings(result: Result) -> Settings:
    """The configuration of a run, key -> value as overrides spell them, and the number of its ranks."""
    config = {key: value for key, value in result.config.items() if key not in ASIDE}
    tables = {key: THERE for key, value in config.items() if isinstance(value, dict) and "name" not in value}
    found = tables | dict(flat(config)) | {"ranks": str(result.attrs.get("ranks", 1))}
    return {printable(key): printable(value) for key, value in found.items()}


def study(results: Sequence[Result], by: Sequence[str] = ("seed",), taken: Iterable[str] = ()) -> Study:
    """The groups of runs that differ in no setting but ``by``; short names avoid those that are ``taken``.

    Raises UserError where there is no run, and where no run has a setting of ``by``.
    """
    if not results:
        raise UserError("there is no result to read")
    rows = [settings(result) for result in results]
    for name in by:
        if name != "seed" and not any(name in row for row in rows):
            unknown("setting", name, dict.fromkeys(key for row in rows for key in row))
    rows = [{key: value for key, value in row.items() if key not in by} for row in rows]
    groups: dict[tuple[tuple[str, str], ...], Group] = {}
    for row, result in zip(rows, results, strict=True):
        groups.setdefault(tuple(sorted(row.items())), Group(row, [])).runs.append(result)
    keys = short(differing([group.settings for group in groups.values()]), taken)
    order = sorted(groups.values(), key=lambda group: [natural(group.settings.get(key, "")) for key in keys])
    return Study(keys, order)


def differing(rows: Sequence[Settings]) -> list[str]:
    """The keys whose values differ between rows, the algorithm and its own first."""
    keys = dict.fromkeys(["algorithm", *(key for row in rows for key in row)])
    found = [key for key in keys if key == "algorithm" or varies(key, rows)]
    return sorted(found, key=lambda key: key.split(".")[0] != "algorithm")


def varies(key: str, rows: Sequence[Settings]) -> bool:
    """Whether rows differ in a setting.

    Rows without it differ from those that have it only where nothing explains that: an option of an algorithm, say, is
    absent where the algorithm is another.
    """
    if len({row[key] for row in rows if key in row}) > 1:
        return True
    parents = [key[:place] for place, sign in enumerate(key) if sign == "."]
    there: dict[tuple[str | None, ...], set[bool]] = {}
    for row in rows:
        there.setdefault(tuple(row.get(parent) for parent in parents), set()).add(key in row)
    return any(len(both) > 1 for both in there.values())


def short(keys: Sequence[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """The last part of each key, the whole key where another is called the same; what is ``taken`` is used for neither."""
    last, taken = [key.rsplit(".", 1)[-1] for key in keys], set(taken)
    whole = {key: f"{key} (setting)" if key in taken else key for key in keys}
    return {
        key: name if last.count(name) == 1 and name not in taken else whole[key]
        for key, name in zip(keys, last, strict=True)
    }


def natural(text: str) -> tuple[int, float, str]:
    """What to sort a value by: numbers by size and before words."""
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def label(group: Group, study: Study, without: str = "") -> str:
    """What to call a group in a picture: the settings in which it differs from others, but for the one ``without``."""
    keys = [key for key in study.keys if key != without]
    if len(keys) > 1 and len({other.settings.get("algorithm") for other in study.groups}) == 1:
        keys.remove("algorithm")
    named = {key: group.settings[key] for key in keys if key in group.settings}
    return ", ".join(value if key in NAMED else f"{study.keys[key]}={value}" for key, value in named.items())
