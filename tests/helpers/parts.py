"""Parts of the tests and of the recorded studies, of which CI takes one at a time."""

from zlib import crc32


def in_part(name: str, part: str | None) -> bool:
    """Whether a name is in part "K/N", by its checksum modulo N; without a part every name is."""
    k, n = map(int, (part or "0/1").split("/"))
    return crc32(name.encode()) % n == k % n
