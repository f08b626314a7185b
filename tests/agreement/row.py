"""A row of the page of agreement: one method beside one program, and how far apart the two are at worst."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

FOLDER = Path(os.environ.get("MPIFED_ORACLES", "../shared/oracles/authors"))
CLOSE = 1e-12  # relative; what is further apart needs a reason
needs_oracles = pytest.mark.skipif(not FOLDER.is_dir(), reason="MPIFED_ORACLES names no folder of trajectories")


class Row(NamedTuple):
    """``x`` and ``f`` are the worst relative differences over all rounds, nan where there is nothing to compare.

    Both are nan where the program is not installed here: the page keeps what was measured elsewhere. ``reason`` says
    why they are above ``CLOSE``, where they are: what the program does otherwise than its paper, and how far apart the
    two are by it, in numbers that are written and not computed. ``bound`` is what they must stay below.
    """

    method: str  # with its options in words, where it has several rows: "ef21, heavy ball"
    program: str  # repository
    commit: str  # its first digits; or a version
    compared: str  # rounds, clients, participation, start
    x: float
    f: float
    reason: str = ""
    bound: float = CLOSE


def apart(ours: object, theirs: object) -> float:
    """max |ours − theirs| over max |theirs|, of all rounds together; nan where neither has a number."""
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    assert (np.isfinite(a) == np.isfinite(b)).all(), "one of the two has numbers that are not finite"
    return float(np.abs(a - b).max() / np.abs(b).max())


def program(folder: str) -> tuple[str, str]:
    """Repository and the first digits of its commit, or package and version, of a folder, from its README."""
    text = (FOLDER / folder / "README").read_text("utf-8").partition(": ")[2]
    commit = re.search(r"commit ([0-9a-f]{8})", text)
    name, version = re.split(r",? ", text)[:2]
    return name, commit[1] if commit else version
