"""Every script in jobs/ is submitted to a real SLURM, and what it wrote is checked.

    python -m pytest -m slurm

uses the SLURM that answers (--basetemp must be a folder that all its nodes see). Where there is none it starts one of
two emulated nodes and ends it: as root, where the packages of ``tests/slurm/slurm-up.sh --install`` are.
"""

import csv
import importlib.util
import re
import shlex
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

import h5py
import pytest

from benchmarks import bench
from benchmarks.grid import runs
from mpifed.core.errors import UserError
from mpifed.mpi.world import library_version
from mpifed.report import names
from mpifed.sweeps.grid import points
from tests.helpers.commands import ROOT, execute, mpifed
from tests.helpers.killed_runs import content

from .cluster import running

pytestmark = pytest.mark.slurm
JOBS = ROOT / "jobs"
SRUN = "srun --mpi=pmix" if "Open MPI" in library_version() else "srun --mpi=pmi2"
MPIRUN = "mpirun --bind-to none" if "Open MPI" in library_version() else "mpirun"
STUDY = ["algorithm=fedavg", "data.clients=13", "stop.gradient=0.0"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm")) as found:
        yield found


def whole(cluster, rounds):
    """The content of an uninterrupted run of so many rounds of STUDY."""
    path = cluster.folder / "whole.h5"
    done = mpifed("run", *STUDY, f"rounds={rounds}", "-q", "--force", "-o", path)
    assert done.code == 0, done.err
    return content(path)


def telling(cluster, name, words):
    """A launcher of ranks that does ``words`` of bash with -n N python -m mpifed …"""
    script = cluster.folder / name
    script.write_text(f"#!/usr/bin/env bash\n{words}\n")
    script.chmod(0o755)
    return str(script)


SLOW = """
import functools, sys, time
from mpifed import __main__
from mpifed.algorithms.fedavg import FedAvg
update = FedAvg.update
@functools.wraps(update)
def slow(self, *args):
    time.sleep(0.1)
    return update(self, *args)
FedAvg.update = slow
sys.exit(__main__.entry())
"""


def slowly(cluster, launcher):
    """A launcher of ranks whose clients take 0.1 s for a local step."""
    program = cluster.folder / "slow.py"
    program.write_text(SLOW)
    words = f'n=$2\nshift 5\nexec {launcher} -n "$n" {sys.executable} {program} "$@"'
    return telling(cluster, f"slowly-{launcher.split()[0]}", words)


def rounds(path):
    """How many rounds a result file has while it is written; 0 where it is not there."""
    try:
        with h5py.File(path, locking=False) as file:
            return len(file["rounds/round"]) - 1
    except (OSError, KeyError):
        return 0


@pytest.mark.parametrize("launcher", [MPIRUN, SRUN])
def test_single_one_world_over_two_nodes(cluster, launcher):
    path = cluster.folder / f"single-{launcher.split()[0]}.h5"
    words = ["--nodes=2", "--ntasks=4", "--ntasks-per-node=2", JOBS / "single.sbatch", *STUDY, "rounds=5"]
    done = cluster.run(*words, "-o", path, MPIFED_LAUNCH=launcher)
    assert done.state == "COMPLETED", done.log
    assert f"written to {path}" in done.log
    machines = cluster.ask("srun", "--nodes=2", "--ntasks=2", "hostname").split()
    with h5py.File(path) as file:
        assert file.attrs["ranks"] == 4
        assert (file["ranks/clients"][0], sum(file["ranks/clients"])) == (0, 13)
        hosts = file["ranks/hostname"].asstr()[()]
    assert len(hosts) == 4
    assert len(set(hosts)) == len(set(machines))
    assert content(path) == whole(cluster, 5)


def test_single_refuses_a_launcher_of_another_library(cluster):
    path = cluster.folder / "wrong.h5"
    done = cluster.run("--ntasks=3", JOBS / "single.sbatch", *STUDY, "-o", path, MPIFED_LAUNCH="srun --mpi=none")
    assert done.state == "FAILED"
    sentence = "^mpifed: the launcher started 3 processes, but mpi4py uses .*, which does not know of them"
    assert re.search(sentence, done.log, re.M)
    assert not path.exists()


def completed(count, done):
    """All tasks of an array ended well."""
    assert [job.state for job in done] == ["COMPLETED"] * count, done


RANKS = ["--ntasks=3", "--cpus-per-task=1"]


@pytest.mark.parametrize(("seeds", "words", "asked"), [(8, ["--whole-node"], []), (3, [], RANKS)])
def test_array_that_the_sweep_writes(cluster, seeds, words, asked):
    """It fills nodes with points of one core, or runs one point after another on ranks."""
    folder = cluster.folder / f"written-{seeds}"
    sweep = ["sweep", *STUDY, "rounds=3", "--grid", f"seed=0:{seeds}", "-o", folder, "--slurm", "--tasks=2", *words]
    assert f"sbatch {folder}/sweep.sbatch" in cluster.mpifed(*sweep)
    completed(2, cluster.wait(cluster.submit(*asked, folder / "sweep.sbatch", MPIFED_LAUNCH=MPIRUN)))
    files = sorted(folder.glob("*.h5"))
    assert [file.name for file in files] == [f"seed={seed}.h5" for seed in range(seeds)]
    for file in files:
        content(file)


@pytest.mark.parametrize("ranks", [1, 3])
def test_array_all_points_are_there(cluster, ranks):
    folder = cluster.folder / f"sweep-{ranks}"
    words = ["--array=0-2", f"--ntasks={ranks}", "--cpus-per-task=1", JOBS / "array.sbatch", *STUDY, "rounds=3"]
    words += ["--grid", "algorithm.k0=2,3", "--grid", "seed=0:2", "-o", folder]
    for left in (4, 0):
        done = cluster.wait(cluster.submit(*words, MPIFED_LAUNCH=MPIRUN))
        completed(3, done)
        assert ("finished already" in "".join(job.log for job in done)) == (left == 0)
    files = sorted(folder.glob("*.h5"))
    assert [file.name for file in files] == [f"k0={k},seed={seed}.h5" for k in (2, 3) for seed in (0, 1)]
    for file in files:
        content(file)
        with h5py.File(file) as result:
            assert result.attrs["ranks"] == ranks


def at_hand(config):
    """Whether the data of an experiment are on this machine."""
    try:
        config.data.load(config.seed, config.dtype)
    except UserError:
        return False
    return True


def test_array_that_a_benchmark_writes(cluster):
    name = "fedgia/limit"
    folder = cluster.folder / "benchmarks"
    words = [sys.executable, "-m", "benchmarks", "run", name, "--quick", f"--to={folder}"]

    def ask(*more):
        done = execute([*words, *more], 120, ROOT, **cluster.variables)
        assert done.code == 0, done
        return done

    script = folder / "quick" / "sweep.sbatch"
    assert f"sbatch {script}" in ask("--slurm", "--tasks=2").out
    completed(2, cluster.wait(cluster.submit(*RANKS, script, MPIFED_LAUNCH=MPIRUN)))
    quick = bench.read(name).reduced()
    expected = [run for run in runs(quick, quick.quick.seeds, name) if at_hand(run.config)]
    files = sorted(folder.rglob("*.h5"))
    assert files == sorted(folder / "quick" / f"{run.name}.h5" for run in expected)
    times = [file.stat().st_mtime_ns for file in files]
    assert "claims: " in ask().out
    assert [file.stat().st_mtime_ns for file in files] == times


def test_restart_at_the_time_limit(cluster):
    """One job is asked by USR1 before its limit; the ranks of the other see nothing but SIGTERM at its limit."""
    asked, late = cluster.folder / "asked.h5", cluster.folder / "late.h5"
    line = [JOBS / "restart.sbatch", *STUDY, "rounds=240", "-o"]
    first, other = (
        cluster.submit("--ntasks=3", "--time=1", signal, *line, path, MPIFED_LAUNCH=slowly(cluster, launcher))
        for signal, path, launcher in (("--signal=B:USR1@20", asked, MPIRUN), ("--signal=B:URG@1", late, SRUN))
    )
    for job, path, signal in ((first, asked, "SIGUSR1"), (other, late, "SIGTERM")):
        (done,) = cluster.wait(job, 500)
        assert done.state == "COMPLETED", done.log
        assert done.restarts >= 1
        for reached in re.findall(rf"stopped \({signal} after round (\d+); resume goes on\)", done.log):
            assert f"{path} continues after round {reached}" in done.log
        with h5py.File(path) as file:
            assert "resumed" in file.attrs
        assert content(path) == whole(cluster, 240)


def test_restart_on_request_and_not_after_scancel(cluster):
    path = cluster.folder / "request.h5"
    line = ["--ntasks=3", JOBS / "restart.sbatch", *STUDY, "rounds=40", "-o", path]
    launcher = slowly(cluster, MPIRUN)

    def ended(variables, *how, restarts=0, more=3):
        """The job of ``line`` when it is over; ``how`` it is asked to end after ``more`` rounds of its own."""
        begin = rounds(path)
        job = cluster.submit(*line, MPIFED_LAUNCH=launcher, **variables)
        cluster.until(job, lambda: rounds(path) >= begin + more)
        cluster.ask("scancel", *how, job)
        if restarts:
            cluster.until(job, lambda: cluster.show(job)[0]["Restarts"] == str(restarts))
        return cluster.wait(job)[0]

    done = ended({}, restarts=0)
    assert (done.state, done.restarts) == ("CANCELLED", 0)
    with h5py.File(path) as file:
        assert file.attrs["status"] == "stopped"
    done = ended({"MPIFED_REQUEUE": "0"}, "--batch", "--signal=USR1")
    assert done.state == "FAILED"
    assert done.log.endswith(f"{path} is not finished after 0 restarts; the same line of sbatch goes on\n")
    done = ended({}, "--batch", "--signal=USR1", restarts=1)
    assert (done.state, done.restarts) == ("COMPLETED", 1), done.log
    assert content(path) == whole(cluster, 40)
    done = cluster.run(*line)
    assert (done.state, done.log) == ("COMPLETED", f"{path} is finished already\n")


def test_restart_does_not_repeat_a_mistake(cluster):
    done = cluster.run("--ntasks=2", JOBS / "restart.sbatch", "algorithm=fedadm", MPIFED_LAUNCH=MPIRUN)
    assert (done.state, done.restarts) == ("FAILED", 0)
    assert "mpifed: unknown algorithm 'fedadm'; did you mean 'fedadmm'?" in done.log


def test_restart_jobs_of_one_name_go_on_one_after_the_other(cluster):
    """Where nothing is requeued: the second job waits for the first, and finishes what it left."""
    path = cluster.folder / "singleton.h5"
    line = ["--ntasks=3", "--job-name=one", "--dependency=singleton", JOBS / "restart.sbatch", *STUDY, "rounds=40"]
    variables = {"MPIFED_LAUNCH": slowly(cluster, MPIRUN), "MPIFED_REQUEUE": "0"}
    first, second = (cluster.submit(*line, "-o", path, **variables) for _ in range(2))
    cluster.until(first, lambda: rounds(path) >= 3)
    assert cluster.show(second)[0]["JobState"] == "PENDING"
    cluster.ask("scancel", "--batch", "--signal=USR1", first)
    (done,) = cluster.wait(first)
    assert (done.state, done.restarts) == ("FAILED", 0), done.log
    (done,) = cluster.wait(second)
    assert done.state == "COMPLETED", done.log
    assert f"{path} continues after round" in done.log
    assert content(path) == whole(cluster, 40)


def test_threads_memory_and_site_reach_the_ranks(cluster):
    tell = """srun --mpi=none -n "$2" sh -c 'echo "threads $OMP_NUM_THREADS, cpus $SLURM_CPUS_PER_TASK"'"""
    site = cluster.folder / "site.sh"
    site.write_text(f': "$never_set"\nexport MPIFED_LAUNCH={telling(cluster, "tell", tell)}\n')
    words = ["--ntasks=2", "--cpus-per-task=2", "--mem-per-cpu=300M", JOBS / "single.sbatch"]
    done = cluster.run(*words, MPIFED_ENV=str(site))
    assert (done.state, done.log) == ("COMPLETED", "threads 2, cpus 2\n" * 2)


def test_an_environment_of_its_own_on_the_node(cluster):
    """The recipe node-local.sh: the ranks use a copy in /tmp, which is gone after the job."""
    venv = cluster.folder / "small"
    done = execute([sys.executable, "-m", "venv", "--without-pip", venv], 60)
    assert done.code == 0, done.err
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    tar = cluster.folder / "venv.tar"
    assert execute(["tar", "-C", venv, "-cf", tar, "."]).code == 0
    path = cluster.folder / "local.h5"
    wheel = list(Path(sys.prefix, "lib").glob("libmpi.so.*"))  # which the copy does not have
    variables = {
        "MPIFED_ENV": str(JOBS / "recipes" / "node-local.sh"),
        "MPIFED_VENV_TAR": str(tar),
        "MPIFED_LAUNCH": telling(cluster, "where", f'command -v python\nexec {MPIRUN} "$@"'),
        **({"MPI4PY_LIBMPI": str(wheel[0])} if wheel else {}),
    }
    words = ["--nodes=1", "--ntasks=3", JOBS / "single.sbatch", *STUDY, "rounds=5", "-o", path]
    job = cluster.submit(*words, **variables)
    (done,) = cluster.wait(job)
    assert done.state == "COMPLETED", done.log
    assert done.log.startswith(f"/tmp/mpifed-{job}/bin/python\n")
    assert not cluster.emulated or not Path(f"/tmp/mpifed-{job}").exists()
    assert content(path) == whole(cluster, 5)


@pytest.mark.parametrize("launcher", [MPIRUN, SRUN])
def test_scaling_table_and_picture(cluster, launcher):
    folder = cluster.folder / f"scaling-{launcher.split()[0]}"
    words = ["--nodes=2", "--ntasks-per-node=2", f"--chdir={ROOT}", f"--output={cluster.folder}/scaling-%j.log"]
    words += [JOBS / "scaling.sbatch", "--clients=60", "--rounds=4", "--repeat=1", "--to", folder]
    done = cluster.run(*words, MPIFED_LAUNCH=launcher)
    assert done.state == "COMPLETED", done.log
    with (folder / "scaling.csv").open() as file:
        rows = list(csv.DictReader(file))
    ranks = [(row["kind"], row["client_ranks"]) for row in rows]
    assert ranks == [(kind, p) for kind in ("strong", "weak") for p in "123"]
    assert all(float(row["seconds"]) > 0 for row in rows)
    if importlib.util.find_spec("matplotlib"):
        assert (folder / "scaling.png").read_bytes().startswith(b"\x89PNG")


def documented():
    """The lines of the documentation that lead from the jobs of a sweep to a figure."""
    texts = [file.read_text("utf-8") for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
    blocks = [block for text in texts for block in re.findall(r"```bash\n(.*?)```", text, re.S)]
    found = [block for block in blocks if "jobs/array.sbatch" in block and "mpifed plot" in block]
    assert found, "no block of README or docs submits jobs/array.sbatch and plots what it wrote"
    return re.findall("^(?:sbatch|python -m mpifed) .*", found[0], re.M)


def test_the_documented_way_from_jobs_to_a_figure(cluster):
    pytest.importorskip("matplotlib")
    folder = cluster.folder / "documented"
    folder.mkdir()
    (folder / "jobs").symlink_to(JOBS)
    lines = [re.sub("^python ", f"{sys.executable} ", line) for line in documented()]
    out = cluster.ask("bash", "-ec", "\n".join([f"cd {folder}", *lines]), timeout=180, MPIFED_LAUNCH=MPIRUN)
    (sweep,) = (shlex.split(line, comments=True) for line in lines if "jobs/array.sbatch" in line)
    expected = points({}, [], [value for option, value in pairwise(sweep) if option == "--grid"])
    results = folder / sweep[sweep.index("-o") + 1]
    assert sorted(results.glob("*.h5")) == sorted(results / point.file for point in expected)
    for name in {names.method_title(point.config.algorithm.label()) for point in expected}:
        assert re.search(f"^{re.escape(name)} ", out, re.M), out
    (figure,) = folder.glob("*.png")
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("word", "state"), [("dtype=float32", "FAILED"), ("problem.device=cpu", "COMPLETED")])
def test_gpu_none_is_refused_unless_the_cpu_is_asked_for(cluster, word, state):
    torch = pytest.importorskip("torch")
    if not cluster.emulated or torch.cuda.is_available():
        pytest.skip("there are GPUs, or may be")
    path = cluster.folder / f"gpu-{state}.h5"
    network = ["data=images", "data.clients=4", "data.size=16", "problem=cnn", "algorithm=fedavg", "rounds=1", word]
    words = ["--ntasks=3", "--ntasks-per-node=3", JOBS / "gpu.sbatch", *network]
    done = cluster.run(*words, "-o", path, MPIFED_LAUNCH=MPIRUN)
    assert done.state == state, done.log
    assert path.exists() == (state == "COMPLETED")
    if state == "FAILED":
        sentence = '"cuda" is wrong: PyTorch finds no GPU on a node of this run: write "auto" or "cpu"'
        assert re.findall("^mpifed: .*", done.log, re.M) == [f"mpifed: problem.device = {sentence}"]


def test_gpu_the_binding_of_the_job_reaches_its_ranks_which_may_be_more_than_cards(cluster):
    """What a rank then sees is not tried: the cards of the emulated nodes are empty files."""
    if not cluster.emulated:
        pytest.skip("other clusters may bind GPUs as they like")
    told = "$SLURM_PROCID $SLURM_LOCALID: $SLURM_GPUS_ON_NODE $SLURM_GPU_BIND"
    launcher = telling(cluster, "cards", f"""exec srun -n "$2" bash -c 'echo "rank {told}"'""")
    words = ["--ntasks=4", "--ntasks-per-node=4", "--gpus-per-node=2", "--gpu-bind=map_gpu:0,1", JOBS / "gpu.sbatch"]
    done = cluster.run(*words, MPIFED_LAUNCH=launcher)
    assert done.state == "COMPLETED", done.log
    assert sorted(re.findall(r"^rank .*", done.log, re.M)) == [f"rank {k} {k}: 2 map_gpu:0,1" for k in range(4)]
