"""The scripts in jobs/ without their batch systems: what all of them have, and those that no test submits.

``tests/slurm`` submits the scripts for SLURM. PBS and Flux are played by the variables and the command that they give a
script.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import h5py
import pytest

from tests.helpers.commands import ROOT, execute, mpirun

SCRIPTS = sorted(path for path in (ROOT / "jobs").iterdir() if path.suffix in (".sbatch", ".pbs", ".flux"))
STUDY = "data.clients=5 rounds=2 -o out.h5"
scripts = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)


def launcher():
    """The folder of this environment's mpirun and python, first on the path."""
    return {"PATH": f"{Path(mpirun(1)[0]).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}", "VENV": ""}


def ranks(path):
    with h5py.File(path) as file:
        return file.attrs["status"], file.attrs["ranks"], len(file["rounds/round"]) - 1


@scripts
def test_a_script_names_what_it_reads_and_a_file_for_the_site_that_is_missing(script, tmp_path):
    text = script.read_text("utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    head = text.partition("\n\n")[0]
    read = set(re.findall(r"\$\{?(MPIFED_\w+|VENV)", text)) | {"MPIFED_ENV", "VENV"}
    assert {name for name in read if name not in head} == set()
    place = {"PBS_O_WORKDIR": str(tmp_path), "SLURM_NTASKS": "1", "SLURM_JOB_ID": "1"}
    done = execute(["bash", script], cwd=tmp_path, MPIFED_ENV="nowhere.sh", **place)
    assert (done.code, done.err) == (2, "MPIFED_ENV=nowhere.sh is wrong: there is no such file\n")


@scripts
def test_a_script_is_valid_and_shellcheck_has_no_objections(script):
    assert execute(["bash", "-n", script]).code == 0
    if shutil.which("shellcheck") is None:
        pytest.skip("there is no shellcheck")
    done = execute(["shellcheck", script])
    assert (done.code, done.out) == (0, "")


def test_the_site_says_everything_in_one_file(tmp_path):
    """Modules that leave variables unset, launcher and data; threads as the job has them."""
    (tmp_path / "env.sh").write_text(
        ': "$NEVER_SET"\nexport MPIFED_LAUNCH="bash launch" MPIFED_DATA=/data VENV=nowhere\nfalse\n'
    )
    (tmp_path / "launch").write_text('echo "$OMP_NUM_THREADS $SRUN_CPUS_PER_TASK $MPIFED_DATA: $*"\n')
    job = {"SLURM_NTASKS": "3", "SLURM_CPUS_PER_TASK": "4", "SLURM_JOB_ID": "7"}
    done = execute(["bash", ROOT / "jobs/single.sbatch", "study.toml"], cwd=tmp_path, MPIFED_ENV="env.sh", **job)
    assert (done.code, done.out) == (0, "4 4 /data: -n 3 python -m mpifed run study.toml\n"), done.err


def test_the_example_of_such_a_file_can_be_sourced(tmp_path):
    example = ROOT / "jobs" / "env.example.sh"
    text = re.sub(r"^# (?=export )", "", example.read_text("utf-8"), flags=re.M)
    assert set(re.findall(r"^(?:export )?(\w+)=", text, re.M)) == {
        "VENV",
        "MPIFED_LAUNCH",
        "MPI4PY_LIBMPI",
        "MPIFED_DATA",
    }
    (tmp_path / "env.sh").write_text(text)
    done = execute(["bash", "-euc", f'source {tmp_path}/env.sh; echo "$VENV $MPIFED_LAUNCH"'], HOME="/home/x")
    assert done.out == "/home/x/mpifed/.venv srun --mpi=pmix\n"


def test_pbs_one_rank_for_each_line_of_its_file_of_nodes(tmp_path):
    (tmp_path / "nodes").write_text("localhost\n" * 3)
    job = {"PBS_O_WORKDIR": str(tmp_path), "PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_JOBID": "12.server"}
    words = f"{STUDY} algorithm='{{name = \"fedavg\", k0 = 2}}'"
    script = ["bash", ROOT / "jobs" / "single.pbs"]
    done = execute(script, cwd=Path("/"), MPIFED_ARGS=words, **job, **launcher())
    assert done.code == 0, done
    assert ranks(tmp_path / "out.h5") == ("finished", 3, 2)


def test_flux_one_rank_for_each_core(tmp_path):
    (tmp_path / "flux").write_text(
        '#!/usr/bin/env bash\n[ "$1" != resource ] || { echo 3; exit; }\nshift\nexec mpirun "$@"\n'
    )
    (tmp_path / "flux").chmod(0o755)
    variables = launcher()
    variables["PATH"] = f"{tmp_path}:{variables['PATH']}"
    script = ["bash", ROOT / "jobs" / "single.flux"]
    done = execute([*script, *STUDY.split()], cwd=tmp_path, **variables)
    assert done.code == 0, done
    assert ranks(tmp_path / "out.h5") == ("finished", 3, 2)
    done = execute([*script, "rounds=1"], cwd=tmp_path, MPIFED_RANKS="2", MPIFED_LAUNCH="echo run", **variables)
    assert done.out == "run -n 2 python -m mpifed run rounds=1\n"


def test_the_page_on_clusters_names_every_script_and_recipe():
    page = (ROOT / "docs" / "clusters.md").read_text("utf-8")
    recipes = [path for path in (ROOT / "jobs" / "recipes").rglob("*") if path.is_file()]
    for path in (*SCRIPTS, *(ROOT / "jobs").glob("*.sh"), *recipes):
        assert re.search(rf"[`/]{re.escape(path.name)}\b", page), f"{path.name} is not in docs/clusters.md"
