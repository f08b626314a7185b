"""Array jobs share the points of a sweep."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpifed as package
from mpifed.sweeps.grid import points
from mpifed.sweeps.slurm import ArraySize, TaskShape, plan_tasks, task_seconds
from tests.helpers.commands import execute, mpirun
from tests.sweeps.conftest import FILES, GRIDS, SMALL, listed, sweep


def test_the_array_job_is_written(here, capsys):
    sweep(*GRIDS, "--slurm", "--tasks", "2", "-o", "my results")
    assert capsys.readouterr().out == "sbatch 'my results/sweep.sbatch'\n"
    script = here / "my results" / "sweep.sbatch"
    assert listed(here / "my results") == ["sweep.sbatch"]
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    text = script.read_text()
    for word in (
        "#SBATCH --array=0-1\n",
        "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n",
        "#SBATCH --time=00:10:00\n",
        "MPIFED_DATA",
        "${MPIFED_LAUNCH:-mpirun}",
        "python -m mpifed sweep data.clients=6 ",
        '--part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"',
        '--jobs "${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}"',
    ):
        assert word in text


@pytest.mark.slow
def test_the_array_job_shares_the_points(here):
    sweep(*GRIDS, "--slurm", "--tasks", "2", "-o", "my results")
    script = here / "my results" / "sweep.sbatch"
    for task, ranks in (("0", "1"), ("1", "2")):
        job = {"SLURM_NTASKS": ranks, "SLURM_CPUS_PER_TASK": "2", "SLURM_ARRAY_TASK_ID": task}
        job |= {"SLURM_ARRAY_TASK_COUNT": "2", "MPIFED_LAUNCH": str(mpirun(1)[0])}
        job["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the script starts python
        done = execute(["bash", script], cwd=here.parent, **job)
        assert done.code == 0, done.err
        assert "2 of 2 finished" in done.out
    assert listed(here / "my results") == [*FILES, "sweep.sbatch"]
    assert [package.load(here / "my results" / name).attrs["ranks"] for name in FILES] == [1, 2, 1, 2]


def written(here, *words):
    """The lines of the script that ask for something, and the last lines."""
    sweep(*GRIDS, "--slurm", *words)
    lines = (here / "results" / "sweep.sbatch").read_text().splitlines()
    return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]


def test_a_task_gets_a_core_for_each_small_point_or_what_is_asked_for(here):
    assert "--cpus-per-task=4" in written(here)
    assert "--cpus-per-task=16" in written(here, "-j", "16")
    whole = written(here, "--whole-node")
    assert {"--ntasks=1", "--exclusive", "--mem=0"} <= set(whole)
    assert not any(line.startswith("--cpus-per-task") for line in whole)
    groups = written(here, "--each", "1")
    assert {"--ntasks=8", "--cpus-per-task=1"} <= set(groups)
    assert "--each=1" in (here / "results" / "sweep.sbatch").read_text()


def test_many_small_points_fill_cores_and_large_ones_get_ranks():
    (point,) = points({}, SMALL, ["seed=0"])
    small = [point._replace(cost=50.0)] * 1000
    n, shape = plan_tasks(small, ArraySize())
    assert (n, shape) == (4, TaskShape(1, 8, 8))
    assert max(task_seconds(small[i::n], shape.lanes) for i in range(n)) < 1800
    large = [point._replace(cost=3000.0) for point in small[:10]]
    assert plan_tasks(large, ArraySize()) == (10, TaskShape(5, 1, 1))
    assert plan_tasks(large, ArraySize(jobs=4)) == (5, TaskShape(1, 4, 4))
    assert plan_tasks(large, ArraySize(each=2)) == (3, TaskShape(12, 1, 4))
