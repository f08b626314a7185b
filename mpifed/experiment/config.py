"""Experiment files: TOML and key=value overrides, read strictly; and the job that a run is."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.toml import MAX_DOTS, check_depth, flatten, from_toml, toml_value
from mpifed.data.dataset import FILES, Data
from mpifed.engine.listed import refuse_study
from mpifed.features.conflict import Moment
from mpifed.features.settings import FAMILIES as FAMILIES
from mpifed.features.settings import Experiment as Experiment

if TYPE_CHECKING:
    from mpifed.experiment.checkpoint import StoredCheckpoint
    from mpifed.results.result import RunRecord

DEFAULT_STUDY = {"stop": {"gradient": 1e-20}}  # of a run without a file: some twenty rounds of FedGiA, Example V.1
PATHS = ("path", "pretrained")  # keys of files that an experiment file names
NUMBERS = re.compile(r".*\.(txt|csv|h5|hdf5)")  # files with the numbers of clients, in [system]
LARGEST = 1 << 20  # bytes of an experiment file


def differences(old: Experiment, new: Experiment, ignored: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield key, old and new value, as TOML, where two experiments differ, outside the tables and keys ``ignored``."""
    before, after = (flatten(msgspec.to_builtins(part)) for part in (old, new))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key) and key.partition(".")[0] not in ignored:
            yield key, toml_value(before.get(key)), toml_value(after.get(key))


def experiment(table: dict[str, Any]) -> Experiment:
    """Build the experiment that a table describes; absent tables stand for their defaults.

    Raises UserError, one sentence that names the key, the value and what would be right.
    """
    table = {name: {} for name in (*FAMILIES, "stop", "objective", "evaluate", "record", "checkpoint")} | table
    if isinstance(table["problem"], dict) and "name" not in table["problem"] and isinstance(table["data"], dict | str):
        table["problem"] = {"name": default_name(table, ["problem"])} | table["problem"]
    built = apply_client_weights(Experiment.build(table, ""))
    refuse_study(built, Moment.READ)
    return built


def apply_client_weights(config: Experiment) -> Experiment:
    """Return the experiment with its data reading the column of ``objective.weights``, where that is a column.

    UserError where these data have no columns, or ``data.client_weights`` is another one.
    """
    column = config.objective.column
    old = getattr(config.data, "client_weights", None)
    if column is None and old is not None:
        value = toml_value(old)
        raise UserError(f"data.client_weights = {value} is read for objective.weights = {value}: write that alone")
    if column is None or old == column:
        return config
    if not hasattr(config.data, "client_weights") or old is not None:
        name = config.data.label()
        reason = f"data.client_weights is {toml_value(old)}" if old is not None else f"data.name = {name!r} has none"
        raise UserError(
            f"objective.weights = {toml_value(column)} is wrong: it must be clients, samples, a number above 0 for "
            f"each client, or a column of the data, and {reason}"
        )
    return msgspec.structs.replace(config, data=msgspec.structs.replace(config.data, client_weights=column))


def read_experiment(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the table of an experiment file; paths in it become relative to the file."""
    file = Path(path)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{str(path)!r} is not an experiment file: it is a folder, a pipe or a device")
        if status.st_size > LARGEST:
            raise UserError(f"{str(path)!r} is not an experiment file: it has more than {LARGEST >> 20} MiB")
        text = file.read_text("utf-8-sig")
    except OSError as error:
        raise UserError(f"experiment file {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"experiment file {str(path)!r} is not valid TOML: {error}") from None
    table = from_toml(text, f"experiment file {str(path)!r}")
    if isinstance(table.get("start"), str) and not table["start"].startswith("~"):
        table["start"] = str(file.parent / table["start"])
    for name in (*FAMILIES, "graph"):
        part = table.get(name)
        if name == "data" and isinstance(part, str) and FILES.search(part):
            part = table[name] = {"name": "file", "path": part}
        if isinstance(part, dict):
            part.update({key: str(file.parent / part[key]) for key in PATHS if is_relative(part.get(key))})
    if "system" in table:
        table["system"] = resolve_paths(table["system"], file.parent, NUMBERS)
    return resolve_paths(table, file.parent)


def is_relative(value: Any) -> bool:
    """Return True if a value is a path, and neither begins at the home folder nor names a class as path.py:Class."""
    return isinstance(value, str) and not value.startswith("~") and not plugins.FILE_REFERENCE.fullmatch(value)


def resolve_paths(value: Any, folder: Path, files: re.Pattern[str] = plugins.FILE_REFERENCE) -> Any:
    """Prefix ``folder`` to the file names in a value of an experiment file, by default to those of path.py:Class."""
    if isinstance(value, dict):
        return {key: resolve_paths(part, folder, files) for key, part in value.items()}
    if isinstance(value, list):
        return [resolve_paths(part, folder, files) for part in value]
    is_file = isinstance(value, str) and files.fullmatch(value) and not value.startswith("~")
    return str(folder / value) if is_file else value


class Override(NamedTuple):
    """A value for a key, split at its full stops; None: the default. Error messages quote ``text``."""

    text: str
    keys: list[str]
    value: Any


def override(table: dict[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """Apply key=value assignments to a table, names first; a value is TOML, a bare word a string."""
    return apply_overrides(table, [parse_override(assignment) for assignment in assignments])


def parse_override(assignment: str) -> Override:
    """Parse a key=value assignment."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise UserError(f"{assignment!r} is not an override: write KEY=VALUE, for example algorithm.k0=5")
    if assignment.count(".") > MAX_DOTS:
        raise UserError(f"{assignment!r} is not an override: it has more than {MAX_DOTS} full stops")
    return Override(assignment, key.strip().split("."), parse_value(text.strip()))


def apply_overrides(table: dict[str, Any], settings: Iterable[Override]) -> dict[str, Any]:
    """Apply settings to a table, names first."""
    parsed = []
    for text, (*parents, last), value in settings:
        if not parents and last in FAMILIES and isinstance(value, str):
            parents = [last]
            last = "name"
        if parents == ["data"] and last == "name" and FILES.search(str(value)):  # data = fed.npz
            parsed.append((text, parents, "path", value))
            value = "file"
        parsed.append((text, parents, last, value))
    for text, parents, last, value in sorted(parsed, key=lambda one: (one[2] != "name", len(one[1]))):
        part = table
        for depth, parent in enumerate(parents):
            if isinstance(part.get(parent), str):
                part[parent] = {"name": part[parent]}
            part = part.setdefault(parent, {})
            if not isinstance(part, dict):
                raise UserError(f"{text!r}: {'.'.join(parents[: depth + 1])} is not a table")
        if last == "name" and part.get("name", default_name(table, parents) or value) != value:
            part.clear()  # another algorithm, problem …: the options of the former one do not apply
        part[last] = value
        if value is None:
            del part[last]
    check_depth(table, "the experiment")
    return table


def default_name(table: dict[str, Any], parents: list[str]) -> str | None:
    """Return the default name of a family, given the keys of its table."""
    if parents == ["problem"]:
        source = table.get("data", {})
        name = source.get("name", Data.default) if isinstance(source, dict) else source
        return Data.member(name, "data").objective
    return FAMILIES[parents[0]].default if len(parents) == 1 and parents[0] in FAMILIES else None


def parse_value(text: str) -> Any:
    """Parse a TOML value; a text that is not TOML, such as a bare word or a path, is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text


class Job(NamedTuple):
    """An experiment, the path of its result, and the state from which it continues.

    ``path`` None keeps the result in memory; ``force`` replaces a file of that name. ``saved`` is the checkpoint from
    which the run continues, None to start again, and ``before``, on rank 0, the result so far. With ``survive``, the
    other ranks continue from the last checkpoint when some die.
    """

    config: Experiment
    path: str | os.PathLike[str] | None = None
    force: bool = False
    saved: StoredCheckpoint | None = None
    before: RunRecord | None = None
    survive: bool = False
