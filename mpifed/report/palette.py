"""Colour, marker and line of a curve: those of its method, unless another curve of the picture has them."""

import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.methods import METHODS
from mpifed.core.typing import Array

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A physiologically-based model for simulation of color vision
# deficiency", doi:10.1109/TVCG.2009.113 (2009): linear RGB as it is seen without red, green or blue cones
BLIND = (
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
)
SEEN = np.array([np.eye(3), *BLIND])
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
DARK = 0.008856  # fraction of white up to which CIELAB is linear


@lru_cache(maxsize=1024)
def to_cielab(colour: str) -> Array:
    """Return the CIELAB coordinates of #RRGGBB for each kind of reader, (4, 3)."""
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    light = np.clip(SEEN @ linear, 0, 1) @ XYZ.T / WHITE
    x, y, z = np.where(light > DARK, np.cbrt(light), 7.787 * light + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def colour_distance(a: str, b: str) -> float:
    return float(np.linalg.norm(to_cielab(a) - to_cielab(b), axis=1).min())


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#882255", "#6B3E00")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLACK, SKY, WINE, BROWN = COLOURS  # Okabe and Ito without yellow, and two more
NAMES = ("blue", "vermilion", "green", "purple", "orange", "black", "sky", "wine", "brown")
NAMED = dict(zip(NAMES, COLOURS, strict=True))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHED = ((6, 1, 1, 1, 1, 1), (7, 2.5), (4, 1, 4, 1, 1, 1), (1.5, 3))
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", *((0, dashes) for dashes in DASHED))
APART = 15.0  # nearer colours in CIELAB may look the same in a thin line
DARKEST, LIGHTEST = -0.45, 0.6  # shades of several curves of one method: towards black, towards white

# Blank fraction of a line, as matplotlib draws it. Lines with larger gaps are on top, so that others show through.
GAPS: dict[Any, float] = {"-": 0.0, "--": 0.3, "-.": 0.31, ":": 0.62}
GAPS |= {line: sum(line[1][1::2]) / sum(line[1]) for line in LINES if line not in GAPS}


class CurveStyle(NamedTuple):
    """The colour, marker and line of a method; ``marker`` and ``line`` are indices."""

    colour: str
    marker: int
    line: int = 0


def method_style(method: str) -> CurveStyle:
    """Return the style of a method, also for a class of its name; any other class has a dash-dotted line."""
    # From the name alone: a class looks the same in every picture, whatever the other methods. Python's hash of a text
    # would differ in every process.
    method = method.rsplit(":", 1)[-1].lower()
    number = zlib.crc32(method.encode())
    builtin = METHODS.get(method)
    if builtin is None:
        return CurveStyle(COLOURS[number % len(COLOURS)], number // 16 % len(MARKERS), 2)
    return CurveStyle(NAMED[builtin.colour], builtin.marker, builtin.line)


def curve_styles(methods: Sequence[str]) -> list[dict[str, Any]]:
    """Return the styles of curves for matplotlib, from the method of each.

    A single curve of a method has the method's own style, several have shades of its colour, from dark to light, and
    different markers and lines. Where that is taken, by a curve of another method for example, a curve gets a colour,
    marker or line that is free: as many curves as there are of each differ in it, whatever their methods.
    """
    wanted = preferred_styles(methods)
    builtin = [method in METHODS for method in methods]
    colours = assign_colours(wanted, builtin) if len(set(methods)) > 1 else [look.colour for look in wanted]
    markers = assign_indices([look.marker for look in wanted], builtin, len(MARKERS), colours)
    lines = assign_indices([look.line for look in wanted], builtin, len(LINES), colours)
    hollow = {"markerfacecolor": "white", "markeredgewidth": 0.8}
    return [
        {"color": colour, "marker": MARKERS[marker], "linestyle": LINES[line], **hollow}
        for colour, marker, line in zip(colours, markers, lines, strict=True)
    ]


def preferred_styles(methods: Sequence[str]) -> list[CurveStyle]:
    """Return the style that each curve would have if there were no other methods."""
    counts = Counter(methods)
    styles = []
    for k, method in enumerate(methods):
        look = method_style(method)
        number = methods[:k].count(method)
        colour = shade(look.colour, shift(number, counts[method]))
        styles.append(CurveStyle(colour, (look.marker + number) % len(MARKERS), (look.line + number) % len(LINES)))
    return styles


def assign_colours(wanted: Sequence[CurveStyle], builtin: Sequence[bool]) -> list[str]:
    """Return a colour for each curve; the first ones differ by ``APART`` or more for every kind of reader.

    Methods of mpifed keep their colours, then users' classes; then curves whose colour is taken get another one.
    """
    # More curves than colours cannot differ in colour: the later ones keep theirs and differ in line or marker.
    assigned = dict[int, str]()
    first = range(min(len(wanted), len(COLOURS)))
    for k in sorted(first, key=lambda k: not builtin[k]):
        if nearest_distance(wanted[k].colour, assigned) >= APART:
            assigned[k] = wanted[k].colour
    for k in first:
        if k not in assigned:
            usable = [colour for colour in COLOURS if nearest_distance(colour, assigned) >= APART]
            assigned[k] = usable[0] if usable else max(COLOURS, key=lambda colour: nearest_distance(colour, assigned))
    return [assigned.get(k, look.colour) for k, look in enumerate(wanted)]


def nearest_distance(colour: str, others: Mapping[int, str]) -> float:
    return min((colour_distance(colour, other) for other in others.values()), default=math.inf)


def assign_indices(wanted: Sequence[int], builtin: Sequence[bool], count: int, colours: Sequence[str]) -> list[int]:
    """Return a marker or line for each curve: all differ up to ``count`` curves, then those of a colour."""
    assigned = dict[int, int]()
    for k in sorted(range(min(len(wanted), count)), key=lambda k: not builtin[k]):
        if wanted[k] not in assigned.values():
            assigned[k] = wanted[k]
    for k, wish in enumerate(wanted):
        if k not in assigned:
            rivals = range(count) if k < count else [j for j in assigned if colours[j] == colours[k]]
            taken = Counter(assigned[j] for j in rivals if j in assigned)
            assigned[k] = min(range(count), key=lambda one: (taken[one], (one - wish) % count))
    return [assigned[k] for k in range(len(wanted))]


def shift(number: int, count: int) -> float:
    """Return how much darker (negative) or lighter a shade is: 0 for one curve, of two the second is lighter."""
    if count == 1:
        return 0.0
    return LIGHTEST * number if count == 2 else DARKEST + (LIGHTEST - DARKEST) * number / (count - 1)


def shade(colour: str, by: float) -> str:
    """Return a colour mixed with white (``by`` > 0) or with black; black itself only gets lighter."""
    by = (by - DARKEST) / (LIGHTEST - DARKEST) * LIGHTEST if colour == BLACK and by else by
    channels = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(part + by * (255 - part) if by > 0 else part * (1 + by)):02X}" for part in channels)
