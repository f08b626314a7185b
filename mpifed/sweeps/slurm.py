"""A sweep as an array job of SLURM: the script, sized by the estimated cost of the points."""

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mpifed.core.errors import UserError
from mpifed.core.files import replace_file
from mpifed.sweeps.cost import OFF, estimate_memory
from mpifed.sweeps.grid import Point, order_points
from mpifed.sweeps.runner import make_folder

TASK_SECONDS = 1800  # target of the estimated seconds of a task
TASKS = 100  # most tasks by default
SMALL = 60  # estimated seconds of a point for which one core is enough
RANKS = 5  # of a larger point, or as many as its clients can use
CORES = 8  # most cores of a task by default, each with a small point
MARGIN = OFF  # time limit divided by the estimate
JOBS = {"mpifed sweep": "--jobs", "benchmarks": "--processes"}  # a program's option for points that run at a time
SCRIPT = """#!/usr/bin/env bash
# A sweep of mpifed, {points} points divided among the tasks of an array.
#
#   sbatch {path}
#
# Change for your site, here or as options of sbatch:
#   --array          {array}: {tasks} tasks, {array}%4: at most four of them at a time; always from 0 on, in steps of 1
#   --cpus-per-task  points that run at a time, each on a core; --exclusive in its place: as many as the node has cores
#   --ntasks         above 1, with --cpus-per-task=1: ranks of a task, which work on one point together
#   --time           wall-clock limit of a task, {margin} times a rough estimate; submit again to run what is left
#   --signal         B:USR1@120 stops a task 120 s before its limit, with checkpoints, and puts it back into the queue,
#                    at most MPIFED_REQUEUE times (20); --requeue brings a preempted task back, where the site allows it
#   --mem-per-cpu    {memory}
#   --partition, --account if needed
#   MPIFED_ENV       a file with the modules, VENV, MPIFED_LAUNCH and MPIFED_DATA of your site
#   VENV             the virtual environment that has mpifed (default: .venv)
#   MPIFED_LAUNCH    the command that starts ranks with your MPI: mpirun, "srun --mpi=pmix", "srun --mpi=pmi2"
#   MPIFED_DATA      the folder of the data sets, filled once on a login node: `python -m mpifed data get NAME --to DIR`
#SBATCH --job-name=mpifed-sweep
#SBATCH --array={array}
#SBATCH --ntasks={ntasks}
{cores}
#SBATCH --time={time}
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=mpifed-%A-%a.log

[ -r "${{MPIFED_ENV:=/dev/null}}" ] || {{ echo "MPIFED_ENV=$MPIFED_ENV is wrong: no such file" >&2 && exit 2; }}
# shellcheck disable=SC1090
source "$MPIFED_ENV"    # before the next line, which the scripts of some modules do not survive
set -euo pipefail
cd {here}
VENV=${{VENV-.venv}}
# shellcheck disable=SC1091
[ ! -f "$VENV/bin/activate" ] || source "$VENV/bin/activate"
export OMP_NUM_THREADS=1
read -ra launch <<< "${{MPIFED_LAUNCH:-mpirun}}"

sweep=(python -m {program} {words} \\
    --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT")
if [ "$SLURM_NTASKS" -gt 1 ]; then
    sweep=("${{launch[@]}}" -n "$SLURM_NTASKS" "${{sweep[@]}}")
else
    sweep+=({jobs} "${{SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}}")
fi

run='' stop_signal=''
forward() {{    # pass a signal on: points that run finish their round and write a checkpoint
    stop_signal=$1
    [ -z "$run" ] || kill -s "$1" "$run" || true
}}
trap 'forward USR1' USR1
trap 'forward TERM' TERM
"${{sweep[@]}}" &
run=$!
while kill -0 "$run" 2> /dev/null; do wait "$run" || true; done
code=0
wait "$run" || code=$?
if [ "$stop_signal" = USR1 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt "${{MPIFED_REQUEUE:-20}}" ]; then
    scontrol requeue "$SLURM_JOB_ID"    # the task goes on with the points that are left
fi
exit "$code"
"""


class ArraySize(NamedTuple):
    """The size of an array job: tasks, and for each task the points that run at a time or groups of ranks.

    ``each``: ranks for clients in a group, beside one for the server; ``whole_node``: a node a task. None: from the
    costs.
    """

    tasks: int | None = None
    jobs: int | None = None
    each: int | None = None
    whole_node: bool = False


class TaskShape(NamedTuple):
    """The resources of a task of the array: ranks, cores for each of them, and the points that run at a time."""

    ranks: int
    cores: int
    lanes: int


def write_script(
    points: Sequence[Point], home: Path, args: Sequence[str], order: str, size: ArraySize, program: str = "mpifed sweep"
) -> Path:
    """Write sweep.sbatch into ``home`` and return its path; its tasks call ``python -m program args --part i/n``.

    Raise UserError for a wrong number of tasks, and if the script cannot be written.
    """
    refuse_line_breaks([str(home), *args])
    n, shape = plan_tasks(points, size)
    # divided with the same function as in the tasks themselves; the longest part sets the limit of all
    parts = [order_points(points, order, f"{i}/{n}") for i in range(n)]
    seconds = max(task_seconds(part, shape.lanes) for part in parts)
    # multiples of 10 minutes: shorter limits gain nothing with a scheduler, and loading libraries takes time
    minutes = 10 * max(1, math.ceil(MARGIN * seconds / 600))
    path = home / "sweep.sbatch"
    memory_text, memory_lines = memory_request(points, shape)
    cores = [f"#SBATCH --cpus-per-task={shape.cores}", *memory_lines]
    if size.whole_node:
        cores = ["#SBATCH --exclusive", "#SBATCH --mem=0"]
    text = SCRIPT.format(
        points=len(points),
        tasks=n,
        array=f"0-{n - 1}",
        path=shlex.quote(str(path)),
        here=shlex.quote(os.getcwd()),
        program=program,
        words=shlex.join(args),
        time=f"{minutes // 60:02}:{minutes % 60:02}:00",
        ntasks=shape.ranks,
        cores="\n".join(cores),
        memory=memory_text,
        margin=MARGIN,
        jobs=JOBS[program],
    )
    make_folder(home)
    with replace_file(path, True) as part:
        part.write_text(text, "utf-8")
    return path


def refuse_line_breaks(words: Sequence[str]) -> None:
    """Raise UserError if a word has a line break, which would end a comment of the script and start a command."""
    # quoting helps in commands, but not in #SBATCH lines and comments, which end with their line
    for word in words:
        if word.splitlines() not in ([], [word]):
            raise UserError(f"{word!r} is wrong: with --slurm, no word may have a line break")


def plan_tasks(points: Sequence[Point], size: ArraySize) -> tuple[int, TaskShape]:
    """Return the number of tasks and the resources of each; raise UserError for a wrong number."""
    cost = sum(point.cost for point in points)
    dearest = max(point.cost for point in points)
    lanes = size.jobs or (CORES if dearest <= SMALL or size.each is not None else 1)
    n = min(len(points), TASKS, math.ceil(cost / TASK_SECONDS / lanes)) if size.tasks is None else size.tasks
    if not 1 <= n <= len(points):
        raise UserError(f"--tasks {n} is wrong: it must be between 1 and the {len(points)} points")
    lanes = size.jobs or min(lanes, math.ceil(len(points) / n))
    if size.each is not None:
        return n, TaskShape((size.each + 1) * lanes, 1, lanes)
    if size.jobs or dearest <= SMALL:
        return n, TaskShape(1, lanes, lanes)
    return n, TaskShape(min([RANKS, *(1 + (point.config.data.clients or RANKS) for point in points)]), 1, 1)


def task_seconds(part: Sequence[Point], lanes: int) -> float:
    """Return a rough upper bound of the seconds that a task takes."""
    # Graham's bound: all lanes are busy until the last point begins, and then it takes its own time
    return sum(point.cost for point in part) / lanes + (max(point.cost for point in part) if lanes > 1 else 0.0)


def memory_request(points: Sequence[Point], shape: TaskShape) -> tuple[str, list[str]]:
    """Return the script's sentence on memory, and the line that requests it if all sizes are known.

    A core has its own point or, in a group of ranks, one of the hosts that share the samples, not quite equally.
    """
    sizes = [estimate_memory(point.config) for point in points]
    unknown = next((point for point, size in zip(points, sizes, strict=True) if size is None), None)
    if unknown is not None:
        data = unknown.config.data.label()
        return f"not asked for, because the size of data {data!r} is known when it is loaded; default: your site's", []
    # hosts have whole clients of different sizes: twice an equal share is rarely exceeded
    fraction = 1.0 if shape.lanes == shape.ranks * shape.cores else 2 / max(2, shape.ranks // shape.lanes - 1)
    bytes_needed = max(process + fraction * shared for process, shared in filter(None, sizes))
    return "memory of a core, from the sizes of samples, states and matrices", [
        f"#SBATCH --mem-per-cpu={100 * math.ceil(bytes_needed / 1e8)}M"
    ]
