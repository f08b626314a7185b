"""A class in a small study: the experiment, its runs and their results."""

import copy
import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking.families import (
    MATRICES,
    FamilyEntry,
    StudyDict,
    data_tables,
    entry_of,
    graph_table,
    is_for_matrices,
    write_pool,
)
from mpifed.checking.table import Inconclusive
from mpifed.compressors.compressor import Compressor
from mpifed.core.component import Component, convert
from mpifed.core.errors import UserError
from mpifed.core.guards import UserClassError
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Data, Dataset, ReorderedDataset
from mpifed.data.partition import Partition
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.housing import prepare_in_process
from mpifed.experiment.prepare import PreparedRun
from mpifed.experiment.run import start
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.results.result import RunRecord

Order = Callable[[int], Array]  # m -> for each of m clients, its number in the data set


class ReorderedCache(Cache):
    """Data sets of the seed ``seed``, whatever seed the run has, with their clients in a given order."""

    def __init__(self, seed: int, order: Order = np.arange) -> None:
        super().__init__()
        self.seed = seed
        self.order = order

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        dataset = data.load(self.seed, dtype)
        return ReorderedDataset(dataset, self.order(dataset.m))


ROUNDS = 6
FIXED: StudyDict = {  # record every round, and end after ``rounds`` only
    "stop": {"diverged": 0},
    "record": {"models": 1},
    "evaluate": {},
    "checkpoint": {"every_seconds": 0, "keep": True},
}


class Case:
    """A component in a small study, as a table and built; ``folder`` is for temporary files."""

    def __init__(self, name: str, component: Component, entry: FamilyEntry, table: StudyDict, folder: Path) -> None:
        self.name = name
        self.component = component
        self.entry = entry
        self.folder = folder
        self.table = table | FIXED | {"rounds": min(ROUNDS, convert(table.get("rounds", ROUNDS), int, "rounds"))}
        self.config: Experiment = experiment(copy.deepcopy(self.table))

    @cached_property
    def spec(self) -> PreparedRun:
        """The parts of the study before its first round, with all clients in one host."""
        return prepare_in_process(self.config)

    @property
    def host(self) -> Host:
        assert self.spec.host is not None
        return self.spec.host

    @property
    def title(self) -> str:
        """The component, its study and the number of rounds, as text."""
        config = self.config
        parts = {"algorithm": config.algorithm, "problem": config.problem, "data": config.data}
        others = [f"{key} {part.label()}" for key, part in parts.items() if part.label() != self.name]
        return f"{self.name} with {', '.join(others)}, {config.rounds} rounds"

    @cached_property
    def result(self) -> RunRecord:
        return self.run()

    @cached_property
    def second_result(self) -> RunRecord:
        return self.run()

    def run(self, cache: Cache | None = None, path: Path | None = None, **changes: Any) -> RunRecord:
        """Run the study with other settings, in this process; Inconclusive where these are refused."""
        config = msgspec.structs.replace(self.config, **changes)
        # a change that the study refuses leaves a check open; without changes the study itself is wrong
        try:
            recorder = start(Job(config, path, True), cache=cache)
        except UserClassError:
            raise
        except UserError as refusal:
            if not changes:
                raise
            raise Inconclusive(str(refusal)) from None
        assert recorder is not None
        return recorder.result()

    def reproducible_result(self) -> RunRecord:
        """Return the result, or raise Inconclusive where a second run has other bits."""
        try:
            first, second = self.result, self.second_result
        except Exception:
            raise Inconclusive("the run fails") from None
        if difference(first, second):
            raise Inconclusive("two runs with the same seed differ already")
        return first


def difference(one: RunRecord, other: RunRecord, rounding: float = 0.0) -> str:
    """Describe where the models of two runs differ by more than ``rounding`` times the largest number, or ""."""
    models, others = one.models["x"], other.models["x"]
    if models.shape != others.shape:
        return f"{len(models) - 1} and {len(others) - 1} rounds"
    distance = abs(models - others).max(axis=1)
    allowed = rounding * (1 + abs(models).max(axis=1))
    rounds = ((distance > allowed) if rounding else (models != others).any(axis=1)).nonzero()[0]
    return f"the models differ from round {rounds[0]} on, there by {distance[rounds[0]]:.2g}" if rounds.size else ""


def make_case(cls: type[Component], options: StudyDict, table: StudyDict, folder: Path) -> Case:
    """Build the case of a class with these options, in the study of a table, completed where it is silent.

    Raises UserError for a mistake in the table.
    """
    name = str(options["name"])
    entry = entry_of(cls)
    chosen = table
    for part in entry.key.split("."):
        chosen = part_of(chosen, part)
    if chosen.get("name", name) == name:
        options = options | chosen
    component: Any = entry.family.build(copy.deepcopy(options), entry.key)
    if entry.family is Compressor and is_for_matrices(component):
        entry = MATRICES
    graph = graph_table(component) if entry.family is Algorithm else {}
    tables = [merge_tables(study | graph, table) for study in entry.studies]
    data = part_of(table, "data")
    choices = [write_pool(folder)] if entry.family is Partition else data_tables(entry, component)
    choices = [data] if entry.key == "data" or "name" in data else [source | data for source in choices]
    first_error: UserError | None = None
    # a method may refuse a problem, and a problem may refuse data: take the first study that works, or else report the
    # first error, which is about the study that was meant
    for full, source in itertools.product(tables, choices):
        try:
            return try_case(name, component, entry, set_part(full | {"data": source}, entry.key, options), folder)
        except UserError as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def try_case(name: str, component: Component, entry: FamilyEntry, table: StudyDict, folder: Path) -> Case:
    """Build the case with one source of data, or raise UserError; a slip of a user's class is left to checks."""
    case = Case(name, component, entry, table, folder)
    with suppress(UserClassError):
        case.spec  # noqa: B018 - made here
    return case


def part_of(table: StudyDict, key: str) -> StudyDict:
    """Return the table at a key, empty where there is none; a name alone stands for a table with that name."""
    part = table.get(key, {})
    return part if isinstance(part, dict) else {"name": part}


def set_part(table: StudyDict, key: str, value: Any) -> StudyDict:
    """Return a table with ``value`` at a dotted key."""
    name, _, rest = key.partition(".")
    return table | {name: set_part(part_of(table, name), rest, value) if rest else value}


def merge_tables(defaults: StudyDict, table: StudyDict) -> StudyDict:
    """Update the table ``defaults`` with ``table``; parts that name no other member are merged."""
    result = dict(defaults)
    for key, value in table.items():
        continues = isinstance(value, dict) and "name" not in value
        result[key] = merge_tables(part_of(defaults, key), value) if continues else value
    return result
