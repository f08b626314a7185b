"""What a run may promise, and which of it a part of the run says that it keeps."""

from collections.abc import Mapping
from enum import Flag, auto
from typing import NamedTuple, Protocol


class Keeps(Flag):
    """Promises that hold with a part of a run: a method, an option, a selection … What a part does not name it does
    not keep, and a run that asks for a promise is refused with it.

    A part keeps ``PRIVACY`` where nothing that depends on samples leaves a client through it, or changes who takes part
    or what others compute, before round one too, but the uploads that the method accounts for. It does so for single
    ``SAMPLES`` of a client, for all data of whole ``CLIENTS``, where only ``SUMS`` over all clients have noise enough,
    and where the guarantee counts on ``DOUBLE`` precision. ``BITS``: no number depends on ranks, blocks or the order of
    messages. ``RESUME``: all that the next round reads is in the checkpoint. ``SURVIVAL``: what a rank that dies knew
    can be computed again from there. ``DEVICES``: it computes with ``f.xp`` and copies nothing to memory in a local
    step.

        >>> mpifed.Keeps.BITS in mpifed.algorithms.FedAvg().keeps
        True
    """

    SAMPLES = auto()
    CLIENTS = auto()
    SUMS = auto()
    DOUBLE = auto()
    BITS = auto()
    RESUME = auto()
    SURVIVAL = auto()
    DEVICES = auto()
    PRIVACY = SAMPLES | CLIENTS | SUMS | DOUBLE
    REPEATED = BITS | RESUME | SURVIVAL
    # Written out: a promise that is added later is kept by nothing until each part says so.
    EVERYTHING = SAMPLES | CLIENTS | SUMS | DOUBLE | BITS | RESUME | SURVIVAL | DEVICES


NOTHING_KEPT = Keeps(0)
Reasons = Mapping[Keeps, str]  # promise -> why it does not hold and what would, the end of a sentence
NO_REASONS: Reasons = {}


class Speaking(Protocol):
    """A part of a run that can say what it keeps, and why not the rest; {name} in a reason is the method."""

    @property
    def keeps(self) -> Keeps: ...

    @property
    def unkept(self) -> Reasons: ...


class Option(NamedTuple):
    """What an option that is set keeps, and why not the rest."""

    keeps: Keeps
    unkept: Reasons = NO_REASONS


# option, or "option = value" where its values differ -> what it keeps
Options = Mapping[str, Option]
SILENT = Option(NOTHING_KEPT)


def keeping(*options: str, keeps: Keeps = Keeps.EVERYTHING) -> dict[str, Option]:
    """Options that keep these promises, by default everything.

    >>> class Scaled(mpifed.Data):
    ...     keeps = mpifed.Keeps.EVERYTHING
    ...     options = mpifed.keeping("scale")
    ...     scale: float = 1.0
    """
    return dict.fromkeys(options, Option(keeps))


def said(part: Speaking) -> Keeps:
    """What the class of a part itself says.

    What a class inherits is not its word: it may have changed anything, as a method that derives from another one.
    """
    return part.keeps if "keeps" in vars(type(part)) else NOTHING_KEPT
