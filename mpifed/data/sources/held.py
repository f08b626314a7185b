"""Data in the memory of a Python program, which are found by their hash as long as the program holds them."""

from collections.abc import Mapping
from typing import Any, Protocol
from weakref import WeakValueDictionary

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data

SHORT = 12  # digits of a hash in a message
IN_PROGRAM = ("arrays", "frame")  # names of data that one Python program alone has


class HeldData(Protocol):
    """Data in memory that are identified by their hash."""

    def digest(self) -> str: ...


HELD: WeakValueDictionary[str, HeldData] = WeakValueDictionary()  # by hash


def find_held(source: Any) -> Any:
    """Return the data that ``source`` names by hash; UserError if this program does not hold or has changed them."""
    held = HELD.get(source.sha256)
    # An experiment file that says data = "arrays" has no hash.
    if not source.sha256:
        raise UserError(f'data = "{source.label()}" needs a Python program: mpifed.run(data={source.call}, …)')
    if held is None:
        shape = " × ".join(f"{length:,}" for length in source.shape or ())
        raise UserError(
            f"the data were {source.noun} in memory ({shape}, sha256 {source.sha256[:SHORT]}…), which this program "
            f"does not hold: continue from Python with mpifed.resume(PATH, data={source.call}), or fit with "
            f"mpifed.load(PATH).fit(data={source.call}), the same data on every rank"
        )
    # The data are not copied, so that the program may have changed them.
    if held.digest() != source.sha256:
        function = source.call.partition("(")[0]
        raise UserError(f"the data in memory have changed since {function}(…) took them: call it again")
    return held


def refuse_others(table: Mapping[str, Any], first: Mapping[str, Any], rank: int) -> None:
    """Raise UserError where the study ``first`` of rank 0 has data in memory, and this rank has others or none."""
    mine, theirs = (hash_of(part.get("data")) for part in (table, first))
    if theirs and mine != theirs:
        here = f"sha256 {mine[:SHORT]}…" if mine else "none"
        raise UserError(
            f"the arrays of data differ between ranks: sha256 {theirs[:SHORT]}… on rank 0, and {here} on rank {rank}: "
            "every rank must pass the same ones, so read or draw them in the same way, with the same seed"
        )


def hash_of(data: Any) -> str:
    """Return the hash by which a study names data in memory; empty for other data."""
    try:
        return str(data["sha256"])
    except (TypeError, KeyError):  # a text, or no table at all
        return ""


def get_held(source: Data) -> HeldData | None:
    """Return the data that ``source`` names, if this program holds them; a reference to them keeps them alive."""
    return HELD.get(getattr(source, "sha256", ""))


def keep(source: Any, held: HeldData) -> Data:
    """Return ``source``, with a reference to the data ``held`` that it names by hash."""
    # HELD refers to data weakly, or a notebook would keep every array of every study: the source keeps them alive.
    # Two sources of the same data keep the same object, so that either may be deleted first.
    existing = HELD.get(source.sha256)
    if existing is None or existing.digest() != source.sha256:
        HELD[source.sha256] = existing = held
    source.__dict__["kept"] = existing
    return source
