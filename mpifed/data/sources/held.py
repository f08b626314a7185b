"""Data in the memory of a Python program: found again by their hash, as long as the program keeps them."""

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
