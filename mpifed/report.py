"""A result on one screen."""
from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpifed.component import toml_value
from mpifed.results import Result

WIDTH, HEIGHT = 100, 40
MARGIN = 15                # columns on the left that hold the name of a part
LISTED = 16                # most ranks that get a row each
COMMUNICATION = ("exchanges", "uploads", "downloads")
TRAFFIC = {"bytes_up": "up", "bytes_down": "down"}
SECONDS = {"compute_seconds": "compute, slowest rank", "client_seconds": "clients, sum", "server_seconds": "server",
           "comm_seconds": "communication", "evaluate_seconds": "evaluation"}
APART = {"round", "elapsed_seconds", *COMMUNICATION, *TRAFFIC, *SECONDS}
SIGNS = {"grad_norm_sq": "‖∇f‖²"}
RANK_COLUMNS = {"clients": "clients", "samples": "samples", "compute_seconds": "compute", "comm_seconds": "mpi",
                "wait_seconds": "wait", "evaluate_seconds": "evaluate", "io_seconds": "io", "mpi_calls": "calls",
                "mpi_bytes_sent": "sent", "mpi_bytes_received": "received", "max_rss_bytes": "memory"}

Array = NDArray[Any]


def show(result: Result) -> str:
    """Configuration, outcome, communication, time and ranks of a run, at most 40 lines of 100 columns."""
    parts = [title(result), part("configuration", configuration(result.config)), part("outcome", outcome(result)),
             part("communication", communication(result)), part("time (s)", times(result)),
             part("ranks", ranks(result, LISTED))]
    parts = [lines for lines in parts if lines]
    if height(parts) > HEIGHT:
        parts[-1] = part("ranks", ranks(result, 1)) or parts[-1]
    between = "\n\n" if height(parts) <= HEIGHT else "\n"
    return between.join("\n".join(lines) for lines in parts)


def height(parts: Sequence[Sequence[str]]) -> int:
    return sum(len(lines) + 1 for lines in parts) - 1
