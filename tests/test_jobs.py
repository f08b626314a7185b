"""The scripts in jobs/ without their batch systems, and the recipes there, which agree with pyproject.toml.

``tests/slurm`` submits the scripts for SLURM. PBS and Flux are played by the variables and the command that they give a
script.
"""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import h5py
import pytest

import mpifed as package
from tests.helpers.commands import ROOT, SETTINGS, execute, mpifed, mpirun

SCRIPTS = sorted(path for path in (ROOT / "jobs").iterdir() if path.suffix in (".sbatch", ".pbs", ".lsf", ".flux"))
RECIPES = ROOT / "jobs" / "recipes"
EASYBUILD = f"mpifed-{package.__version__}-gompi-2025b.eb"
TOML = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = TOML["project"]
CONDA = {"matplotlib-base": "matplotlib"}  # conda-forge's name -> PyPI's, where they differ
STUDY = "data.clients=5 rounds=2 -o out.h5"
scripts = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)


def launcher():
    """The folder of this environment's mpirun and python, first on the path."""
    return {"PATH": f"{Path(mpirun(1)[0]).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}", "VENV": ""}


def playing(folder, **programs):
    """The same, with programs of these lines of bash before them."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / name).chmod(0o755)
    found = launcher()
    return found | {"PATH": f"{folder}:{found['PATH']}"}


def ranks(path):
    with h5py.File(path) as file:
        return file.attrs["status"], file.attrs["ranks"], len(file["rounds/round"]) - 1


@scripts
def test_a_script_is_valid_and_names_what_it_reads_and_a_file_for_the_site_that_is_missing(script, tmp_path):
    text = script.read_text("utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    head = text.partition("\n\n")[0]
    read = set(re.findall(r"\$\{?(MPIFED_\w+|VENV)", text)) | {"MPIFED_ENV", "VENV"}
    assert {name for name in read if name not in head} == set()
    place = {"PBS_O_WORKDIR": str(tmp_path), "SLURM_NTASKS": "1", "SLURM_JOB_ID": "1"}
    done = execute(["bash", script], cwd=tmp_path, MPIFED_ENV="nowhere.sh", **place)
    assert (done.code, done.err) == (2, "MPIFED_ENV=nowhere.sh is wrong: there is no such file\n")
    assert execute(["bash", "-n", script]).code == 0
    if shutil.which("shellcheck"):
        assert execute(["shellcheck", script]).out == ""


def test_the_site_says_everything_in_one_file(tmp_path):
    """Modules that leave variables unset, launcher and data; threads as the job has them."""
    (tmp_path / "env.sh").write_text(
        ': "$NEVER_SET"\nexport MPIFED_LAUNCH="bash launch" MPIFED_DATA=/data VENV=nowhere\nfalse\n'
    )
    (tmp_path / "launch").write_text('echo "$OMP_NUM_THREADS $SRUN_CPUS_PER_TASK $MPIFED_DATA: $*"\n')
    job = {"SLURM_NTASKS": "3", "SLURM_CPUS_PER_TASK": "4", "SLURM_JOB_ID": "7"}
    done = execute(["bash", ROOT / "jobs/single.sbatch", "study.toml"], cwd=tmp_path, MPIFED_ENV="env.sh", **job)
    assert (done.code, done.out) == (0, "4 4 /data: -n 3 python -m mpifed run study.toml\n"), done.err


def test_the_job_of_gpus_asks_for_them_and_the_study_has_the_last_word(tmp_path):
    (tmp_path / "launch").write_text('echo "$OMP_NUM_THREADS: $*"\n')
    job = {"SLURM_NTASKS": "9", "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_ID": "7", "MPIFED_LAUNCH": "bash launch"}
    words = ["study.toml", "problem.device=cpu"]
    for asks, asked in (("problem.device=cuda", {}), ("kernels=cuda", {"MPIFED_DEVICE": "kernels=cuda"})):
        done = execute(["bash", ROOT / "jobs/gpu.sbatch", *words], cwd=tmp_path, **job, **asked)
        assert (done.code, done.out) == (0, f"2: -n 9 python -m mpifed run {asks} {' '.join(words)}\n"), done.err


def test_the_example_of_such_a_file_can_be_sourced(tmp_path):
    example = ROOT / "jobs" / "env.example.sh"
    text = re.sub(r"^# (?=export )", "", example.read_text("utf-8"), flags=re.M)
    named = {"VENV", "MPIFED_LAUNCH", "MPI4PY_LIBMPI", "MPIFED_DATA"}
    assert set(re.findall(r"^(?:export )?(\w+)=", text, re.M)) == named
    (tmp_path / "env.sh").write_text(text)
    done = execute(["bash", "-euc", f'source {tmp_path}/env.sh; echo "$VENV $MPIFED_LAUNCH"'], HOME="/home/x")
    assert done.out == "/home/x/mpifed/.venv srun --mpi=pmix\n"


@pytest.mark.parametrize("ranks_started", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_pbs_one_rank_for_each_line_of_its_file_of_nodes(ranks_started, tmp_path):
    """With an mpirun that starts one process, or with the real one."""
    (tmp_path / "nodes").write_text("localhost\n" * 3)
    played = {"mpirun": 'echo "$*" > launched; shift 4; exec "$@"'} if ranks_started == 1 else {}
    job = {"PBS_O_WORKDIR": str(tmp_path), "PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_JOBID": "12.server"}
    words = f"{STUDY} algorithm='{{name = \"fedavg\", k0 = 2}}'"
    script = ["bash", ROOT / "jobs" / "single.pbs"]
    done = execute(script, cwd=Path("/"), MPIFED_ARGS=words, **job, **playing(tmp_path, **played))
    assert done.code == 0, done
    assert ranks(tmp_path / "out.h5") == ("finished", ranks_started, 2)
    if played:
        launched = (tmp_path / "launched").read_text()
        assert launched.startswith(f"--hostfile {tmp_path}/nodes -n 3 python -m mpifed run data.clients=5 ")


def test_lsf_one_rank_for_each_slot_and_a_checkpoint_at_its_limit(tmp_path):
    job = {"LSB_DJOB_NUMPROC": "2", "LSB_JOBID": "12", **launcher()}
    words = "algorithm=fedavg data.clients=5 rounds=100000 stop.gradient=0.0 -q -o long.h5"
    variables = {"MPIFED_ARGS": words, "PYTHONPATH": str(ROOT), **job}
    stopped(["bash", ROOT / "jobs" / "single.lsf"], tmp_path / "long.h5", signal.SIGUSR2, tmp_path, **variables)
    assert ranks(tmp_path / "long.h5")[:2] == ("stopped", 2)


def test_flux_one_rank_for_each_core(tmp_path):
    variables = playing(tmp_path, flux='[ "$1" != resource ] || { echo 3; exit; }\necho "$@"')
    script = ["bash", ROOT / "jobs" / "single.flux", "rounds=1"]
    for given, said in (
        ({}, "run -n 3 python -m mpifed run rounds=1\n"),
        ({"MPIFED_RANKS": "2", "MPIFED_LAUNCH": "echo on"}, "on -n 2 python -m mpifed run rounds=1\n"),
    ):
        assert execute(script, cwd=tmp_path, **variables, **given) == (0, said, "")


def stopped(command, result, name, tmp_path, **variables):
    """Start ``command``, send it the signal ``name`` once ``result`` has rounds, and wait for its end."""
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **SETTINGS, **variables}) as job:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not begun(result):
            time.sleep(0.05)
        job.send_signal(name)
        job.wait(60)


def begun(path):
    try:
        with h5py.File(path, locking=False) as file:
            return len(file["rounds/round"]) > 1
    except (OSError, KeyError):
        return False


@pytest.mark.parametrize(
    ("fails", "state", "requeued", "said"),
    [
        (1, "COMPLETED TimeLimit", True, "naps\n"),
        (1, "COMPLETING None", False, "naps\n"),
        (2, "", True, "naps\nsqueue fails twice: if 7 was cancelled it comes back all the same, and scancel ends it\n"),
    ],
)
def test_a_job_that_is_stopped_comes_back_unless_it_was_cancelled_also_where_squeue_fails(
    fails, state, requeued, said, tmp_path
):
    package.run({"data": {"clients": 3, "features": 2}, "rounds": 0}, path=tmp_path / "out.h5", progress=None)
    with h5py.File(tmp_path / "out.h5", "a") as file:
        file.attrs.modify("status", "stopped")
    programs = {
        "scontrol": 'echo "$*" >> queue',
        "sleep": "echo naps >&2",
        "squeue": f'echo >> calls; [ "$(wc -l < calls)" -gt {fails} ] && echo "{state}"',
        "launch": "exit 0",
    } | ({} if state == "COMPLETED TimeLimit" else {"python": "echo stopped"})  # once the real one reads the file
    variables = playing(tmp_path, **programs)
    variables |= {"SLURM_NTASKS": "2", "SLURM_JOB_ID": "7", "MPIFED_LAUNCH": "launch"}
    done = execute(["bash", ROOT / "jobs" / "restart.sbatch", "-o", "out.h5"], cwd=tmp_path, **variables)
    assert (done.code, done.err) == (0 if requeued else 1, said)
    assert (tmp_path / "queue").exists() == requeued
    assert not requeued or (tmp_path / "queue").read_text() == "requeue 7\n"


LONG = ["algorithm=fedavg", "data.clients=5", "data.features=5", "rounds=4000", "stop.gradient=0.0"]
LONG += ["--grid", "seed=0:2", "-o", "out"]


@pytest.mark.slow
@pytest.mark.parametrize("written", [False, True], ids=["array", "written by sweep"])
@pytest.mark.parametrize(
    ("name", "queue"), [(signal.SIGUSR1, "requeue 7\n"), (signal.SIGTERM, "")], ids=["limit", "preempted"]
)
def test_a_task_of_an_array_that_is_stopped_writes_checkpoints_and_goes_on(written, name, queue, tmp_path):
    variables = playing(tmp_path, scontrol='echo "$*" >> queue') | {"PYTHONPATH": str(ROOT), "SLURM_JOB_ID": "7"}
    variables |= {"SLURM_NTASKS": "1", "SLURM_CPUS_PER_TASK": "2", "SLURM_CPUS_ON_NODE": "2"}
    variables |= {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "1"}
    command = ["bash", ROOT / "jobs" / "array.sbatch", *LONG]
    if written:
        assert mpifed("sweep", *LONG, "--slurm", "--tasks", "1", cwd=tmp_path).code == 0
        command = ["bash", tmp_path / "out" / "sweep.sbatch"]
    results = [tmp_path / "out" / f"seed={seed}.h5" for seed in (0, 1)]
    stopped(command, results[0], name, tmp_path, **variables)
    assert ranks(results[0])[0] == "stopped"
    assert ((tmp_path / "queue").read_text() if queue else "") == queue
    done = execute(command, 120, tmp_path, **variables, SLURM_RESTART_COUNT="1")
    assert done.code == 0, done
    assert [ranks(path)[0] for path in results] == ["finished"] * 2


def test_scripts_are_copied_once_and_as_they_are(tmp_path):
    done = mpifed("jobs", "--to", tmp_path)
    assert done.code == 0, done.err
    for path in (ROOT / "jobs").rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(ROOT)
            assert (copy.read_bytes(), os.access(copy, os.X_OK)) == (path.read_bytes(), os.access(path, os.X_OK))
    (tmp_path / "jobs" / "array.sbatch").write_text("mine")
    for words, said in (
        (["--to", tmp_path], "exists; say --force to overwrite it or --to for another folder"),
        (["--to", tmp_path / "nowhere"], "is wrong: there is no such folder"),
    ):
        done = mpifed("jobs", *words)
        assert (done.code, said in done.err) == (2, True), done.err
    assert (tmp_path / "jobs" / "array.sbatch").read_text() == "mine"
    assert mpifed("jobs", "--to", tmp_path, "--force").code == 0
    assert (tmp_path / "jobs" / "array.sbatch").read_text() != "mine"


def test_the_pages_on_clusters_name_every_script_and_recipe():
    names = ("clusters.md", "installing-on-clusters.md")
    page = "".join((ROOT / "docs" / name).read_text("utf-8") for name in names)
    recipes = [path for path in RECIPES.rglob("*") if path.is_file()]
    for path in (*SCRIPTS, *(ROOT / "jobs").glob("*.sh"), *recipes):
        assert re.search(rf"[`/]{re.escape(path.name)}\b", page), f"{path.name} is in neither page"


# recipes


def required(*extras):
    """Name -> lowest version of the dependencies of mpifed with these extras, and of its build."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    return dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", text).groups() for text in texts)


PYTHON = {"python": PROJECT["requires-python"].removeprefix(">=")}
BUILD = dict([TOML["build-system"]["requires"][0].split(">=")])


def test_conda_has_the_dependencies_of_the_package():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((RECIPES / "environment.yml").read_text("utf-8"))
    assert (found["name"], found["channels"]) == ("mpifed", ["conda-forge"])
    versions = dict(re.fullmatch(r"([\w-]+)(?:>=([\d.]+))?", text).groups() for text in found["dependencies"])
    versions = {CONDA.get(name, name): version for name, version in versions.items()}
    assert versions == PYTHON | {"pip": None} | BUILD | required("mpich", "data", "plot")
    recipe = yaml.safe_load((RECIPES / "recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == package.__version__
    assert recipe["build"]["python"]["entry_points"] == [f"mpifed = {PROJECT['scripts']['mpifed']}"]
    assert dict(text.split(" >=") for text in recipe["requirements"]["run"]) == PYTHON | required()
    assert f"setuptools >={BUILD['setuptools']}" in recipe["requirements"]["host"]


def spack():
    """The class of Spack's recipe, and the calls in it, those within ``with`` too: (name, first argument, keywords)."""
    tree = ast.parse((RECIPES / "package.py").read_text("utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    calls = [node.value for node in ast.walk(found) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return found, [
        (call.func.id, call.args[0].value, {word.arg: ast.literal_eval(word.value) for word in call.keywords})
        for call in calls
    ]


def test_spack_has_the_dependencies_of_the_package():
    found, calls = spack()
    assert (found.name, found.bases[0].id) == ("PyMpifed", "PythonPackage")
    needs = [(text, words.get("when")) for name, text, words in calls if name == "depends_on"]
    versions = {
        when: dict(re.fullmatch(r"(?:py-)?([\w-]+)@([\d.]+):", text).groups() for text, also in needs if also == when)
        for when in (None, "+plot")
    }
    assert versions[None] == PYTHON | BUILD | required()
    assert versions["+plot"] == {name: version for name, version in required("plot").items() if name not in required()}
    assert ("license", PROJECT["license"], {}) in calls


def test_easybuild_has_the_dependencies_of_the_package():
    known = {}
    exec((RECIPES / EASYBUILD).read_text("utf-8"), known)
    assert (known["name"], known["version"]) == ("mpifed", package.__version__)
    given = dict(known["dependencies"]) | {name: version for name, version, _ in known["exts_list"]}
    needed = {"Python": PYTHON["python"], **required(), "mpifed": package.__version__}
    assert given.keys() == needed.keys()
    for name, least in needed.items():
        assert [*map(int, given[name].split("."))] >= [*map(int, least.split("."))], name


MODULES = """
proc module-whatis {text} {}
proc conflict {name} {}
proc prereq {name} {}
proc setenv {name value} { set ::env($name) $value }
proc prepend-path {name value} { set ::env($name) $value:$::env($name) }
"""


def test_the_modulefile_leads_to_the_environment(tmp_path):
    if not shutil.which("tclsh"):
        pytest.skip("tclsh is not there")
    module = (RECIPES / "mpifed.tcl").read_text("utf-8")
    assert module.startswith("#%Module")
    assert f"mpifed {package.__version__}:" in module
    (tmp_path / "played.tcl").write_text(MODULES + module + 'puts "$env(PATH) $env(VIRTUAL_ENV)"\n')
    done = execute([shutil.which("tclsh"), tmp_path / "played.tcl"], PATH="/bin")
    root = f"/opt/apps/mpifed/{package.__version__}"
    assert (done.code, done.out) == (0, f"{root}/bin:/bin {root}\n"), done.err


def sections():
    """Name -> text of the sections of Apptainer's recipe, and the head under "head"."""
    head, *parts = re.split(r"^%(\w+)\n", (RECIPES / "mpifed.def").read_text("utf-8"), flags=re.M)
    return {"head": head, **dict(zip(parts[::2], parts[1::2], strict=True))}


def test_the_container_is_built_from_files_that_are_there():
    found = sections()
    assert found["head"].startswith("Bootstrap: docker\nFrom: ")
    for line in found["files"].split("\n"):
        if line.strip():
            source, target = line.split()
            assert (ROOT / source).exists(), source
            assert target == f"/opt/mpifed/source/{source}"
    extras = re.search(r'"/opt/mpifed/source\[([\w,]+)\]"', found["post"])[1].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
    assert not {"mpich", "openmpi"} & set(extras)


def test_the_parts_of_the_container_are_valid_for_its_shell(tmp_path):
    for name in ("post", "environment", "runscript", "test"):
        (tmp_path / "part.sh").write_text("#!/bin/sh\n" + sections()[name])
        assert execute(["sh", "-n", tmp_path / "part.sh"]).code == 0
        if shutil.which("shellcheck"):
            assert execute(["shellcheck", tmp_path / "part.sh"]).out == ""


def test_python_in_the_container_gets_the_host_mpi(tmp_path):
    said = "$APPTAINERENV_MPI4PY_LIBMPI $APPTAINERENV_LD_LIBRARY_PATH"
    playing(tmp_path, apptainer=f'echo "$*"\necho "{said}"')
    place = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/fabric"}
    command = [RECIPES / "bin" / "python", "-m", "mpifed", "--version"]
    done = execute(command, MPIFED_IMAGE="m.sif", MPIFED_HOST_MPI="/opt/mpi", **place)
    assert done.out.splitlines() == [
        "exec --bind /opt/mpi m.sif python -m mpifed --version",
        "/opt/mpi/lib/libmpi.so /opt/mpi/lib:/opt/fabric",
    ]
    done = execute(command, MPIFED_HOST_MPI="/opt/mpi", **place)
    assert done.code != 0
    assert "MPIFED_IMAGE: is the file that apptainer built" in done.err
