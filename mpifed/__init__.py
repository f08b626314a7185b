"""mpifed: federated optimisation on an MPI cluster."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpifed.results import Result

__version__ = "0.1.0"
__all__ = ["__version__", "load", "run"]


def run(config: dict[str, Any] | None = None, path: Any = None, force: bool = False) -> Result | None:
    """Run an experiment given as a nested dictionary (see the experiment file) and return its result.

    Under mpirun every rank calls it, and the result is there on rank 0, None elsewhere. With ``path`` the result is
    written as it grows. Raises mpifed.component.UserError for a mistake in ``config``, on every rank; any other error on
    one of several ranks ends all of them.
    """
    from threadpoolctl import threadpool_limits

    from mpifed import launch, launcher
    from mpifed.component import UserError

    world = launcher.connect()
    try:
        with threadpool_limits(1, "blas"):
            return launch.run(launch.build(config or {}, world), path, force, world)
    except UserError:
        raise
    except Exception as error:
        if world is not None and world.size > 1:
            launch.fail(world, error)          # the other ranks would wait for ever
        raise


def load(path: Any) -> Result:
    """The result in a file. Raises mpifed.component.UserError where it is none."""
    from mpifed import results

    return results.load(path)
