"""A sweep as an array job of SLURM: the script, sized by the estimated cost of the points."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from mpifed.core.errors import UserError, reason
from mpifed.core.files import replacing
from mpifed.sweeps.grid import Point, ordered

TASK_SECONDS = 1800  # estimated seconds that a task should take
TASKS = 100  # most tasks by default
SMALL, RANKS = 60, 5  # a point of more estimated seconds gets so many ranks, or as many as its clients can use
MARGIN = 2  # time limit over estimate
SCRIPT = """#!/usr/bin/env bash
# A sweep of mpifed, {points} points divided among the tasks of an array.
#
#   sbatch {path}
#
# Change for your site, here or as options of sbatch:
#   --array        {array}: {tasks} tasks, {array}%4: at most four of them at a time; always from 0 on, in steps of 1
#   --ntasks       ranks of a task, which work on one point together; 1: server and clients in one process
#   --time         wall-clock limit of a task; submit again to run what is left; --partition, --account if needed
#   --mem-per-cpu  memory of a rank; `python -m mpifed show` of an earlier result suggests a value
#   MPIFED_ENV     a file with the modules, VENV, MPIFED_LAUNCH and MPIFED_DATA of your site: see jobs/env.example.sh
#   VENV           the virtual environment with mpifed (default: .venv)
#   MPIFED_LAUNCH  the command that starts ranks with your MPI: mpirun, "srun --mpi=pmix", "srun --mpi=pmi2"
#   MPIFED_DATA    the folder of the data sets, filled once on a login node by `python -m mpifed data get NAME --to DIR`
#SBATCH --job-name=mpifed-sweep
#SBATCH --array={array}
#SBATCH --ntasks={ntasks}
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=1G
#SBATCH --time={time}
#SBATCH --output=mpifed-%A-%a.log

cd {here} || exit
[ -r "${{MPIFED_ENV:=/dev/null}}" ] ||
    {{ echo "MPIFED_ENV=$MPIFED_ENV is wrong: there is no such file" >&2 && exit 2; }}
# shellcheck disable=SC1090
source "$MPIFED_ENV"    # before the next line, which the scripts of some modules do not survive
set -euo pipefail
VENV=${{VENV-.venv}}
# shellcheck disable=SC1091
[ ! -f "$VENV/bin/activate" ] || source "$VENV/bin/activate"
export OMP_NUM_THREADS=${{SLURM_CPUS_PER_TASK:-1}} SRUN_CPUS_PER_TASK=${{SLURM_CPUS_PER_TASK:-1}}
read -ra launch <<< "${{MPIFED_LAUNCH:-mpirun}}"

"${{launch[@]}}" -n "$SLURM_NTASKS" python -m {program} {words} \\
    --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
"""


def write(
    points: Sequence[Point],
    folder: Path,
    words: Sequence[str],
    order: str,
    tasks: int | None = None,
    program: str = "mpifed sweep",
) -> Path:
    """Write sweep.sbatch into ``folder`` and return its path; its tasks call ``python -m program words --part i/n``.

    UserError for a wrong number of tasks, and where the script cannot be written.
    """
    cost, dearest = sum(point.cost for point in points), max(point.cost for point in points)
    n = min(len(points), TASKS, math.ceil(cost / TASK_SECONDS)) if tasks is None else tasks
    if not 1 <= n <= len(points):
        raise UserError(f"--tasks {n} is wrong: it must be between 1 and the {len(points)} points")
    longest = max(sum(point.cost for point in ordered(points, order, f"{i}/{n}")) for i in range(n))
    minutes = 10 * max(1, math.ceil(MARGIN * longest / 600))
    path = folder / "sweep.sbatch"
    text = SCRIPT.format(
        points=len(points),
        tasks=n,
        array=f"0-{n - 1}",
        path=shlex.quote(str(path)),
        here=shlex.quote(os.getcwd()),
        program=program,
        words=shlex.join(words),
        time=f"{minutes // 60:02}:{minutes % 60:02}:00",
        ntasks=min([RANKS, *(1 + (point.config.data.clients or RANKS) for point in points)]) if dearest > SMALL else 1,
    )
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder} is wrong: this folder cannot be created: {reason(error)}") from None
    with replacing(path, True) as part:
        part.write_text(text, "utf-8")
    return path
