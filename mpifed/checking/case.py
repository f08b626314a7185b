"""A class in a small study: the experiment, its runs, and what they found."""

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
from mpifed.checking.families import MATRICES, Place, Table, graph_of, of_matrices, place_of, pool, sources
from mpifed.checking.table import Open
from mpifed.compressors.compressor import Compressor
from mpifed.core.component import Component, convert
from mpifed.core.errors import UserError
from mpifed.core.guards import Slip
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Data, Dataset
from mpifed.data.partition import Partition
from mpifed.data.reordered import Reordered
from mpifed.experiment.config import experiment
from mpifed.experiment.housing import gathered
from mpifed.experiment.job import Job
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.run import start
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.results.result import Result

Order = Callable[[int], Array]  # m -> the m clients, as their numbers in the data set


class Rearranged(Cache):
    """Data sets of the seed ``seed``, whatever that of the run, with their clients in an order."""

    def __init__(self, seed: int, order: Order = np.arange) -> None:
        super().__init__()
        self.seed = seed
        self.order = order

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        found = data.load(self.seed, dtype)
        return Reordered(found, self.order(found.m))


ROUNDS = 6
FIXED: Table = {  # every round is recorded, and nothing but ``rounds`` ends a run
    "stop": {"diverged": 0},
    "record": {"models": 1},
    "evaluate": {},
    "checkpoint": {"every_seconds": 0, "keep": True},
}


class Case:
    """A component in a study, both as a table and built; ``folder`` is for files that are removed afterwards."""

    def __init__(self, name: str, component: Component, place: Place, table: Table, folder: Path) -> None:
        self.name = name
        self.component = component
        self.place = place
        self.folder = folder
        self.table = table | FIXED | {"rounds": min(ROUNDS, convert(table.get("rounds", ROUNDS), int, "rounds"))}
        self.config: Experiment = experiment(copy.deepcopy(self.table))

    @cached_property
    def prepared(self) -> Prepared:
        """What the study needs before its first round, with all clients in one host."""
        return gathered(self.config)

    @property
    def host(self) -> Host:
        found = self.prepared.host
        assert found is not None
        return found

    @property
    def title(self) -> str:
        """What was checked, and on what."""
        config = self.config
        parts = {"algorithm": config.algorithm, "problem": config.problem, "data": config.data}
        others = [f"{key} {part.label()}" for key, part in parts.items() if part.label() != self.name]
        return f"{self.name} with {', '.join(others)}, {config.rounds} rounds"

    @cached_property
    def result(self) -> Result:
        return self.run()

    @cached_property
    def again(self) -> Result:
        return self.run()

    def run(self, cache: Cache | None = None, path: Path | None = None, **changes: Any) -> Result:
        """The result of the study with other settings, in this process; Open where these are refused."""
        config = msgspec.structs.replace(self.config, **changes)
        # a change that does not go with the study leaves a check open; without changes the study itself is wrong
        try:
            found = start(Job(config, path, True), cache=cache)
        except Slip:
            raise
        except UserError as refusal:
            if not changes:
                raise
            raise Open(str(refusal)) from None
        assert found is not None
        return found.result()

    def repeated(self) -> Result:
        """The result, where a second run has the same bits; otherwise nothing can be compared with it."""
        try:
            first, second = self.result, self.again
        except Exception:
            raise Open("the run fails") from None
        if difference(first, second):
            raise Open("two runs with the same seed differ already")
        return first


def difference(one: Result, other: Result, rounding: float = 0.0) -> str:
    """Where the models of two runs differ by more than ``rounding`` times the largest number; empty: nowhere."""
    models, others = one.models["x"], other.models["x"]
    if models.shape != others.shape:
        return f"{len(models) - 1} and {len(others) - 1} rounds"
    apart = abs(models - others).max(axis=1)
    allowed = rounding * (1 + abs(models).max(axis=1))
    wrong = ((apart > allowed) if rounding else (models != others).any(axis=1)).nonzero()[0]
    return f"the models differ from round {wrong[0]} on, there by {apart[wrong[0]]:.2g}" if wrong.size else ""


def case_of(cls: type[Component], own: Table, table: Table, folder: Path) -> Case:
    """The case of a class with the options ``own``, in the study that a table describes, as far as it does.

    Raises UserError for what is wrong in the table.
    """
    name = str(own["name"])
    place = place_of(cls)
    given = table
    for part in place.key.split("."):
        given = part_of(given, part)
    if given.get("name", name) == name:
        own = own | given
    component: Any = place.family.build(copy.deepcopy(own), place.key)
    if place.family is Compressor and of_matrices(component):
        place = MATRICES
    graph = graph_of(component) if place.family is Algorithm else {}
    wholes = [merged(study | graph, table) for study in place.studies]
    data = part_of(table, "data")
    choices = [pool(folder)] if place.family is Partition else sources(place, component)
    choices = [data] if place.key == "data" or "name" in data else [one | data for one in choices]
    wrong: UserError | None = None
    # a method may refuse a problem, and a problem data: the first study that goes together, or else the first reason,
    # which is about the study that was meant
    for whole, choice in itertools.product(wholes, choices):
        try:
            return attempted(name, component, place, put(whole | {"data": choice}, place.key, own), folder)
        except UserError as error:
            wrong = wrong or error
    assert wrong is not None
    raise wrong


def attempted(name: str, component: Component, place: Place, table: Table, folder: Path) -> Case:
    """The case with one source of data. UserError where this cannot be; a slip of a user's class is left to checks."""
    case = Case(name, component, place, table, folder)
    with suppress(Slip):
        case.prepared  # noqa: B018 - made here
    return case


def part_of(table: Table, key: str) -> Table:
    """The table at a key, empty where there is none; a name alone stands for a table that has it."""
    part = table.get(key, {})
    return part if isinstance(part, dict) else {"name": part}


def put(table: Table, key: str, value: Any) -> Table:
    name, _, rest = key.partition(".")
    return table | {name: put(part_of(table, name), rest, value) if rest else value}


def merged(usual: Table, own: Table) -> Table:
    """A table whose parts that name nothing else go on from ``usual``."""
    found = dict(usual)
    for key, value in own.items():
        more = isinstance(value, dict) and "name" not in value
        found[key] = merged(part_of(usual, key), value) if more else value
    return found
