"""Which promises a run asks for, and the sentence about a part that does not say that it keeps one."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mpifed.core.promises import NOTHING_KEPT, Keeps
from mpifed.features.promises.parts import Part
from mpifed.features.settings import DEVICES, Experiment


class Refusal(NamedTuple):
    """How a part is refused with a promise: how that begins and ends where it has a reason, and where it says nothing.

    ``promise``: how an author writes what the part keeps.
    """

    begins: str
    ends: str
    silent: str
    promise: str


REFUSALS = {
    Keeps.PRIVACY: Refusal(
        "{part}{wrong}",
        "",
        "it does not say that it keeps the privacy that {name} guarantees here: {cure}",
        "PRIVACY",
    ),
    Keeps.SURVIVAL: Refusal(
        "--survive cannot be used with {part}: ",
        "",
        "it does not say that it survives a rank that dies: {cure}",
        "SURVIVAL",
    ),
    Keeps.DEVICES: Refusal(
        "{device} is wrong: ",
        ", so it must be {memory}",
        "{part} does not say that it computes on a device, so it must be {memory}; {cure}",
        "DEVICES",
    ),
}


def asked(c: Experiment) -> Keeps:
    """The promises that a study asks for: the guarantee of its method, and devices."""
    found = Keeps.DEVICES if c.on_device else NOTHING_KEPT
    privacy = c.algorithm.privacy()
    if privacy is None or not privacy.holds:
        return found
    found |= Keeps.CLIENTS if privacy.clients else Keeps.SAMPLES
    kinds = {Keeps.SUMS: privacy.sums, Keeps.DOUBLE: privacy.double}
    for kind, there in kinds.items():
        found |= kind if there else NOTHING_KEPT
    return found


def refusals(promises: Keeps, parts: Iterable[Part], c: Experiment) -> Iterator[str]:
    """A sentence for each part that does not say that it keeps all of these promises, with what would be right."""
    for part in parts:
        lacking = promises & ~part.keeps
        for promise, words in REFUSALS.items():
            if lacking & promise:
                yield sentence(part, lacking & promise, words, c)


def sentence(part: Part, lacking: Keeps, words: Refusal, c: Experiment) -> str:
    """Why a part is refused: its reason for the first promise that it lacks, or else that it says nothing."""
    why = next((reason for promise, reason in part.unkept.items() if promise & lacking), None)
    told = words.begins + (words.silent if why is None else why + words.ends)
    device, memory = 'problem.device = "cuda"', '"cpu"'
    if c.kernels in DEVICES:
        device, memory = f'kernels = "{c.kernels}"', '"auto"'
    study = {"name": c.algorithm.label(), "loss": c.problem.label(), "device": device, "memory": memory}
    about = {"cure": part.cure, "promise": words.promise, "wrong": part.wrong, "part": part.named}
    for word, value in (about | study | dict(part.words)).items():
        told = told.replace(f"{{{word}}}", value)
    return told
