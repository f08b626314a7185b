"""What is said of compressors whose options ask for more than there is."""

from typing import Any


def above(key: str, C: Any, numbers: int) -> list[str]:
    """A sentence where a compressor keeps ``k`` entries of messages that have fewer ``numbers``."""
    k = getattr(C, "k", None)
    if not isinstance(k, int) or k <= numbers:
        return []
    return [f"{key}.k = {k} is above the {numbers:,} numbers of a message: all are sent"]
