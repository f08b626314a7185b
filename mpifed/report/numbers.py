"""Numbers as text: four digits, bytes with a unit, counts."""

import math

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.metrics import scale


def number(value: float) -> str:
    """Four significant digits."""
    return f"{float(f'{value:.4g}'):g}"


def aligned(values: Array) -> list[str]:
    """Values with their decimal points in line: four significant digits in the largest, at most four decimals."""
    most = float(np.max(np.abs(values), initial=0.0))
    if np.all(values == np.floor(values)) or not most < math.inf:
        return [f"{value:.0f}" for value in values]
    decimals = min(4, max(0, 3 - math.floor(math.log10(most))))
    return [f"{value:.{decimals}f}" for value in values]


def amount(size: float) -> str:
    """Bytes as B, kB, MB …"""
    factor, name = scale("byte", size)
    return f"{number(size / factor)} {name}"


def count(number_of: int, what: str) -> str:
    return f"{number_of:,} {what}" + ("" if number_of == 1 else "s")
