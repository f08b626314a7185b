"""Colour, marker and line of a curve: a method has the same ones in every picture."""

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from mpifed.core.methods import METHODS

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#882255", "#6B3E00")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLACK, SKY, WINE, BROWN = COLOURS  # Okabe and Ito without yellow, and two more
NAMES = ("blue", "vermilion", "green", "purple", "orange", "black", "sky", "wine", "brown")
NAMED = dict(zip(NAMES, COLOURS, strict=True))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
DARKEST, LIGHTEST = -0.45, 0.6  # shades of several curves of one method: towards black, towards white


class Look(NamedTuple):
    """How a method is drawn; ``marker`` and ``line`` are indices."""

    colour: str
    marker: int
    line: int = 0


def own(method: str) -> Look:
    """The look of a method; one of the user's own has a dash-dotted line, and what the name of its class yields."""
    method = method.rsplit(":", 1)[-1].lower()
    number = zlib.crc32(method.encode())
    known = METHODS.get(method)
    if known is None:
        return Look(COLOURS[number % len(COLOURS)], number // 16 % len(MARKERS), 2)
    return Look(NAMED[known.colour], known.marker, known.line)


def looks(methods: Sequence[str]) -> list[dict[str, Any]]:
    """The looks of curves, by the method of each.

    A single curve of a method has the method's own look. Several have shades of its colour, from dark to light, and
    markers and lines of their own.
    """
    counts = Counter(methods)
    return [drawn(method, list(methods[:k]).count(method), counts[method]) for k, method in enumerate(methods)]


def drawn(method: str, number: int, count: int) -> dict[str, Any]:
    """The look of curve ``number`` of ``count`` of a method, as matplotlib takes it."""
    look = own(method)
    return {
        "color": shade(look.colour, shift(number, count)),
        "marker": MARKERS[(look.marker + number) % len(MARKERS)],
        "linestyle": LINES[(look.line + number) % len(LINES)],
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
    }


def shift(number: int, count: int) -> float:
    """How much darker (negative) or lighter a shade is: of one curve 0, of two the second is lighter."""
    if count == 1:
        return 0.0
    return LIGHTEST * number if count == 2 else DARKEST + (LIGHTEST - DARKEST) * number / (count - 1)


def shade(colour: str, by: float) -> str:
    """A colour mixed with white (``by`` > 0) or with black; black itself only gets lighter."""
    by = (by - DARKEST) / (LIGHTEST - DARKEST) * LIGHTEST if colour == BLACK and by else by
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(part + by * (255 - part) if by > 0 else part * (1 + by)):02X}" for part in parts)
