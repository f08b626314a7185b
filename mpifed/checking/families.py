"""The families of components: the key at which a study names a member, and small studies with one."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.parts.local_solvers import Solver
from mpifed.algorithms.parts.optimizers import Optimizer
from mpifed.algorithms.parts.server_optimizers import ServerOptimizer
from mpifed.algorithms.parts.step_sizes import Step
from mpifed.compressors.compressor import Compressor
from mpifed.core import plugins
from mpifed.core.component import Component
from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.data.dataset import Data
from mpifed.data.partition import Partition
from mpifed.features.attack.attacks import Attack
from mpifed.features.robust.means import RobustMean
from mpifed.features.simulated_time.distributions import Distribution
from mpifed.federation.participation.selection import Selection
from mpifed.graphs.graph import Graph
from mpifed.problems.problem import Problem

StudyDict = dict[str, Any]


class FamilyEntry(NamedTuple):
    """The key at which an experiment names a member of a family, and studies that have it, tried in turn."""

    family: type[Component]
    key: str
    studies: tuple[StudyDict, ...] = ({},)


SMALL = {"name": "constant", "a": 0.001}
FEDAVG: StudyDict = {"algorithm": {"name": "fedavg", "step": SMALL}}
DUAL: StudyDict = {"algorithm": {"name": "feddcd"}}
ENTRIES: tuple[FamilyEntry, ...] = (
    FamilyEntry(Algorithm, "algorithm"),
    FamilyEntry(Problem, "problem", (FEDAVG,)),
    FamilyEntry(Data, "data", (FEDAVG,)),
    FamilyEntry(Partition, "data.partition", (FEDAVG,)),
    FamilyEntry(Selection, "selection", (FEDAVG, DUAL)),
    FamilyEntry(Step, "algorithm.step", ({"algorithm": {"name": "fedavg"}},)),
    FamilyEntry(Solver, "algorithm.solver", (DUAL,)),
    FamilyEntry(Optimizer, "algorithm.optimizer", (FEDAVG,)),
    FamilyEntry(ServerOptimizer, "algorithm.server", ({"algorithm": {"name": "fedopt", "step": SMALL}},)),
    FamilyEntry(Compressor, "compress.up", (FEDAVG,)),
    FamilyEntry(Distribution, "system.speed", (FEDAVG,)),
    FamilyEntry(Graph, "graph", ({"algorithm": {"name": "dgd"}},)),
    FamilyEntry(Attack, "attack", (FEDAVG,)),
    FamilyEntry(RobustMean, "robust", (FEDAVG,)),
)
KINDS = {entry.family.kind: entry.family for entry in ENTRIES}
MATRICES = FamilyEntry(Compressor, "algorithm.compressor", ({"algorithm": {"name": "fednl"}},))  # for matrices only

CLIENTS = 8
SOURCES: tuple[StudyDict, ...] = (  # tried in turn where a study names no data
    {"name": "linreg-noniid", "clients": CLIENTS, "features": 5, "least": 6, "most": 20},
    {"name": "gaussian", "clients": CLIENTS, "samples": 11, "features": 5},
    {"name": "gaussian", "clients": CLIENTS, "samples": 11, "features": 5, "task": "positive"},
    {"name": "synthetic", "clients": CLIENTS, "features": 5, "classes": 3, "least": 6, "most": 20},
    {"name": "quadratic", "clients": CLIENTS, "features": 5},
    {"name": "images", "clients": CLIENTS, "samples": 12, "size": 8, "classes": 3},
)


def data_tables(entry: FamilyEntry, component: Component) -> list[StudyDict]:
    """Return data of small studies; those made for the problem come first."""
    if entry.family is Attack:  # by default a tenth of the clients attack: one of ten
        return [one | {"clients": 10} for one in SOURCES]
    if entry.family is not Problem:
        return list(SOURCES)
    name = component.label()
    return sorted(SOURCES, key=lambda one: Data.member(one["name"], "data").objective != name)


def write_pool(folder: Path) -> StudyDict:
    """Write a file with samples of two classes, for a partition to divide; return its table."""
    rng = stream(0, "data")
    file = folder / "samples.npz"
    np.savez(file, X=rng.standard_normal((160, 5)), y=rng.integers(0, 2, 160).astype(float))
    return {"name": "file", "path": str(file), "clients": CLIENTS}


def entry_of(cls: type[Component]) -> FamilyEntry:
    """Return the entry of the family to which a class belongs."""
    return next(entry for entry in ENTRIES if issubclass(cls, entry.family))


def is_for_matrices(component: Compressor) -> bool:
    """Return True if a compressor is for symmetric matrices only."""
    try:
        component.verify()
    except UserError:
        return True
    return False


def graph_table(component: Algorithm) -> StudyDict:
    """Return a table with a graph, where the method runs on graphs."""
    return {"graph": {"name": "ring"}} if component.on_graph else {}


def classes_named(name: str) -> list[type[Component]]:
    """Return the classes with a name: the members of all families called so, or the class of path.py:Class."""
    classes = [family.member(name, "name") for family in KINDS.values() if name in family.names()]
    return classes or [external_family(name).member(name, "name")]


def external_family(name: str) -> type[Component]:
    """Return the family of the class that path.py:Class or package.module:Class names."""
    if ":" not in name:
        raise_unknown("name", name, [name for family in KINDS.values() for name in family.names()])
    try:
        cls = plugins.load_class(name)
    except ValueError as error:
        raise UserError(f"name = {toml_value(name)} is wrong: {error}") from None
    families = [family for family in KINDS.values() if issubclass(cls, family)]
    if not families:
        raise UserError(f"name = {toml_value(name)} is wrong: it has no base class such as mpifed.extend.Algorithm")
    return families[0]
