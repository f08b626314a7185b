"""Data in the memory of a Python program: found again by their hash, as long as the program keeps them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data

SHORT = 12  # digits of a hash in a message
IN_PROGRAM = ("arrays", "frame")  # names of data that one Python program alone has


class Held(Protocol):
    def digest(self) -> str: ...


HELD: WeakValueDictionary[str, Held] = WeakValueDictionary()  # by hash


class Words(NamedTuple):
    """How messages call such data: the ``call`` that makes them, shortened in ``again``, …"""

    call: str
    again: str
    what: str
    same: str
    changed: str


def found(source: Any, words: Words) -> Any:
    """The data that ``source`` names by their hash. UserError where this program does not hold or has changed them."""
    held = HELD.get(source.sha256)
    # The table of an experiment file that says data = "arrays", and has no hash.
    if not source.sha256:
        raise UserError(f'data = "{source.label()}" needs a Python program: mpifed.run(data={words.call}, …)')
    if held is None:
        shape = " × ".join(f"{length:,}" for length in source.shape or ())
        raise UserError(
            f"the data were {words.what} in memory ({shape}, sha256 {source.sha256[:SHORT]}…), which this program does "
            f"not hold: continue from Python with mpifed.resume(PATH, data={words.again}), or fit with "
            f"mpifed.load(PATH).fit(data={words.again}), the same {words.same} on every rank"
        )
    # They are not copied when they are taken, so that the program may have written to them since.
    if held.digest() != source.sha256:
        raise UserError(f"{words.changed}: call it again")
    return held


def refuse_others(table: Mapping[str, Any], first: Mapping[str, Any], rank: int) -> None:
    """UserError where the study of rank 0, ``first``, has data in memory and that of this rank has others, or none."""
    mine, theirs = (hash_of(part.get("data")) for part in (table, first))
    if theirs and mine != theirs:
        own = f"sha256 {mine[:SHORT]}…" if mine else "none"
        raise UserError(
            f"the arrays of data differ between ranks: sha256 {theirs[:SHORT]}… on rank 0, and {own} on rank {rank}: "
            "every rank must pass the same ones, so read or draw them in the same way, with the same seed"
        )


def hash_of(data: Any) -> str:
    """The hash of data in memory, as a study names them; empty for others."""
    try:
        return str(data["sha256"])
    except (TypeError, KeyError):  # a text, or no table at all
        return ""


def still(source: Data) -> Held | None:
    """The data that ``source`` names, if this program holds them; who keeps what is returned keeps them."""
    return HELD.get(getattr(source, "sha256", ""))


def kept(made: Any, held: Held) -> Data:
    """``made``, which names ``held`` by its hash, and keeps it as long as it lives itself."""
    # HELD refers to data weakly, or a notebook would keep every array that was ever a study's: the source keeps them.
    # Two sources of the same data keep the same ones, so that either may go first.
    known = HELD.get(made.sha256)
    if known is None or known.digest() != made.sha256:
        HELD[made.sha256] = known = held
    made.__dict__["kept"] = known
    return made
