"""All features in their order, which of them a study has, and what their rules say of it."""

import importlib
from collections.abc import Callable
from typing import Any

from mpifed.features.feature import Feature
from mpifed.features.rule import Counted, refuse
from mpifed.features.settings import DEVICES, Experiment

SURVIVED = "mpifed.features.promises.feature:Survived"  # which no study asks for, but a job
PROMISED = "mpifed.features.promises.feature:Promised"
# "module:Class" of a feature -> whether a study has it; the modules of others are not imported.
FEATURES: dict[str, Callable[[Experiment], Any]] = {
    "mpifed.features.plain:Plain": lambda c: True,
    "mpifed.features.asynchrony.feature:Asynchrony": lambda c: c.asynchronous,
    "mpifed.features.by_client.feature:ByClient": lambda c: c.evaluate.clients or c.evaluate.unseen,
    "mpifed.features.unseen.feature:Unseen": lambda c: c.evaluate.about_unseen,
    "mpifed.features.devices.feature:Devices": lambda c: c.kernels in DEVICES,
    "mpifed.features.network_training.feature:NetworkTraining": lambda c: c.problem.augments() or half(c),
    "mpifed.features.personal_models.feature:PersonalModels": lambda c: c.record.personal,
    "mpifed.features.client_weights.feature:ClientWeights": lambda c: c.objective.weights != "clients",
    "mpifed.features.penalty.feature:Penalised": lambda c: c.objective.penalised or c.objective.unpenalised is not None,
    "mpifed.features.graph.feature:OnGraph": lambda c: c.graph,
    "mpifed.features.selection_laws.feature:SelectionLaws": lambda c: c.selection.label() not in ("uniform", "all"),
    "mpifed.features.masks.feature:Masked": lambda c: c.masks,
    "mpifed.features.compression.feature:Compressed": lambda c: c.compress,
    "mpifed.features.simulated_time.feature:SimulatedTime": lambda c: c.system,
    # The last: it looks at what all others bring.
    PROMISED: lambda c: c.on_device or c.algorithm.privacy(),
}


def half(c: Experiment) -> Any:
    """The half precision that a network computes in."""
    return getattr(c.problem, "autocast", None)


def every_feature() -> list[type[Feature]]:
    """All features."""
    return [found(place) for place in FEATURES]


def features_of(c: Experiment, survive: bool = False) -> list[Feature]:
    """The features that a study has, and that its survival asks for where ranks may die."""
    made = [found(place)(c) for place, there in FEATURES.items() if there(c)]
    return [*made, found(SURVIVED)(c)] if survive else made


def found(place: str) -> type[Feature]:
    """The class of a feature."""
    module, _, name = place.partition(":")
    cls: type[Feature] = getattr(importlib.import_module(module), name)
    return cls


def refuse_tables(c: Experiment) -> None:
    """UserError where tables of an experiment that is read do not go together, whatever the problem is."""
    for feature in features_of(c):
        refuse(c, feature.tables)


def refuse_study(c: Experiment) -> None:
    """UserError where settings do not go together, as far as can be known before data are loaded."""
    for feature in features_of(c):
        refuse(c, feature.rules)


def refuse_counts(c: Counted) -> None:
    """UserError where settings do not go together with the number of clients, or with the selector of a round."""
    for feature in features_of(c.config):
        refuse(c, feature.counted)
