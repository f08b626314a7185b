"""The launcher of this process: mpirun, srun or none. ``import mpifed`` uses it, so it imports as little as it can."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpifed.mpi.world import World


LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE", "SLURM_STEP_NUM_TASKS")
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "PMIX_RANK", "SLURM_PROCID")


def read_launcher() -> tuple[int | None, int]:
    """Return the number of processes that the launcher started (None: no launcher), and the number of this one."""
    sizes = list(filter(None, map(os.environ.get, LAUNCHERS)))
    ranks = list(filter(None, map(os.environ.get, RANKS)))
    size = int(sizes[0]) if sizes else None
    rank = int(ranks[0]) if ranks else 0
    # PMIx launchers set no size; 1 makes this process ask MPI, or run alone if there is no MPI
    if size is None and "PMIX_RANK" in os.environ:
        size = 1
    return size, rank if size is not None else 0


def connect_ranks() -> World:
    """Return the ranks of this run, one without a launcher; raise UserError if there is no MPI library."""
    from mpifed.core.errors import UserError
    from mpifed.mpi.world import World

    size, _ = read_launcher()
    if size is None:
        return World()
    # imported only under a launcher, because mpi4py.MPI needs a library and a run in one process needs none
    try:
        from mpifed.mpi.communicator import Communicator
    except (ImportError, RuntimeError) as error:
        if size == 1:
            return World()
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"the launcher started {size} processes, but mpi4py finds no MPI library ({reason}): load the MPI of your "
            'site or pip install "mpifed[mpich]"; without a launcher mpifed runs in one process and needs none'
        ) from None
    world = Communicator(size, "Open MPI" if "OMPI_COMM_WORLD_SIZE" in os.environ else "")
    world.guard()
    return world
