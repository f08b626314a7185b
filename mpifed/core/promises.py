"""The promises of a run, and the declarations of its components which of them they keep."""

from collections.abc import Mapping
from enum import Flag, auto
from typing import NamedTuple, Protocol


class Supports(Flag):
    """Promises that hold with a component of a run: a method, an option, a selection … A component keeps only the
    promises that it names, and a run that asks for another one refuses it.

    A component keeps ``PRIVACY`` if nothing that depends on samples leaves a client through it, or changes who takes
    part or what others compute, before round one too, except the uploads that the method accounts for. Its parts are
    for guarantees of single ``SAMPLES`` of a client, of all data of ``CLIENTS``, of ``SUMS`` over all clients where
    these alone have enough noise, and for those that rely on ``DOUBLE`` precision. ``BITS``: no number depends on
    ranks, blocks or the order of messages. ``RESUME``: the checkpoint has all that the next round reads. ``SURVIVAL``:
    the state of a rank that dies can be computed again from the checkpoint. ``DEVICES``: it computes with ``f.xp`` and
    copies nothing to memory in a local step.

        >>> mpifed.extend.Supports.BITS in mpifed.algorithms.FedAvg().supports
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
    # Written out, so that no component keeps a promise added later until it says so.
    EVERYTHING = SAMPLES | CLIENTS | SUMS | DOUBLE | BITS | RESUME | SURVIVAL | DEVICES


NOTHING_SUPPORTED = Supports(0)
Reasons = Mapping[Supports, str]  # promise -> why it does not hold and what would, the end of a sentence
NO_REASONS: Reasons = {}


class PromisingComponent(Protocol):
    """A component that declares the promises it keeps and why not the others; {name} in a reason is the method."""

    @property
    def supports(self) -> Supports: ...

    @property
    def unsupported(self) -> Reasons: ...


class OptionPromises(NamedTuple):
    """The promises that hold where an option is set, and why the others do not."""

    supports: Supports
    unsupported: Reasons = NO_REASONS


# option, or "option = value" where its values differ -> its promises
PromisesByOption = Mapping[str, OptionPromises]
NO_PROMISES = OptionPromises(NOTHING_SUPPORTED)


def supporting(*options: str, supports: Supports = Supports.EVERYTHING) -> dict[str, OptionPromises]:
    """Declare options that keep these promises, by default all.

    >>> class Scaled(mpifed.extend.Data):
    ...     supports = mpifed.extend.Supports.EVERYTHING
    ...     options = mpifed.extend.supporting("scale")
    ...     scale: float = 1.0
    """
    return dict.fromkeys(options, OptionPromises(supports))


def declared_promises(part: PromisingComponent) -> Supports:
    """Return the promises that the class of a component declares itself.

    Inherited declarations do not count, because a derived class may have changed anything.
    """
    return part.supports if "supports" in vars(type(part)) else NOTHING_SUPPORTED
