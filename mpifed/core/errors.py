"""What goes wrong, and how it is said."""

from __future__ import annotations

import difflib
import socket
import traceback
from typing import Any, NoReturn

LONGEST = 600  # characters of a sentence


class UserError(Exception):
    """A mistake in the user's input, told in one sentence that names the key, the value and what would be right."""


class Trouble(Exception):
    """Why a run cannot go on, in one sentence; what was recorded so far stays."""


def reason(error: BaseException) -> str:
    """Why the system refused, in small letters."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def failure(rank: int, error: BaseException) -> str:
    """What to say of an error on a rank: a mistake of the user in one sentence, others with where they happened."""
    if isinstance(error, UserError):
        return str(error)
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    where = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"rank {rank} on {socket.gethostname()} failed: {what}\n{where}"


def unknown(what: str, name: Any, known: Any, path: str = "") -> NoReturn:
    """Refuse ``name``, with the nearest known name or, where none is near, the list of them."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    hint = f"did you mean {near[0]!r}?" if near else "there is " + ", ".join(known) if known else "none is known here"
    raise UserError(f"unknown {what} {(f'{path}.{name}' if path else str(name))!r}; {hint}")


def sentence(mistake: object) -> str:
    """What to tell of a mistake: one line, not too long, nothing in it that a terminal would obey."""
    text = printable(str(mistake))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def printable(text: str, keep: str = "") -> str:
    """Text with control characters and stray bytes shown as escapes, those in ``keep`` left alone."""
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
