"""The ranks that make a call of a Python program together."""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from mpifed.core.errors import UserError
from mpifed.experiment.run import fail
from mpifed.mpi import launcher
from mpifed.mpi.world import World


@contextmanager
def together() -> Iterator[World]:
    """The ranks of this program, BLAS on one thread each. An error on one of several, but a UserError, ends all."""
    world = launcher.connect()
    try:
        with threadpool_limits(1, "blas"):
            yield world
    except UserError:
        raise
    except Exception as error:
        if world.size > 1:
            fail(world, error)  # or the other ranks would wait for ever
        raise
