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
    written as it grows. Raises mpifed.component.UserError for a mistake in ``config``.
    """
    from threadpoolctl import threadpool_limits

    from mpifed import config as configuration
    from mpifed import launch, launcher

    with threadpool_limits(1, "blas"):
        return launch.run(configuration.experiment(config or {}), path, force, launcher.connect())


def load(path: Any) -> Result:
    """The result in a file. Raises mpifed.component.UserError where it is none."""
    from mpifed import results

    return results.load(path)
