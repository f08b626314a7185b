"""Settings of runs: how they are spelt, which of them a summary shows, and in which of them runs differ."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mpifed.core.errors import UserError, counted, printable, unknown
from mpifed.core.toml import flat, toml_value
from mpifed.report.names import AS_PRINTED, Names, methods_of, renames
from mpifed.results.result import Result, load

ASIDE = ("checkpoint", "record")  # tables that do not change what is computed
ENDING = ("stop", "rounds")  # when a run ends: it names runs only where nothing else does
OF_SEED = ("stop.optimum",)  # follows from the data, and with them from the seed
NAMED = ("algorithm", "data", "problem", "selection")  # settings whose value says enough without the key
THERE = "yes"  # the value that stands for a table without a name, such as [system]
ALWAYS = ("seed", "rounds", "data", "data.clients")  # shown whatever their values
WHOLE = ("data.partition", "problem", "algorithm", "selection")  # tables whose keys are all shown

Settings = dict[str, str]


class Group(NamedTuple):
    """Runs with the same ``settings``, by key of the experiment file."""

    settings: Settings
    runs: list[Result]


class Study(NamedTuple):
    """Groups of runs, and the settings in which they differ (key -> short name), the algorithm always among them."""

    keys: dict[str, str]
    groups: list[Group]
    names: Names = AS_PRINTED


def read(paths: Iterable[str | os.PathLike[str]]) -> list[Result]:
    """Load result files, each once even if it is named twice. UserError for the first that cannot be read."""
    return [load(path) for path in {os.path.realpath(path): path for path in paths}.values()]


def select_runs(results: Sequence[Result], everything: bool = False) -> tuple[list[Result], str]:
    """Return the runs that a picture shows, and its words about those that did not finish; "" where all did.

    They are left out unless ``everything``. A single run is shown whatever its status. UserError where none is left.
    """
    done = [run for run in results if run.status == "finished"]
    if len(done) == len(results):
        return done, ""
    if len(results) == 1:
        return [*results], ending(results[0])
    unfinished = f"{counted(len(results) - len(done), 'run')} that did not finish"
    if everything:
        return [*results], f"with {unfinished}"
    if not done:
        raise UserError("no run has finished: --all, or all=True in Python, shows the others too")
    return done, f"without {unfinished}"


def ending(run: Result) -> str:
    """The status of a run that did not finish, and when it ended; "" for one that did."""
    if run.status == "finished":
        return ""
    return f"{printable(run.status) or 'no status'}, {counted(run.cr, 'round')}"


def left_out(results: Iterable[Result], everything: bool = False) -> list[str]:
    """Return a line for each run that does not count because it did not finish; none with ``everything``."""
    ends = [(run, ending(run)) for run in results if not everything]
    return [f"left out: {printable(run.path or 'a result')} ({end})" for run, end in ends if end]


def settings(result: Result) -> Settings:
    """The configuration of a run, key -> value as overrides spell them, and its number of ranks."""
    config = {key: value for key, value in result.config.items() if key not in ASIDE}
    tables = {key: THERE for key, value in config.items() if isinstance(value, dict) and "name" not in value}
    found = tables | overrides(config) | {"ranks": str(result.attrs.get("ranks", 1))}
    return {printable(key): printable(value) for key, value in found.items()}


def overrides(table: dict[str, Any]) -> dict[str, str]:
    """A configuration as command-line overrides spell it: ``algorithm`` for ``algorithm.name``."""
    return {key.removesuffix(".name"): spelling(value) for key, value in flat(table).items()}


def spelling(value: Any) -> str:
    if isinstance(value, str) and value != "" and " " not in value:
        return value
    text = f"{value:e}".replace(".000000", "") if isinstance(value, float) else ""
    return text if text and len(text) < len(toml_value(value)) and float(text) == value else toml_value(value)


def shown(result: Result, everything: bool = False) -> dict[str, str]:
    """The settings that a summary shows: names, the options of the method, and what is not at its default.

    All of them with ``everything``, and where the file does not say which are at their defaults.
    """
    settings = overrides(result.config)
    if everything or "changed" not in result.attrs:
        return settings
    named = (*ALWAYS, *WHOLE, *str(result.attrs["changed"]).split())
    inside = tuple(f"{table}." for table in WHOLE)
    return {key: value for key, value in settings.items() if key in named or key.startswith(inside)}


def study(
    results: Sequence[Result], by: Sequence[str] = ("seed",), taken: Iterable[str] = (), rename: Sequence[str] = ()
) -> Study:
    """Group the runs that agree in all settings except ``by``; short names of settings avoid those ``taken``.

    ``rename``: new names, OLD=NEW. UserError where there is no run, where no run has a setting of ``by``, and where
    nothing is called OLD.
    """
    if not results:
        raise UserError("there is no result to read")
    rows = [settings(result) for result in results]
    for name in by:
        if name != "seed" and not any(name in row for row in rows):
            unknown("setting", name, dict.fromkeys(key for row in rows for key in row))
    left = {*by, *(OF_SEED if "seed" in by else ())}
    rows = [{key: value for key, value in row.items() if key not in left} for row in rows]
    groups: dict[tuple[tuple[str, str], ...], Group] = {}
    for row, result in zip(rows, results, strict=True):
        groups.setdefault(tuple(sorted(row.items())), Group(row, [])).runs.append(result)
    rows = [group.settings for group in groups.values()]
    told = differing(rows)
    # When runs end names rows only where nothing else tells them apart: methods compared at their own best stopping
    # rules are still methods.
    fewer = [key for key in told if key.split(".")[0] not in ENDING]
    if len({tuple(row.get(key) for key in fewer) for row in rows}) == len(rows):
        told = fewer
    keys = short(told, taken)
    order = sorted(groups.values(), key=lambda group: [natural(group.settings.get(key, "")) for key in keys])
    names = Names(methods=methods_of(row.get("algorithm", "") for row in rows))
    found = Study(keys, order, names)
    if rename:
        names = names._replace(renamed=renames(rename, callable_by(found, results)).renamed)
    return found._replace(names=names)


def differing(rows: Sequence[Settings]) -> list[str]:
    """The keys whose values differ between rows, the algorithm and its own first."""
    keys = dict.fromkeys(["algorithm", *(key for row in rows for key in row)])
    found = [key for key in keys if key == "algorithm" or varies(key, rows)]
    return sorted(found, key=lambda key: key.split(".")[0] != "algorithm")


def varies(key: str, rows: Sequence[Settings]) -> bool:
    """Whether rows differ in a setting.

    A row that lacks the setting differs from one that has it only if their other settings do not explain it: an option
    of one algorithm, for example, is absent from the rows of another.
    """
    if len({row[key] for row in rows if key in row}) > 1:
        return True
    parents = [key[:index] for index, sign in enumerate(key) if sign == "."]
    there: dict[tuple[str | None, ...], set[bool]] = {}
    for row in rows:
        there.setdefault(tuple(row.get(parent) for parent in parents), set()).add(key in row)
    return any(len(both) > 1 for both in there.values())


def short(keys: Sequence[str], taken: Iterable[str] = ()) -> dict[str, str]:
    last = [key.rsplit(".", 1)[-1] for key in keys]
    taken = set(taken)
    whole = {key: f"{key} (setting)" if key in taken else key for key in keys}
    unique = [last.count(name) == 1 and name not in taken for name in last]
    return {key: name if alone else whole[key] for key, name, alone in zip(keys, last, unique, strict=True)}


def natural(text: str) -> tuple[int, float, str]:
    """Sort key of a value: numbers by size, before words."""
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def label(group: Group, study: Study, without: str = "") -> str:
    """The name of a group in a picture: the settings in which it differs from others, except ``without``."""
    parts = label_settings(group, study, without)
    names = study.names
    usual = [names.value(key, value) if key in NAMED else names.part(key, short, value) for key, short, value in parts]
    return names.of(", ".join(usual), spelt(parts))


def label_settings(group: Group, study: Study, without: str = "") -> list[tuple[str, str, str]]:
    """The settings that make the label of a group: key, short name and value.

    An option of the algorithm is among them only if it differs between groups with the same algorithm.
    """
    method = group.settings.get("algorithm")
    alike = [other.settings for other in study.groups if other.settings.get("algorithm") == method]
    keys = [key for key in study.keys if key != without]
    keys = [key for key in keys if not key.startswith("algorithm.") or varies(key, alike)]
    if len(keys) > 1 and len(alike) == len(study.groups):
        keys = [key for key in keys if key != "algorithm"]
    return [(key, study.keys[key], group.settings[key]) for key in keys if key in group.settings]


def spelt(parts: Sequence[tuple[str, str, str]]) -> str:
    """A label in the words of experiment files: fedgia, k0=5."""
    return ", ".join(value if key in NAMED else f"{short}={value}" for key, short, value in parts)


def callable_by(study: Study, results: Iterable[Result]) -> list[str]:
    """Every name that may be replaced by another: of methods, values, settings, curves and columns."""
    found = list[str]()
    for group in study.groups:
        parts = label_settings(group, study)
        found += [label(group, study), spelt(parts)]
        for key, short, value in [(key, short, group.settings.get(key, "")) for key, short in study.keys.items()]:
            if value:
                found += [value, study.names.value(key, value), f"{short}={value}", f"{key}={value}"]
            found += [key, short, study.names.setting(key, short), study.names.part(key, short, value)]
    columns = dict.fromkeys(printable(name) for result in results for name in result.rounds)
    return [*found, *columns, "error", "bytes"]
