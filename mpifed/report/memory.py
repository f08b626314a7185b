"""Memory of ranks: how much to ask a batch system for."""

import math
from collections.abc import Mapping

import numpy as np

from mpifed.core.typing import Array

SPARE = 1.25  # what a rank asks for : the measured peak
MIB = 1 << 20  # SLURM's M


def per_cpu(peaks: Array, threads: int = 1) -> int:
    """MiB to ask for, for each CPU of ranks of so many threads, from the peaks in bytes of an earlier run's ranks.

    A quarter more than the largest peak, rounded up to two digits: SLURM limits a node, not a rank.
    """
    need = SPARE * float(np.max(peaks, initial=0.0)) / MIB / threads
    digit = 10 ** max(0, math.floor(math.log10(max(need, 1.0))) - 1)
    return max(1, math.ceil(need / digit)) * digit


def peaks(ranks: Mapping[str, Array]) -> Array:
    """The peak of each rank in bytes, from the columns of /ranks; what ranks of a machine share is divided by them."""
    found = np.asarray(ranks.get("max_rss_bytes", np.zeros(0)), float)
    if not {"shared_bytes", "hostname"} <= ranks.keys():
        return found
    _, machine, count = np.unique(ranks["hostname"], return_inverse=True, return_counts=True)
    shared = np.minimum(ranks["shared_bytes"], found)  # not all of it need have been used
    return found - shared + shared / count[machine]


def option(peaks: Array, threads: int = 1) -> str:
    """The option of sbatch for ranks with a CPU for each thread; empty where no peak was measured."""
    return f"--mem-per-cpu={per_cpu(peaks, threads)}M" if np.any(peaks > 0) else ""
