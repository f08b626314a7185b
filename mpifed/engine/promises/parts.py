"""Parts of a run, and the promises that each says that it keeps."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mpifed.core.component import Component, StudyTable, fields_of
from mpifed.core.guards import is_user_class
from mpifed.core.promises import (
    NO_PROMISES,
    NO_REASONS,
    OptionPromises,
    PromisesByOption,
    PromisingComponent,
    Reasons,
    Supports,
    declared_promises,
    supporting,
)
from mpifed.core.toml import join_key, toml_value
from mpifed.data import sample_columns
from mpifed.data.dataset import Data, Dataset
from mpifed.features.feature import Plugin
from mpifed.features.settings import FAMILIES, Experiment
from mpifed.federation.participation.selection import Selector
from mpifed.federation.traits import required_methods
from mpifed.federation.transform import Transform
from mpifed.problems.problem import FUNCTION_PROMISES

ABSENT = {
    Supports.SUMS: "{name} guarantees privacy here for sums that have the noise of all clients, so it must be absent"
}
DOUBLE = {
    Supports.DOUBLE: "the privacy that {name} guarantees here covers the rounding errors of double precision, so it "
    "must "
    'be "float64"'
}
SHORT = {
    Supports.SUMS: "{name} guarantees privacy here for sums of uploads that have the noise of all clients, and a sum "
    "of "
    "compressed uploads is another one, so it must be absent"
}
# A sum lacks the noise of absent clients. The rest of [system] is simulated time.
LACKING = OptionPromises(Supports.EVERYTHING & ~Supports.SUMS, ABSENT)

# key -> what it keeps where it is set. A key that is neither here nor in SPEAKS is refused with every promise.
KEYS: PromisesByOption = {
    # Rounding may reveal more of a sample than noise that is sized for exact numbers hides.
    "dtype": OptionPromises(Supports.EVERYTHING & ~Supports.DOUBLE, DOUBLE),
    # Sums in any order differ in their last bits; where noise lies on a grid they are exact.
    "reproducible": OptionPromises(Supports.EVERYTHING & ~(Supports.BITS | Supports.RESUME)),
    # Kernels, forms of local steps, sizes of blocks and paths of sums: numbers are the same, and time is not private.
    **supporting("kernels", "space", "reduction", "block_bytes", "patience"),
    # Each plug-in of a user speaks for itself.
    **supporting("plugins"),
    # A model trained on the same data has spent privacy before; a note says so.
    **supporting("seed", "rounds", "start"),
    # A measured clock ends runs after different rounds, and tells nothing of samples beyond timings.
    "stop.seconds": OptionPromises(Supports.EVERYTHING & ~(Supports.BITS | Supports.RESUME)),
    # The number of rounds is then not private; a note says so (for diverged docs/privacy.md).
    **supporting(
        "stop.gradient", "stop.gradient_scale", "stop.gradient_relative", "stop.objective_gap", "stop.optimum"
    ),
    **supporting("stop.accuracy", "stop.variance", "stop.rising", "stop.diverged"),
    **supporting("stop.patience", "stop.delta", "stop.by"),
    # As [system]: simulated times follow from numbers of samples.
    **supporting("stop.simulated_seconds"),
    # f, ‖∇f‖² and models are recorded; a note says that models alone may be published.
    **supporting("evaluate.every", "record.models", "record.best"),
    # Checkpoints hold the state of clients and stay where the run is (docs/privacy.md).
    **supporting("checkpoint.every_seconds", "checkpoint.every_rounds", "checkpoint.keep"),
    # A sum of compressed uploads is no function of the sum of uploads, for which the noise is sized.
    "compress.up": OptionPromises(Supports.EVERYTHING & ~Supports.SUMS, SHORT),
    "system.dropout": LACKING,
    "system.deadline": LACKING,
    "system.availability": LACKING,
}

# key or table -> the folder of the feature that speaks for it
SPEAKS: dict[str, str] = {
    "evaluate.clients": "by_client",
    "evaluate.unseen": "unseen",
    "evaluate.unseen_steps": "unseen",
    "evaluate.unseen_step": "unseen",
    "record.personal": "personal_models",
    "personal": "personal_parts",
    "objective.weights": "client_weights",
    "objective.l1": "penalty",
    "objective.l2": "penalty",
    "objective.unpenalised": "penalty",
    "system": "simulated_time",
    "asynchronous": "asynchrony",
    "masks": "masks",
    "compress": "compression",
    "graph": "graph",
    "attack": "attack",
    "robust": "robust",
    "privacy": "privacy",
}


OWN = "where it does, write {} into its class (docs/extending.md)"  # the cure of a class of a user's own

WRONG = " is wrong: "
NO_WORDS: Mapping[str, str] = {}


class RunPart(NamedTuple):
    """Part of a run: its name in a refusal, what it keeps, why it does not keep the rest, and the cure for silence.

    ``wrong``: text of a refusal between the name and the reason; ``words`` stand for {words} in reasons.
    """

    named: str
    supports: Supports
    unsupported: Reasons
    cure: str = "leave it out"
    wrong: str = WRONG
    words: Mapping[str, str] = NO_WORDS


def list_parts(c: Experiment, features: list[Plugin]) -> Iterator[RunPart]:
    """Yield the parts of a run that its settings tell, in the order in which they are refused."""
    yield from functions(c)
    yield from (cover_uploads(part, c) for part in components(c, ""))
    yield from options_of(c.data)
    yield from keys(c)
    for feature in features:
        yield cover_uploads(feature_part(feature, c), c)


def components(table: StudyTable, path: str) -> Iterator[RunPart]:
    """Yield the components of a table, and the components of these."""
    for key, field in fields_of(type(table)).items():
        value = getattr(table, field.name)
        full_key = join_key(path, key)
        match value:
            case Component():
                yield make_part(f"{full_key} = {toml_value(value.label())}", value)
                yield from components(value, full_key)
            case StudyTable():
                yield from components(value, full_key)


def cover_uploads(part: RunPart, c: Experiment) -> RunPart:
    """Return a part; methods and weights keep privacy with a table [privacy], which clips and weighs uploads itself."""
    covered = c.privacy is not None and part.named.startswith(("algorithm", "objective.weights"))
    return part._replace(supports=part.supports | Supports.PRIVACY) if covered else part


def make_part(named: str, speaker: PromisingComponent) -> RunPart:
    """Return the part of an object that says what it keeps; a user's class inherits no reasons if it says nothing."""
    part = RunPart(named, declared_promises(speaker), speaker.unsupported)
    if not is_user_class(type(speaker)):
        return part
    unsupported = speaker.unsupported if "supports" in vars(type(speaker)) else NO_REASONS
    return part._replace(unsupported=unsupported, cure=OWN.format("supports = mpifed.extend.Supports.{promise}"))


def options_of(data: Data) -> Iterator[RunPart]:
    """Yield the options of [data] that are set; an option that does not say what it keeps is refused."""
    options: dict[str, OptionPromises] = {}
    for base in reversed(type(data).__mro__):
        options |= vars(base).get("options", {})
    for key, field in fields_of(type(data)).items():
        value = getattr(data, field.name)
        if value != field.default:
            option = options.get(f"{key} = {value}", options.get(key, NO_PROMISES))
            part = RunPart(f"data.{key} = {toml_value(msgspec.to_builtins(value))}", *option)
            cure = OWN.format(f'options = mpifed.extend.supporting("{key}")')
            yield part._replace(cure=cure) if is_user_class(type(data)) else part


def functions(c: Experiment) -> Iterator[RunPart]:
    """Yield the functions of the problem that the method calls beside f and its gradient."""
    for name in required_methods(c.algorithm):
        what = c.problem.offers.get(name, name).partition(";")[0]
        yield RunPart(f"{name} of {c.problem.label()}", *FUNCTION_PROMISES.get(name, NO_PROMISES), words={"what": what})


def keys(c: Experiment) -> Iterator[RunPart]:
    """Yield the keys that are set and belong to no component, except those for which a feature speaks."""
    for key in c.changed_keys():
        table = key.partition(".")[0]
        if table not in FAMILIES and (key in KEYS or not {key, table} & SPEAKS.keys()):
            yield RunPart(show_key(c, key), *KEYS.get(key, NO_PROMISES))


def show_key(c: Experiment, key: str) -> str:
    """Return "key = value" as in an experiment file."""
    value: object = c
    for name in key.split("."):
        value = getattr(value, name)
    return f"{key} = {toml_value(msgspec.to_builtins(value))}"


def spoken_keys(cls: type[Plugin]) -> tuple[str, list[str]]:
    """Return the name of the feature mpifed.features.name, a file or a folder, and the keys for which it speaks."""
    name = cls.__module__.split(".")[2]
    return name, [key for key, speaks in SPEAKS.items() if speaks == name]


def feature_part(feature: Plugin, c: Experiment) -> RunPart:
    """Return the part of a feature, named by the first key that is set, or else by the table, for which it speaks."""
    cls: Any = type(feature)
    if is_user_class(cls):
        return make_part(f"the plug-in {cls.__name__}", feature)
    name, spoken = spoken_keys(cls)
    set_keys = [show_key(c, key) for key in c.changed_keys() if key in spoken]
    return make_part((set_keys or spoken or [f"the feature {name}"])[0], feature)


def selector_part(selector: Selector, c: Experiment, m: int) -> RunPart:
    """Return the part of the selector that a selection has made for m clients."""
    option = selector.supported_promises(m)
    few = f" is wrong with {selector.size} clients a round: " if option.supports & Supports.CLIENTS else WRONG
    return RunPart(f"selection = {toml_value(c.selection.label())}", *option, wrong=few, words={"m": str(m)})


def sample_parts(data: Dataset) -> Iterator[RunPart]:
    """Yield the columns that samples bring with them."""
    for name in () if data.columns is None else data.columns.names:
        words = f"samples have {sample_columns.COLUMNS.get(name, name)}"
        yield RunPart(words, *sample_columns.COLUMN_PROMISES.get(name, NO_PROMISES), wrong=", and ")


def transform_part(transform: Transform) -> RunPart:
    """Return the part of a transform of messages."""
    return make_part(f"the transform {type(transform).__name__}", transform)
