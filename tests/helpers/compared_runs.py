"""Recorded runs of several seeds, and cells of the table that compares them."""

import re

from mpifed.report import compare as module
from tests.helpers.recorded_runs import recorded

BOLD = "\033[1m"


def compare(results, **options):
    return module.compare(results, module.TableOptions(**options))


def seeds(*ends, **options):
    """A run a seed, which end at these objectives."""
    return [recorded(seed=seed, objective=(8.0, 4.0, end), **options) for seed, end in enumerate(ends)]


def cells(text):
    """Heads and rows of a table for a terminal."""
    head, *rows = [
        re.split(r"  +", line.strip()) for line in text.split("\n") if line and not line.startswith("left out")
    ]
    return head, rows
