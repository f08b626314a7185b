"""Settings of runs: their spelling, which of them a summary shows, and in which of them runs differ."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from mpifed.core.errors import UserError, escape_unprintable, format_count, raise_unknown
from mpifed.core.toml import flatten, toml_value
from mpifed.report.names import AS_PRINTED, Names, disambiguate_methods, parse_renames
from mpifed.results.result import RoundsFirst, RunRecord, load

ASIDE = ("checkpoint", "record")  # tables that do not change what is computed
ENDING = ("stop", "rounds")  # the end of a run, which names runs only where nothing else differs
OF_SEED = ("stop.optimum",)  # follows from the data, and so from the seed
NAMED = ("algorithm", "data", "problem", "selection")  # settings whose value says enough without the key
THERE = "yes"  # the value that stands for a table without a name, such as [system]
ALWAYS = ("seed", "rounds", "data", "data.clients")  # shown whatever their values
WHOLE = ("data.partition", "problem", "algorithm", "selection")  # tables whose keys are all shown

Settings = dict[str, str]
SETTINGS: WeakKeyDictionary[RunRecord, Settings] = WeakKeyDictionary()  # many parts of a report ask for them


class RunGroup(NamedTuple):
    """Runs with the same ``settings``, by key of the experiment file."""

    settings: Settings
    runs: list[RunRecord]

    def runs_that_count(self, everything: bool) -> list[RunRecord]:
        """Return the runs that count: those that finished, or with ``everything`` all."""
        return [run for run in self.runs if everything or run.status == "finished"]


class RunGroups(NamedTuple):
    """Groups of runs, and the settings in which they differ (key -> short name), always with the algorithm."""

    keys: dict[str, str]
    groups: list[RunGroup]
    names: Names = AS_PRINTED


def load_results(paths: Iterable[str | os.PathLike[str]]) -> list[RunRecord]:
    """Load result files, each once even if it is named twice, at first their rounds; UserError for one not readable."""
    return [load(path, RoundsFirst) for path in {os.path.realpath(path): path for path in paths}.values()]


def select_runs(results: Sequence[RunRecord], everything: bool = False) -> tuple[list[RunRecord], str]:
    """Return the runs that a picture shows, and its words about unfinished runs; "" where all finished.

    Unfinished runs are left out unless ``everything``. A single run is shown whatever its status. UserError where no
    run is left.
    """
    done = [run for run in results if run.status == "finished"]
    if len(done) == len(results):
        return done, ""
    if len(results) == 1:
        return [*results], describe_ending(results[0])
    unfinished = f"{format_count(len(results) - len(done), 'run')} that did not finish"
    if everything:
        return [*results], f"with {unfinished}"
    if not done:
        raise UserError("no run has finished: --all, or all=True in Python, shows the others too")
    return done, f"without {unfinished}"


def describe_ending(run: RunRecord) -> str:
    """Return the status of an unfinished run, and when it ended; "" for a finished one."""
    if run.status == "finished":
        return ""
    return f"{escape_unprintable(run.status) or 'no status'}, {format_count(run.cr, 'round')}"


def left_out_lines(results: Iterable[RunRecord], everything: bool = False) -> list[str]:
    """Return a line for each unfinished run, which does not count; none with ``everything``."""
    ends = [(run, describe_ending(run)) for run in results if not everything]
    return [f"left out: {escape_unprintable(run.path or 'a result')} ({end})" for run, end in ends if end]


def run_settings(result: RunRecord) -> Settings:
    """Return the configuration of a run, key -> value as overrides spell them, and its number of ranks."""
    if result in SETTINGS:
        return SETTINGS[result]
    config = {key: value for key, value in result.config.items() if key not in ASIDE}
    tables = {key: THERE for key, value in config.items() if isinstance(value, dict) and "name" not in value}
    values = tables | as_overrides(config) | {"ranks": str(result.attrs.get("ranks", 1))}
    SETTINGS[result] = {escape_unprintable(key): escape_unprintable(value) for key, value in values.items()}
    return SETTINGS[result]


def as_overrides(table: dict[str, Any]) -> dict[str, str]:
    """Return a configuration as command-line overrides spell it: ``algorithm`` for ``algorithm.name``."""
    return {key.removesuffix(".name"): spell_value(value) for key, value in flatten(table).items()}


def spell_value(value: Any) -> str:
    if isinstance(value, str) and value != "" and " " not in value:
        return value
    text = f"{value:e}".replace(".000000", "") if isinstance(value, float) else ""
    return text if text and len(text) < len(toml_value(value)) and float(text) == value else toml_value(value)


def summary_settings(result: RunRecord, everything: bool = False) -> dict[str, str]:
    """Return the settings that a summary shows: names, the options of the method, and what is not at its default.

    Return all of them with ``everything``, and where the file does not say which are at their defaults.
    """
    settings = as_overrides(result.config)
    if everything or "changed" not in result.attrs:
        return settings
    keys = (*ALWAYS, *WHOLE, *str(result.attrs["changed"]).split())
    prefixes = tuple(f"{table}." for table in WHOLE)
    return {key: value for key, value in settings.items() if key in keys or key.startswith(prefixes)}


def group_runs(
    results: Sequence[RunRecord], by: Sequence[str] = ("seed",), taken: Iterable[str] = (), rename: Sequence[str] = ()
) -> RunGroups:
    """Group the runs that agree in all settings except ``by``; short names of settings avoid those ``taken``.

    ``rename``: new names, OLD=NEW. UserError where there is no run, where no run has a setting of ``by``, and where
    nothing is called OLD.
    """
    if not results:
        raise UserError("there is no result to read")
    rows = [run_settings(result) for result in results]
    for name in by:
        if name != "seed" and not any(name in row for row in rows):
            raise_unknown("setting", name, dict.fromkeys(key for row in rows for key in row))
    ignored = {*by, *(OF_SEED if "seed" in by else ())}
    rows = [{key: value for key, value in row.items() if key not in ignored} for row in rows]
    groups: dict[tuple[tuple[str, str], ...], RunGroup] = {}
    for row, result in zip(rows, results, strict=True):
        groups.setdefault(tuple(sorted(row.items())), RunGroup(row, [])).runs.append(result)
    rows = [group.settings for group in groups.values()]
    keys_that_differ = differing_keys(rows)
    # The end of runs names rows only where nothing else differs: methods compared at their best stopping rules are
    # still methods.
    fewer = [key for key in keys_that_differ if key.split(".")[0] not in ENDING]
    if len({tuple(row.get(key) for key in fewer) for row in rows}) == len(rows):
        keys_that_differ = fewer
    keys = short_names(keys_that_differ, taken)
    order = sorted(groups.values(), key=lambda group: [natural_sort_key(group.settings.get(key, "")) for key in keys])
    names = Names(methods=disambiguate_methods(row.get("algorithm", "") for row in rows))
    groups_of_runs = RunGroups(keys, order, names)
    if rename:
        names = names._replace(renamed=parse_renames(rename, renamable_names(groups_of_runs, results)).renamed)
    return groups_of_runs._replace(names=names)


def differing_keys(rows: Sequence[Settings]) -> list[str]:
    """Return the keys whose values differ between rows, the algorithm and its options first."""
    keys = dict.fromkeys(["algorithm", *(key for row in rows for key in row)])
    matches = [key for key in keys if key == "algorithm" or varies(key, rows)]
    return sorted(matches, key=lambda key: key.split(".")[0] != "algorithm")


def varies(key: str, rows: Sequence[Settings]) -> bool:
    """Return whether rows differ in a setting.

    A row without the setting differs from one with it only if their other settings do not explain it: an option of one
    algorithm, for example, is absent from the rows of another.
    """
    if len({row[key] for row in rows if key in row}) > 1:
        return True
    parents = [key[:index] for index, sign in enumerate(key) if sign == "."]
    presence: dict[tuple[str | None, ...], set[bool]] = {}
    for row in rows:
        presence.setdefault(tuple(row.get(parent) for parent in parents), set()).add(key in row)
    return any(len(both) > 1 for both in presence.values())


def short_names(keys: Sequence[str], taken: Iterable[str] = ()) -> dict[str, str]:
    last = [key.rsplit(".", 1)[-1] for key in keys]
    taken = set(taken)
    full = {key: f"{key} (setting)" if key in taken else key for key in keys}
    unique = [last.count(name) == 1 and name not in taken for name in last]
    return {key: name if alone else full[key] for key, name, alone in zip(keys, last, unique, strict=True)}


def natural_sort_key(text: str) -> tuple[int, float, str]:
    """Return the sort key of a value: numbers by size, before words."""
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def group_label(group: RunGroup, study: RunGroups, without: str = "") -> str:
    """Return the name of a group in a picture: the settings in which it differs from others, except ``without``."""
    parts = label_settings(group, study, without)
    names = study.names
    words = [names.value(key, value) if key in NAMED else names.part(key, short, value) for key, short, value in parts]
    return names.of(", ".join(words), spell_label(parts))


def label_settings(group: RunGroup, study: RunGroups, without: str = "") -> list[tuple[str, str, str]]:
    """Return the settings of the label of a group: key, short name and value.

    An option of the algorithm is among them only if it differs between groups with the same algorithm.
    """
    method = group.settings.get("algorithm")
    same_method = [other.settings for other in study.groups if other.settings.get("algorithm") == method]
    keys = [key for key in study.keys if key != without]
    keys = [key for key in keys if not key.startswith("algorithm.") or varies(key, same_method)]
    if len(keys) > 1 and len(same_method) == len(study.groups):
        keys = [key for key in keys if key != "algorithm"]
    return [(key, study.keys[key], group.settings[key]) for key in keys if key in group.settings]


def spell_label(parts: Sequence[tuple[str, str, str]]) -> str:
    """Return a label in the words of experiment files: fedgia, k0=5."""
    return ", ".join(value if key in NAMED else f"{short}={value}" for key, short, value in parts)


def renamable_names(study: RunGroups, results: Iterable[RunRecord]) -> list[str]:
    """Return every name that may be replaced: of methods, values, settings, curves and columns."""
    names = list[str]()
    for group in study.groups:
        parts = label_settings(group, study)
        names += [group_label(group, study), spell_label(parts)]
        for key, short, value in [(key, short, group.settings.get(key, "")) for key, short in study.keys.items()]:
            if value:
                names += [value, study.names.value(key, value), f"{short}={value}", f"{key}={value}"]
            names += [key, short, study.names.setting(key, short), study.names.part(key, short, value)]
    columns = dict.fromkeys(escape_unprintable(name) for result in results for name in result.rounds)
    return [*names, *columns, "error", "bytes"]
