"""A sweep as an array job of SLURM: the script, from the estimate of what the points cost."""
from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from mpifed.claim import replacing
from mpifed.component import UserError
from mpifed.grid import Point, ordered

TASK_SECONDS = 1800    # what a task is meant to take, by the estimate
TASKS = 100            # most tasks where nothing is said
RANKS = 5              # most ranks of a task
MARGIN = 2             # the limit over the estimate
SCRIPT = """#!/usr/bin/env bash
# A sweep of {points} runs of mpifed as an array of {tasks} tasks on a SLURM cluster.
#
#   sbatch {path}
#
# What is not finished goes on when this is submitted again. Change for your site:
#   --array       the tasks 0 to n − 1 that share the runs, all of them: their number is n; 0-{last}%10 lets ten work at a time
#   --ntasks      ranks of a task: 1 for the server and the others for the clients (at most their number)
#   --time        wall-clock limit of a task; --partition and --account where your site asks for them
#   VENV          the virtual environment that has mpifed; or load modules and activate your own below
#   MPIFED_DATA   the folder of the data sets, filled once on a login node by `python -m mpifed data get NAME --to DIR`
#   MPIFED_LAUNCH how ranks are started: "srun --mpi=pmix", "srun --mpi=pmi2" or "mpirun", as your MPI wants it
#SBATCH --job-name=mpifed-sweep
#SBATCH --array=0-{last}
#SBATCH --ntasks={ntasks}
#SBATCH --cpus-per-task=1
#SBATCH --time={time}
#SBATCH --output=mpifed-%A-%a.log
set -euo pipefail

cd {here}
VENV=${{VENV:-.venv}}
# module load python openmpi
[ -f "$VENV/bin/activate" ] && source "$VENV/bin/activate"
export OMP_NUM_THREADS=1

${{MPIFED_LAUNCH:-mpirun -n $SLURM_NTASKS}} python -m mpifed sweep {words} \\
    --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
"""


def write(points: Sequence[Point], folder: Path, words: Sequence[str], order: str, tasks: int | None = None) -> Path:
    """Write sweep.sbatch into ``folder``, whose tasks call ``sweep words --part i/n``; where it is.

    Raises UserError for a number of tasks that cannot be, and where the script cannot be written.
    """
    cost = sum(point.cost for point in points)
    n = min(len(points), TASKS, math.ceil(cost / TASK_SECONDS)) if tasks is None else tasks
    if not 1 <= n <= len(points):
        raise UserError(f"--tasks {n} is wrong: it must be between 1 and the {len(points)} points")
    longest = max(sum(point.cost for point in ordered(points, order, f"{i}/{n}")) for i in range(n))
    minutes = 10 * max(1, math.ceil(MARGIN * longest / 600))
    path = folder / "sweep.sbatch"
    text = SCRIPT.format(
        points=len(points), tasks=n, last=n - 1, path=shlex.quote(str(path)), here=shlex.quote(os.getcwd()),
        words=shlex.join(words), time=f"{minutes // 60:02}:{minutes % 60:02}:00",
        ntasks=min(RANKS, *(1 + (point.config.data.clients or RANKS) for point in points)))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder} is wrong: this folder cannot be made: {(error.strerror or str(error)).lower()}") from None
    with replacing(path, True) as place:
        place.write_text(text, "utf-8")
    return path
