"""The experiment file: TOML and key=value overrides, read strictly."""

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.toml import DOTS, flat, from_toml, shallow, toml_value
from mpifed.data.dataset import FILES, Data
from mpifed.features.listed import refuse_tables
from mpifed.features.settings import FAMILIES as FAMILIES
from mpifed.features.settings import Experiment as Experiment

DEFAULT_STUDY = {"stop": {"gradient": 1e-20}}  # of a run without a file: some twenty rounds of FedGiA, Example V.1
PATHS = ("path", "pretrained")  # keys of files that an experiment file names
NUMBERS = re.compile(r".*\.(txt|csv)")  # files with the numbers of clients, in [system]
LARGEST = 1 << 20  # bytes of an experiment file


def differences(old: Experiment, new: Experiment, but: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Key, old and new value, as TOML, where two experiments differ, outside the tables and keys ``but``."""
    before, after = (flat(msgspec.to_builtins(part)) for part in (old, new))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key) and key.partition(".")[0] not in but:
            yield key, toml_value(before.get(key)), toml_value(after.get(key))


def experiment(table: dict[str, Any]) -> Experiment:
    """The experiment that a table describes; absent tables stand for their defaults.

    Raises UserError, one sentence that names the key, the value and what would be right.
    """
    table = {name: {} for name in (*FAMILIES, "stop", "objective", "evaluate", "record", "checkpoint")} | table
    if isinstance(table["problem"], dict) and "name" not in table["problem"] and isinstance(table["data"], dict | str):
        table["problem"] = {"name": default_name(table, ["problem"])} | table["problem"]
    built = with_client_weights(Experiment.build(table, ""))
    refuse_tables(built)
    return built


def with_client_weights(config: Experiment) -> Experiment:
    """The experiment whose data read the column of ``objective.weights``, where that is one.

    UserError where these data have no columns, or ``data.client_weights`` is another one.
    """
    column = config.objective.column
    read = getattr(config.data, "client_weights", None)
    if column is None and read is not None:
        raise UserError(
            f"data.client_weights = {toml_value(read)} is read for objective.weights = {toml_value(read)}: write that "
            "alone"
        )
    if column is None or read == column:
        return config
    if not hasattr(config.data, "client_weights") or read is not None:
        own = config.data.label()
        has = f"data.client_weights is {toml_value(read)}" if read is not None else f"data.name = {own!r} has none"
        raise UserError(
            f"objective.weights = {toml_value(column)} is wrong: it must be clients, samples, a number above 0 for "
            f"each client, or a column of the data, and {has}"
        )
    return msgspec.structs.replace(config, data=msgspec.structs.replace(config.data, client_weights=column))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table in an experiment file, its paths made relative to the file."""
    file = Path(path)
    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode):
            raise UserError(f"{str(path)!r} is not an experiment file: it is a folder, a pipe or a device")
        if about.st_size > LARGEST:
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
            part.update({key: str(file.parent / part[key]) for key in PATHS if relative(part.get(key))})
    if "system" in table:
        table["system"] = beside(table["system"], file.parent, NUMBERS)
    return beside(table, file.parent)


def relative(value: Any) -> bool:
    """Whether a value is a path that begins neither at the home folder nor in a file of classes, path.py:Class."""
    return isinstance(value, str) and not value.startswith("~") and not plugins.FILE.fullmatch(value)


def beside(value: Any, folder: Path, files: re.Pattern[str] = plugins.FILE) -> Any:
    """A value of an experiment file with the files in it, by default path.py:Class, made relative to ``folder``."""
    if isinstance(value, dict):
        return {key: beside(part, folder, files) for key, part in value.items()}
    if isinstance(value, list):
        return [beside(part, folder, files) for part in value]
    names = isinstance(value, str) and files.fullmatch(value) and not value.startswith("~")
    return str(folder / value) if names else value


class Setting(NamedTuple):
    """A value for a key, split at its full stops; None: the default. Error messages call it ``text``."""

    text: str
    keys: list[str]
    value: Any


def override(table: dict[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """The table with key=value assignments applied, names first; a value is TOML, a bare word a string."""
    return settle(table, [setting(assignment) for assignment in assignments])


def setting(assignment: str) -> Setting:
    """A key=value assignment."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise UserError(f"{assignment!r} is not an override: write KEY=VALUE, for example algorithm.k0=5")
    if assignment.count(".") > DOTS:
        raise UserError(f"{assignment!r} is not an override: it has more than {DOTS} full stops")
    return Setting(assignment, key.strip().split("."), parse(text.strip()))


def settle(table: dict[str, Any], settings: Iterable[Setting]) -> dict[str, Any]:
    """The table with settings applied, names first."""
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
    shallow(table, "the experiment")
    return table


def default_name(table: dict[str, Any], parents: list[str]) -> str | None:
    """The name that the table of a family stands for where it has none."""
    if parents == ["problem"]:
        source = table.get("data", {})
        name = source.get("name", Data.default) if isinstance(source, dict) else source
        return Data.member(name, "data").objective
    return FAMILIES[parents[0]].default if len(parents) == 1 and parents[0] in FAMILIES else None


def parse(text: str) -> Any:
    """The value of a TOML text; a text that is not TOML, such as a bare word or a path, is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text
