"""The description of a run to be made."""

import os
from typing import NamedTuple

from mpifed.experiment.checkpoint import StoredCheckpoint
from mpifed.features.settings import Experiment
from mpifed.results.result import RunRecord


class Job(NamedTuple):
    """An experiment, the path of its result, and the state from which it continues.

    ``path`` None keeps the result in memory; ``force`` replaces a file of that name. ``saved`` is the checkpoint from
    which the run continues, None to start again, and ``before``, on rank 0, the result so far. With ``survive``, the
    other ranks continue from the last checkpoint when some die.
    """

    config: Experiment
    path: str | os.PathLike[str] | None = None
    force: bool = False
    saved: StoredCheckpoint | None = None
    before: RunRecord | None = None
    survive: bool = False
