"""The experiment file: TOML and key=value overrides, read strictly."""

import os
import stat
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core import plugins
from mpifed.core.component import Component, Table, fields_of
from mpifed.core.errors import UserError
from mpifed.core.toml import DOTS, flat, from_toml, join, shallow, to_toml, toml_value
from mpifed.data.base import Data
from mpifed.experiment.checkpoint import Checkpoint
from mpifed.experiment.compatibility import TABLES
from mpifed.experiment.rule import refuse
from mpifed.experiment.stop import Stop
from mpifed.federation.participation.selection import Selection
from mpifed.federation.timing.arrivals import Asynchronous
from mpifed.federation.timing.system import System
from mpifed.federation.wire.compress import Compress
from mpifed.federation.wire.masks import Masks
from mpifed.graphs.base import Graph
from mpifed.problems.base import Problem

FAMILIES: dict[str, type[Component]] = {
    "data": Data,
    "problem": Problem,
    "algorithm": Algorithm,
    "selection": Selection,
}
DEFAULT_STUDY = {"stop": {"gradient": 1e-20}}  # of a run without a file: some twenty rounds of FedGiA, Example V.1
LARGEST = 1 << 20  # bytes of an experiment file


class Evaluate(Table):
    """When f and its gradient are evaluated."""

    every: Annotated[
        int, Meta(ge=1, description="rounds from one evaluation to the next; the last round is evaluated too")
    ] = 1


class Record(Table):
    """What is recorded beside the rounds."""

    personal: Annotated[bool, Meta(description="store /model/personal, one model for each client")] = False
    models: Annotated[
        int,
        Meta(ge=0, description="rounds from one model stored in /models to the next, and the last; 0: none"),
    ] = 0


class Experiment(Table, kw_only=True):
    """A run, completely described."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="seed of every random number")] = 0
    rounds: Annotated[int, Meta(ge=0, description="most communication rounds")] = 1000
    dtype: Annotated[Literal["float64", "float32"], Meta(description="type of data, models and messages")] = "float64"
    kernels: Annotated[
        Literal["auto", "numpy", "compiled"],
        Meta(description="what computes; auto: compiled kernels where numba is installed and the problem has them"),
    ] = "auto"
    reproducible: Annotated[bool, Meta(description="same bits for any number of ranks; false: sums in any order")] = (
        True
    )
    reduction: Annotated[
        Literal["auto", "star", "tree", "nodes", "slices"],
        Meta(description="how sums reach rank 0: over a star or a tree of ranks, a tree of nodes, or in slices"),
    ] = "auto"
    start: Annotated[
        str | None,
        Meta(description="result file, or NPZ file with an array x, whose model the run starts from"),
    ] = None
    block_bytes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="bytes of samples that are computed on at a time; by default half of the L2 cache of a core"),
    ] = None
    data: Data
    problem: Problem
    algorithm: Algorithm
    selection: Selection
    stop: Stop
    evaluate: Evaluate
    record: Record
    checkpoint: Checkpoint
    system: System | None = None
    asynchronous: Asynchronous | None = None
    masks: Masks | None = None
    compress: Compress | None = None
    graph: Graph | None = None

    def toml(self) -> str:
        """The complete experiment file."""
        return to_toml(msgspec.to_builtins(self))

    def changed(self) -> list[str]:
        """The keys whose values are not the defaults, ``algorithm`` for ``algorithm.name``."""
        return list(changes(self, ""))


def differences(old: Experiment, new: Experiment, but: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Key, old and new value, as TOML, where two experiments differ, outside the tables and keys ``but``."""
    before, after = (flat(msgspec.to_builtins(part)) for part in (old, new))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key) and key.partition(".")[0] not in but:
            yield key, toml_value(before.get(key)), toml_value(after.get(key))


def changes(table: Table, path: str) -> Iterator[str]:
    """The keys of a table, and of the tables in it, whose values are not the defaults of the classes named."""
    for name, field in fields_of(type(table)).items():
        value, key = getattr(table, field.name), join(path, name)
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if not isinstance(value, Table):
            yield from [key] if value != default else []
            continue
        if isinstance(value, Component):
            usual = value.label() == FAMILIES[name].default if key in FAMILIES else type(value) is type(default)
            yield from [] if usual else [key]
        yield from changes(value, key)


def experiment(table: dict[str, Any]) -> Experiment:
    """The experiment that a table describes; absent tables stand for their defaults.

    Raises UserError, one sentence that names the key, the value and what would be right.
    """
    table = {name: {} for name in (*FAMILIES, "stop", "evaluate", "record", "checkpoint")} | table
    if isinstance(table["problem"], dict) and "name" not in table["problem"] and isinstance(table["data"], dict | str):
        table["problem"] = {"name": default_name(table, ["problem"])} | table["problem"]
    built = Experiment.build(table, "")
    refuse(built, TABLES)
    return built


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
        if isinstance(part, dict) and isinstance(part.get("path"), str) and not part["path"].startswith("~"):
            part["path"] = str(file.parent / part["path"])
    return beside(table, file.parent)


def beside(value: Any, folder: Path) -> Any:
    """A value of an experiment file with the files of classes in it, path.py:Class, made relative to ``folder``."""
    if isinstance(value, dict):
        return {key: beside(part, folder) for key, part in value.items()}
    names = isinstance(value, str) and plugins.FILE.fullmatch(value) and not value.startswith("~")
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
