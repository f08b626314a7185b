"""The families of components, where an experiment file names a member of each, and the small study that it is in."""

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
from mpifed.core.errors import UserError, unknown
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

Table = dict[str, Any]


class Place(NamedTuple):
    """The key at which an experiment names a member of a family, and studies that have it, tried in turn."""

    family: type[Component]
    key: str
    studies: tuple[Table, ...] = ({},)


SMALL = {"name": "constant", "a": 0.001}
FEDAVG: Table = {"algorithm": {"name": "fedavg", "step": SMALL}}
DUAL: Table = {"algorithm": {"name": "feddcd"}}
PLACES: tuple[Place, ...] = (
    Place(Algorithm, "algorithm"),
    Place(Problem, "problem", (FEDAVG,)),
    Place(Data, "data", (FEDAVG,)),
    Place(Partition, "data.partition", (FEDAVG,)),
    Place(Selection, "selection", (FEDAVG, DUAL)),
    Place(Step, "algorithm.step", ({"algorithm": {"name": "fedavg"}},)),
    Place(Solver, "algorithm.solver", (DUAL,)),
    Place(Optimizer, "algorithm.optimizer", (FEDAVG,)),
    Place(ServerOptimizer, "algorithm.server", ({"algorithm": {"name": "fedopt", "step": SMALL}},)),
    Place(Compressor, "compress.up", (FEDAVG,)),
    Place(Distribution, "system.speed", (FEDAVG,)),
    Place(Graph, "graph", ({"algorithm": {"name": "dgd"}},)),
    Place(Attack, "attack", (FEDAVG,)),
    Place(RobustMean, "robust", (FEDAVG,)),
)
KINDS = {place.family.kind: place.family for place in PLACES}
MATRICES = Place(Compressor, "algorithm.compressor", ({"algorithm": {"name": "fednl"}},))  # of these alone

CLIENTS = 8
SOURCES: tuple[Table, ...] = (  # tried in turn where a study names no data
    {"name": "linreg-noniid", "clients": CLIENTS, "features": 5, "least": 6, "most": 20},
    {"name": "gaussian", "clients": CLIENTS, "samples": 11, "features": 5},
    {"name": "gaussian", "clients": CLIENTS, "samples": 11, "features": 5, "task": "positive"},
    {"name": "synthetic", "clients": CLIENTS, "features": 5, "classes": 3, "least": 6, "most": 20},
    {"name": "quadratic", "clients": CLIENTS, "features": 5},
    {"name": "images", "clients": CLIENTS, "samples": 12, "size": 8, "classes": 3},
)


def sources(place: Place, component: Component) -> list[Table]:
    """Data of small studies, those first that are made for a problem."""
    if place.family is Attack:  # a tenth of the clients attack where no option says how many: of ten, one
        return [one | {"clients": 10} for one in SOURCES]
    if place.family is not Problem:
        return list(SOURCES)
    own = component.label()
    return sorted(SOURCES, key=lambda one: Data.member(one["name"], "data").objective != own)


def pool(folder: Path) -> Table:
    """The table of a file with samples of two classes, for a partition to divide."""
    rng = stream(0, "data")
    file = folder / "samples.npz"
    np.savez(file, X=rng.standard_normal((160, 5)), y=rng.integers(0, 2, 160).astype(float))
    return {"name": "file", "path": str(file), "clients": CLIENTS}


def place_of(cls: type[Component]) -> Place:
    return next(place for place in PLACES if issubclass(cls, place.family))


def of_matrices(component: Compressor) -> bool:
    """Whether a compressor is for symmetric matrices alone."""
    try:
        component.verify()
    except UserError:
        return True
    return False


def graph_of(component: Algorithm) -> Table:
    return {"graph": {"name": "ring"}} if component.on_graph else {}


def members(name: str) -> list[type[Component]]:
    """The classes that a name stands for: the members of all families called so, or that of path.py:Class."""
    found = [family.member(name, "name") for family in KINDS.values() if name in family.names()]
    return found or [outside(name).member(name, "name")]


def outside(name: str) -> type[Component]:
    """The family of the class that path.py:Class or package.module:Class names."""
    if ":" not in name:
        unknown("name", name, [name for family in KINDS.values() for name in family.names()])
    try:
        cls = plugins.load(name)
    except ValueError as error:
        raise UserError(f"name = {toml_value(name)} is wrong: {error}") from None
    families = [family for family in KINDS.values() if issubclass(cls, family)]
    if not families:
        raise UserError(f"name = {toml_value(name)} is wrong: it has no base class such as mpifed.Algorithm")
    return families[0]
