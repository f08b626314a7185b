"""What commands print: on rank 0 alone, without control characters."""

from mpifed.core.errors import printable


def say(text: str, speaks: bool = True, keep: str = "\n") -> None:
    """Print a line where ``speaks``; control characters but those in ``keep`` are escaped."""
    if speaks:
        print(printable(text, keep), flush=True)


class Mistakes(str):
    """What a command prints that has found mistakes, which is its exit code 1."""

    __slots__ = ()
