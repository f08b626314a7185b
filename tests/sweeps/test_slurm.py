"""Array jobs share the points of a sweep."""

from __future__ import annotations

import subprocess

from tests.helpers.commands import execute, mpirun
from tests.sweeps.conftest import FILES, GRIDS, listed, sweep


def test_the_array_job_shares_the_points(here, capsys):
    sweep(*GRIDS, "--slurm", "--tasks", "2", "-o", "my results")
    assert capsys.readouterr().out == "sbatch 'my results/sweep.sbatch'\n"
    script = here / "my results" / "sweep.sbatch"
    assert listed(here / "my results") == ["sweep.sbatch"]
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    text = script.read_text()
    for word in (
        "#SBATCH --array=0-1\n",
        "#SBATCH --ntasks=1\n",
        "#SBATCH --time=00:10:00\n",
        "MPIFED_DATA",
        "${MPIFED_LAUNCH:-mpirun}",
        '-n "$SLURM_NTASKS" python -m mpifed sweep data.clients=6 ',
        '--part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"',
    ):
        assert word in text
    for task in ("0", "1"):
        done = execute(
            ["bash", script],
            cwd=here.parent,
            MPIFED_LAUNCH=str(mpirun(1)[0]),
            SLURM_NTASKS="1",
            SLURM_ARRAY_TASK_ID=task,
            SLURM_ARRAY_TASK_COUNT="2",
        )
        assert done.code == 0, done.err
        assert "2 of 2 finished" in done.out
    assert listed(here / "my results") == [*FILES, "sweep.sbatch"]
