"""Feature of promises that a run asks for: each of its parts must say that it keeps them, or is refused."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.promises import NOTHING_SUPPORTED, Supports
from mpifed.data.dataset import Dataset
from mpifed.engine.listed import make_data_features, make_features
from mpifed.engine.plugin import EnginePlugin, HostDivision
from mpifed.engine.promises.parts import (
    RunPart,
    feature_part,
    list_parts,
    sample_parts,
    selector_part,
    transform_part,
)
from mpifed.features.conditions import Violation
from mpifed.features.conflict import Conflict, LoadedSettings, Moment
from mpifed.features.settings import DEVICES, Experiment
from mpifed.federation.host import Host
from mpifed.federation.server import Federation


class Refusal(NamedTuple):
    """Sentence that refuses a part with a promise: ``begins`` and ``ends`` around its reason, ``silent`` without one.

    ``promise``: name by which an author writes that the part keeps it.
    """

    begins: str
    ends: str
    silent: str
    promise: str


REFUSALS = {
    Supports.PRIVACY: Refusal(
        "{part}{wrong}", "", "it does not say that it keeps the privacy that {name} guarantees here: {cure}", "PRIVACY"
    ),
    Supports.SURVIVAL: Refusal(
        "--survive cannot be used with {part}: ",
        "",
        "it does not say that it survives a rank that dies: {cure}",
        "SURVIVAL",
    ),
    Supports.DEVICES: Refusal(
        "{device} is wrong: ",
        ", so it must be {memory}",
        "{part} does not say that it computes on a device, so it must be {memory}; {cure}",
        "DEVICES",
    ),
}


def find_promises(c: Experiment) -> Supports:
    """Return the promises that a study asks for: the guarantee of its method, and devices."""
    promises = Supports.DEVICES if c.on_device else NOTHING_SUPPORTED
    privacy = c.guarantee()
    if privacy is None or not privacy.holds:
        return promises
    promises |= Supports.CLIENTS if privacy.clients else Supports.SAMPLES
    conditions = {Supports.SUMS: privacy.sums, Supports.DOUBLE: privacy.double}
    for promise, is_needed in conditions.items():
        promises |= promise if is_needed else NOTHING_SUPPORTED
    return promises


def explain_refusals(promises: Supports, parts: Iterable[RunPart], c: Experiment) -> Iterator[str]:
    """Yield a sentence for each part that does not say that it keeps all these promises, with what would be right."""
    for part in parts:
        lacking = promises & ~part.supports
        for promise, words in REFUSALS.items():
            if lacking & promise:
                yield sentence(part, lacking & promise, words, c)


def sentence(part: RunPart, lacking: Supports, words: Refusal, c: Experiment) -> str:
    """Return why a part is refused: its reason for the first promise that it lacks, or that it says nothing."""
    why = next((reason for promise, reason in part.unsupported.items() if promise & lacking), None)
    text = words.begins + (words.silent if why is None else why + words.ends)
    device, memory = 'problem.device = "cuda"', '"cpu"'
    if c.kernels in DEVICES:
        device, memory = f'kernels = "{c.kernels}"', '"auto"'
    guarantor = c.algorithm.label() if c.privacy is None else "[privacy]"
    study = {"name": guarantor, "loss": c.problem.label(), "device": device, "memory": memory}
    about = {"cure": part.cure, "promise": words.promise, "wrong": part.wrong, "part": part.named}
    for word, value in (about | study | dict(part.words)).items():
        text = text.replace(f"{{{word}}}", value)
    return text


def refused_part(c: Experiment) -> Violation:
    """Return the refusal of the first part that does not keep what a study asks for, or None."""
    return as_words(next(explain_refusals(find_promises(c), list_parts(c, make_features(c)), c), ""))


def refused_selector(c: LoadedSettings) -> Violation:
    """Return the refusal of the selector that a selection has made, or None."""
    return as_words(
        next(explain_refusals(find_promises(c.config), [selector_part(c.selector, c.config, c.m)], c.config), "")
    )


def as_words(refusal: str) -> Violation:
    """Return a refusal as words of a rule, or None where it is empty."""
    return {"refusal": refusal} if refusal else None


class Promises(EnginePlugin):
    """Promises that a study asks for; this feature comes last, so that the transforms of all others are there."""

    # It refuses and computes nothing.
    supports = Supports.EVERYTHING

    conflicts = (
        Conflict(("a promise", "a part that does not say that it keeps it"), "{refusal}", refused_part),
        Conflict(("a promise", "a selector that does not keep it"), "{refusal}", refused_selector, Moment.DATA),
    )

    @property
    def promises(self) -> Supports:
        """Promises that every part must keep."""
        return find_promises(self.config)

    def data(self, data: Dataset) -> Dataset:
        """Raise UserError where a promise does not hold with columns of samples, or with features that these bring."""
        features = make_data_features(self.config, data)
        parts = [*sample_parts(data), *(feature_part(feature, self.config) for feature in features)]
        self.refuse(explain_refusals(self.promises, parts, self.config))
        return data

    def extend_server(self, fed: Federation) -> None:
        """Raise UserError for a transform with which a promise does not hold; ``extend_host`` does so at hosts."""
        self.refuse(explain_refusals(self.promises, map(transform_part, fed.transforms), self.config))

    def extend_host(self, host: Host, division: HostDivision) -> None:
        self.refuse(explain_refusals(self.promises, map(transform_part, host.transforms.values()), self.config))

    def refuse(self, refusals: Iterator[str]) -> None:
        for sentence in refusals:
            raise UserError(sentence)


class Survival(Promises):
    """Promise to survive ranks that die, which a job asks for, not its study."""

    # As for promises of studies.
    supports = Supports.EVERYTHING

    promises = Supports.SURVIVAL


def refuse_dying(c: Experiment, is_fault_tolerant: bool) -> None:
    """Raise UserError where MPI, or a part of a study, does not say that it survives a rank that dies."""
    if not is_fault_tolerant:
        raise UserError(
            "--survive needs Open MPI's mpirun --with-ft ulfm, for other launchers end all ranks when one dies; "
            "resume goes on from the last checkpoint everywhere"
        )
    for sentence in explain_refusals(Supports.SURVIVAL, list_parts(c, make_features(c)), c):
        raise UserError(sentence)


def computes_on_devices(c: Experiment) -> bool:
    """Return whether every part of a study says that it computes on devices."""
    return next(explain_refusals(Supports.DEVICES, list_parts(c, make_features(c)), c), None) is None
