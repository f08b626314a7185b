"""What there is of a point already: nothing, a part, all of it, or a file that must not be overwritten."""

import os
from pathlib import Path
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.files import being_written
from mpifed.experiment import checkpoint
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment
from mpifed.results.result import read
from mpifed.results.validate import attributes
from mpifed.results.validate import configuration as recorded

RUN = "run"
RESUME = "resume"
AGAIN = "start again"
SKIP = "skip"
BUSY = "being written by another run"


def state(config: Experiment, path: str, force: bool) -> str:
    """What to do for a point whose file is ``path``: RUN, RESUME, AGAIN, SKIP or BUSY.

    UserError where the file is not a result, or belongs to another configuration; with ``force``, AGAIN.
    """
    if not os.path.lexists(path):
        return RUN
    try:
        if os.path.isfile(path) and not os.path.getsize(path):
            return BUSY if being_written(Path(path)) else AGAIN
        attrs = read(path, attributes)
        if other := difference(config, attrs, path):
            raise UserError(
                f"{path} is of another configuration: {other}; say --force to overwrite it or -o for another folder"
            )
        if attrs.get("status") == "finished":
            return SKIP
        if being_written(Path(path)):
            return BUSY
        return AGAIN if checkpoint.find(path) is None else RESUME
    except UserError:
        if force:
            return AGAIN
        raise


def difference(config: Experiment, attrs: dict[str, Any], path: str) -> str:
    """The first key in which the configuration of a result differs, but for patience and [checkpoint]; empty: none."""
    before = configuration.experiment(recorded(attrs.get("config", ""), path))
    found = next(configuration.differences(before, config, ("patience", "checkpoint")), None)
    return "" if found is None else "{} is {} there and {} here".format(*found)
