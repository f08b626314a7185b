"""A run that is to be made."""

import os
from typing import NamedTuple

from mpifed.experiment.checkpoint import Saved
from mpifed.features.settings import Experiment
from mpifed.results.result import Result


class Job(NamedTuple):
    """An experiment, where its result goes, and what it goes on from.

    ``path`` None keeps the result in memory; ``force`` replaces a file of that name. ``saved`` is the checkpoint that
    the run goes on from, None to start again, and ``before``, on rank 0, the result so far. With ``survive`` ranks that
    live go on from the last checkpoint when others die.
    """

    config: Experiment
    path: str | os.PathLike[str] | None = None
    force: bool = False
    saved: Saved | None = None
    before: Result | None = None
    survive: bool = False
