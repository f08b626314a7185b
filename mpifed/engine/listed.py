"""List of all plug-ins in their order, with the condition under which a study has each, and the judge of conflicts."""

import importlib
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from mpifed.core.component import fields_of
from mpifed.core.guards import is_user_class
from mpifed.core.memory import bytes_of_shape, check_memory
from mpifed.data.dataset import Dataset
from mpifed.engine.user_plugin import load_user_plugin
from mpifed.features.conflict import Conflict, refuse_conflicts
from mpifed.features.conflict import LoadedSettings as LoadedSettings
from mpifed.features.conflict import Moment as Moment
from mpifed.features.conflicts import METHODS
from mpifed.features.feature import Plugin
from mpifed.features.settings import DEVICES, MEASURED, Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import required_methods


def training(c: Experiment) -> Any:
    """Return whether local steps are random (dropout, augmentation) or in half precision."""
    return c.problem.has("seeded_grad") or c.problem.augments() or getattr(c.problem, "autocast", None)


def wants_gpu(c: Experiment) -> bool:
    """Return whether the problem asks for a GPU and the study leaves ``kernels`` open."""
    return c.kernels == "auto" and bool(c.problem.gpu())


def decays(c: Experiment) -> bool:
    """Return whether an optimiser of the method decays weights alone, not biases and norms."""
    for field in fields_of(type(c.algorithm)).values():
        part = getattr(c.algorithm, field.name)
        if getattr(part, "decay", "") == "weights" and part.weight_decay:
            return True
    return False


def one_by_one(c: Experiment) -> bool:
    """Return whether the server needs a row for each client's upload."""
    return c.robust is not None or (c.attack is not None and c.attack.jointly)


# Least number of models in memory in a round: the server's, a client's model and gradient, and their sum. Each doubling
# of the clients adds a partial sum.
MODELS = 4
MATRICES = 4  # matrices in memory at a time: made, packed, unpacked and factorised
SURVIVED = "mpifed.engine.promises.feature:Survival"  # asked for by a job, not by its study
PROMISED = "mpifed.engine.promises.feature:Promises"
# "module:Class" of a feature -> whether a study has it; modules of features that it lacks are not imported.
FEATURES: dict[str, Callable[[Experiment], Any]] = {
    "mpifed.engine.asynchrony.feature:Asynchrony": attrgetter("asynchronous"),
    "mpifed.engine.by_client:ClientNumbers": lambda c: c.evaluate.clients or c.evaluate.unseen,
    "mpifed.engine.unseen:Unseen": attrgetter("evaluate.about_unseen"),
    "mpifed.engine.devices.device_host:DeviceKernels": lambda c: c.kernels in DEVICES or wants_gpu(c),
    "mpifed.features.network_training:NetworkTraining": training,
    "mpifed.features.gradient_noise:GradientNoise": lambda c: getattr(c.problem, "noise", 0),
    "mpifed.features.personal_models:PersonalModels": attrgetter("record.personal"),
    "mpifed.engine.best_model:BestModel": lambda c: c.record.best or c.stop.patience,
    "mpifed.features.client_weights:ClientWeights": lambda c: c.objective.weights != "clients",
    "mpifed.features.penalty.feature:PenalisedObjective": lambda c: (
        c.objective.penalised or c.objective.unpenalised is not None
    ),
    "mpifed.engine.graph:OnGraph": attrgetter("graph"),
    "mpifed.features.guarantee:Guarantee": lambda c: c.guarantee(),
    "mpifed.features.selection_laws.feature:SelectionLaws": lambda c: c.selection.label() not in ("uniform", "all"),
    "mpifed.features.attack.feature:ClientAttacks": attrgetter("attack"),
    "mpifed.features.robust.feature:Robust": one_by_one,
    "mpifed.features.compression.feature:Compression": attrgetter("compress"),
    "mpifed.features.privacy.feature:ClientPrivacy": attrgetter("privacy"),
    "mpifed.features.masks.feature:SecureAggregation": attrgetter("masks"),
    "mpifed.features.simulated_time.feature:SimulatedTime": attrgetter("system"),
    "mpifed.features.weight_decay:WeightDecay": decays,
    "mpifed.features.certificate.feature:RunCertificate": attrgetter("algorithm.certify"),
    "mpifed.engine.own_classes:UserClasses": lambda c: is_user_class(type(c.algorithm)),
    # after those that add transforms, which it examines
    PROMISED: lambda c: c.on_device or c.guarantee(),
    # last: it puts clocks around the verbs of all others
    "mpifed.engine.block_sizes:MeasuredBlocks": lambda c: c.block_bytes is None and c.rounds >= MEASURED,
}

PERSONAL = "mpifed.features.personal_parts:PersonalParts"
SAMPLE_COLUMNS = "mpifed.features.sample_columns:SampleColumnRules"


def list_features() -> list[type[Plugin]]:
    """Return the classes of all features."""
    return [load_class(reference) for reference in (SAMPLE_COLUMNS, PERSONAL, *FEATURES)]


def list_conflicts() -> list[Conflict]:
    """Return all rows of the table of conflicts."""
    return [*METHODS, *(row for feature in list_features() for row in feature.conflicts)]


def make_features(c: Experiment, survive: bool = False) -> list[Plugin]:
    """Return the features of a study; ``survive``: with the one that checks whether they survive a dying rank."""
    # messages have no parameters that stay with the clients, whatever else changes them
    features = [load_class(PERSONAL)(c)] if c.personal else []
    features += [load_user_plugin(reference)(c) for reference in c.plugins or ()]
    # then the user's: the last features of mpifed examine all that is installed before them
    features += [load_class(reference)(c) for reference, is_on in FEATURES.items() if is_on(c)]
    return [*features, load_class(SURVIVED)(c)] if survive else features


def list_callbacks(features: Iterable[Plugin]) -> list[Callback]:
    """Return the callbacks of a run, in the order of its plug-ins."""
    return [callback for feature in features for callback in feature.callbacks()]


def make_data_features(c: Experiment, data: Dataset) -> list[Plugin]:
    """Return the features that loaded data call for: arrays of a file or of a program may have columns of samples."""
    return [] if data.columns is None else [load_class(SAMPLE_COLUMNS)(c)]


def load_class(reference: str) -> type[Plugin]:
    """Import and return the class of a feature of mpifed, "module:Class"."""
    module, _, name = reference.partition(":")
    cls: type[Plugin] = getattr(importlib.import_module(module), name)
    return cls


def refuse_study(c: Experiment | LoadedSettings, at: Moment = Moment.STUDY, features: Iterable[Plugin] = ()) -> None:
    """Raise UserError where parts of a study, or its ``features`` that are made already, conflict at a moment."""
    refuse_conflicts(METHODS, at, c)
    for feature in features or make_features(c.config if isinstance(c, LoadedSettings) else c):
        refuse_conflicts(feature.conflicts, at, c)


def refuse_large(setup: RunSpec) -> None:
    """Raise UserError where memory lacks for the models of a round, or for the matrices of second derivatives."""
    n = setup.start.size
    models = MODELS + setup.m.bit_length() - 1
    what = f"a round, which has at least {models} models of {n:,} numbers at a time,"
    check_memory(bytes_of_shape((models, n), setup.start.itemsize), what)
    if "hess" in required_methods(setup.algorithm):
        check_memory(
            MATRICES * bytes_of_shape((n, n), setup.start.itemsize),
            f"the {MATRICES} matrices of {n:,} × {n:,} numbers that {setup.algorithm.label()} has at a time",
        )
