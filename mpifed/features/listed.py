"""All features in their order, which of them a study has, and what their rules say of it."""

import importlib
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from mpifed.core.component import fields_of
from mpifed.core.guards import own
from mpifed.core.memory import check_memory, size_of
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature
from mpifed.features.own_feature import own_feature
from mpifed.features.plain import Plain
from mpifed.features.rule import Counted, refuse, refuse_counted
from mpifed.features.settings import DEVICES, MEASURED, Experiment
from mpifed.federation.participation.selection import Selector
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs


def training(c: Experiment) -> Any:
    """Whether local steps are random, as with dropout or changes of samples, or in half precision."""
    return c.problem.has("seeded_grad") or c.problem.augments() or getattr(c.problem, "autocast", None)


def wants_gpu(c: Experiment) -> bool:
    """Whether the problem asks for GPUs where the study leaves open what computes."""
    return c.kernels == "auto" and bool(c.problem.gpu())


def decays(c: Experiment) -> bool:
    """Whether an optimiser of the method lets weights decay, and no other parameters."""
    for field in fields_of(type(c.algorithm)).values():
        part = getattr(c.algorithm, field.name)
        if getattr(part, "decay", "") == "weights" and part.weight_decay:
            return True
    return False


def one_by_one(c: Experiment) -> bool:
    """Whether the server needs the uploads of clients as rows."""
    return c.robust is not None or (c.attack is not None and c.attack.jointly)


# Models that a round has at a time, at least: that of the server, of a client its own and its gradient, and the sum.
# Each doubling of the clients adds one, in which gradients are added up.
MODELS = 4
MATRICES = 4  # of a client or of the mean: made, packed, unpacked and factorised
SURVIVED = "mpifed.features.promises.feature:Survived"  # which no study asks for, but a job
PROMISED = "mpifed.features.promises.feature:Promised"
# "module:Class" of a feature -> whether a study has it; the modules of others are not imported.
FEATURES: dict[str, Callable[[Experiment], Any]] = {
    "mpifed.features.asynchrony.feature:Asynchrony": attrgetter("asynchronous"),
    "mpifed.features.by_client.feature:ByClient": lambda c: c.evaluate.clients or c.evaluate.unseen,
    "mpifed.features.unseen.feature:Unseen": attrgetter("evaluate.about_unseen"),
    "mpifed.features.devices.feature:Devices": lambda c: c.kernels in DEVICES or wants_gpu(c),
    "mpifed.features.network_training.feature:NetworkTraining": training,
    "mpifed.features.gradient_noise.feature:GradientNoise": lambda c: getattr(c.problem, "noise", 0),
    "mpifed.features.personal_models.feature:PersonalModels": attrgetter("record.personal"),
    "mpifed.features.client_weights.feature:ClientWeights": lambda c: c.objective.weights != "clients",
    "mpifed.features.penalty.feature:Penalised": lambda c: c.objective.penalised or c.objective.unpenalised is not None,
    "mpifed.features.graph.feature:OnGraph": attrgetter("graph"),
    "mpifed.features.guarantee.feature:Guarantee": lambda c: c.algorithm.privacy(),
    "mpifed.features.selection_laws.feature:SelectionLaws": lambda c: c.selection.label() not in ("uniform", "all"),
    "mpifed.features.attack.feature:Attacked": attrgetter("attack"),
    "mpifed.features.robust.feature:Robust": one_by_one,
    "mpifed.features.compression.feature:Compressed": attrgetter("compress"),
    "mpifed.features.masks.feature:Masked": attrgetter("masks"),
    "mpifed.features.simulated_time.feature:SimulatedTime": attrgetter("system"),
    "mpifed.features.weight_decay.feature:WeightDecay": decays,
    "mpifed.features.certificate.feature:Certified": attrgetter("algorithm.certify"),
    "mpifed.features.own_classes.feature:OwnClasses": lambda c: own(type(c.algorithm)),
    # after those that bring stages, which it looks at
    PROMISED: lambda c: c.on_device or c.algorithm.privacy(),
    # last: it puts clocks around the verbs of all others
    "mpifed.features.block_sizes.feature:MeasuredBlocks": lambda c: c.block_bytes is None and c.rounds >= MEASURED,
}

SAMPLE_COLUMNS = "mpifed.features.sample_columns.feature:SampleColumns"


def every_feature() -> list[type[Feature]]:
    """All features, and before them what every run has."""
    return [Plain, *map(loaded, (SAMPLE_COLUMNS, *FEATURES))]


def features_of(c: Experiment, survive: bool = False) -> list[Feature]:
    """The features that a study has, and that its survival asks for where ranks may die."""
    made = [own_feature(reference)(c) for reference in c.features or ()]
    # those of mpifed after them, for what ends the list looks at all that is installed before it
    made += [loaded(place)(c) for place, there in FEATURES.items() if there(c)]
    return [*made, loaded(SURVIVED)(c)] if survive else made


def brought(c: Experiment, data: Dataset) -> list[Feature]:
    """The features that only loaded data tell of: a file of arrays may bring columns, and so may a Python program."""
    return [] if data.columns is None else [loaded(SAMPLE_COLUMNS)(c)]


def loaded(place: str) -> type[Feature]:
    """The class of a feature of mpifed, whose module is imported now."""
    module, _, name = place.partition(":")
    cls: type[Feature] = getattr(importlib.import_module(module), name)
    return cls


def refuse_tables(c: Experiment) -> None:
    """UserError where tables of an experiment that is read do not go together, whatever the problem is."""
    refuse(c, Plain.tables)
    for feature in features_of(c):
        refuse(c, feature.tables)


def refuse_study(c: Experiment, features: Iterable[Feature] | None = None) -> None:
    """UserError where settings do not go together, as far as can be known before data are loaded."""
    refuse(c, Plain.rules)
    for feature in features_of(c) if features is None else features:
        refuse(c, feature.rules)


def refuse_large(setup: Setup) -> None:
    """UserError where there is no memory for the models of a round, or for the few matrices that methods with second
    derivatives have at a time.
    """
    n = setup.start.size
    models = MODELS + setup.m.bit_length() - 1
    what = f"a round, which has at least {models} models of {n:,} numbers at a time,"
    check_memory(size_of((models, n), setup.start.itemsize), what)
    if "hess" in needs(setup.algorithm):
        check_memory(
            MATRICES * size_of((n, n), setup.start.itemsize),
            f"the {MATRICES} matrices of {n:,} × {n:,} numbers that {setup.algorithm.label()} has at a time",
        )


def refuse_counts(c: Experiment, selector: Selector, m: int, features: Iterable[Feature] | None = None) -> None:
    """UserError where settings do not go together with the number m of clients, or with the selector of a round."""
    for feature in features_of(c) if features is None else features:
        if feature.counted:
            refuse_counted(Counted(c, selector, m), feature.counted)
