"""What started this process: mpirun, srun or no launcher. ``import mpifed`` asks, so this imports nothing at first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpifed.mpi.world import World

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE", "SLURM_STEP_NUM_TASKS")
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "PMIX_RANK", "SLURM_PROCID")


def announced() -> tuple[int | None, int]:
    """How many processes the launcher says it started (None: there is no launcher), and which this one is."""
    sizes = list(filter(None, map(os.environ.get, LAUNCHERS)))
    ranks = list(filter(None, map(os.environ.get, RANKS)))
    size = int(sizes[0]) if sizes else None
    rank = int(ranks[0]) if ranks else 0
    # PMIx launchers set no size; with 1 this process asks MPI, which knows it, and goes on alone where there is none
    if size is None and "PMIX_RANK" in os.environ:
        size = 1
    return size, rank if size is not None else 0


def connect() -> World:
    """The ranks of this run: one where no launcher started this process. UserError where there is no MPI library."""
    from mpifed.core.errors import UserError
    from mpifed.mpi.world import World

    size, _ = announced()
    if size is None:
        return World()
    # imported only under a launcher: importing mpi4py.MPI needs a library, which a run in one process does without
    try:
        from mpifed.mpi.communicator import Communicator
    except (ImportError, RuntimeError) as error:
        if size == 1:
            return World()
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"the launcher started {size} processes, but mpi4py finds no MPI library ({what}): load the MPI of your "
            'site or pip install "mpifed[mpich]"; without a launcher mpifed runs in one process and needs none'
        ) from None
    world = Communicator(size, "Open MPI" if "OMPI_COMM_WORLD_SIZE" in os.environ else "")
    world.guard()
    return world
