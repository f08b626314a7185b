"""A run started by a Python program."""

from __future__ import annotations

import os
from typing import Any

from threadpoolctl import threadpool_limits

from mpifed.core.errors import UserError
from mpifed.experiment.job import Job
from mpifed.experiment.run import build, fail, start
from mpifed.mpi import launcher
from mpifed.results.result import Result


def run(
    config: dict[str, Any] | None = None, path: str | os.PathLike[str] | None = None, force: bool = False
) -> Result | None:
    """Run an experiment given as a nested dictionary (see the experiment file) and return its result.

    Under mpirun every rank calls it, and the result is there on rank 0, None elsewhere. With ``path`` the result is
    written as it grows. Raises UserError for a mistake in ``config``, on every rank; any other error on one of several
    ranks ends all of them.
    """
    world = launcher.connect()
    try:
        with threadpool_limits(1, "blas"):
            recorder = start(Job(build(config or {}, world), path, force), world)
            return None if recorder is None else recorder.result()
    except UserError:
        raise
    except Exception as error:
        if world.size > 1:
            fail(world, error)  # or the other ranks would wait for ever
        raise
