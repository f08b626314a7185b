"""What happens around a run, not in it: files that go away, machines that differ, and words that nobody meant."""

import os
import platform
import re
import shlex
import shutil
import sys
import time
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.cli.main import main
from mpifed.experiment.checkpoint import read_checkpoint
from mpifed.experiment.config import Job
from mpifed.experiment.progress import Progress
from mpifed.experiment.run import start
from mpifed.results import provenance, recorder
from mpifed.sweeps.cost import OFF, count_parameters, estimate_memory
from mpifed.sweeps.grid import points
from tests.helpers.commands import ROOT, execute
from tests.helpers.commands import mpifed as mpifed_command

SMALL = ["algorithm=gd", "data.clients=4", "data.features=3", "kernels=numpy"]
LONG = [*SMALL, "rounds=12", "stop.gradient=0", "checkpoint.every_rounds=3", "-o", "o/out.h5"]
ENDS = "while the run wrote to it, and the run ends after 9 rounds: "
FATES = {  # what happens to the file after round 7: (the sentence, round of the checkpoint left, what resume says)
    "removed": (f"was removed {ENDS}run it again; ", 9, "back, or run"),
    "moved": (f"was moved to .*moved.h5 {ENDS}move it back, and resume goes on from the", 9, "back"),
    "replaced": ("was replaced by another file while the run .*: run it again with another -o", 6, "is not a result f"),
    "folder": (f"was removed {ENDS}run it again$", None, "no such file"),
}


def lose(fate):
    file = Path("o/out.h5")
    if fate == "moved":
        file.rename("o/moved.h5")
    elif fate == "folder":
        shutil.rmtree("o")
    else:
        file.unlink()
        if fate == "replaced":
            file.write_text("something else")


def losing(monkeypatch, fate, last):
    """Lose the file of a run after round ``last``, which it notices at its next checkpoint."""
    show = Progress.show
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 1e9)  # on a busy machine it would look for its file before
    monkeypatch.setattr(
        Progress, "show", lambda self, round, *rest: (lose(fate) if round == last else None, show(self, round, *rest))
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with an empty one, o, in it, from which commands are run."""
    monkeypatch.chdir(tmp_path)
    Path("o").mkdir()


@pytest.mark.parametrize("fate", FATES)
def test_a_run_whose_file_is_lost_ends_with_its_name_and_a_checkpoint(fate, here, monkeypatch, capsys):
    sentence, saved, resumed = FATES[fate]
    losing(monkeypatch, fate, 7)
    assert main(["run", *LONG, "-q"]) == 1
    said = capsys.readouterr().err
    assert re.fullmatch(f"mpifed: o/out.h5 {sentence}.*", said.strip()), said
    left = read_checkpoint("o/out.h5")
    assert (left and left.round) == saved
    assert main(["resume", "o/out.h5"]) == 2
    assert resumed in capsys.readouterr().err


def test_a_file_that_was_moved_goes_on_when_it_is_moved_back(here, monkeypatch):
    assert main(["run", *LONG[:-1], "o/again.h5", "-q"]) == 0
    losing(monkeypatch, "moved", 7)
    assert main(["run", *LONG, "-q"]) == 1
    Path("o/moved.h5").rename("o/out.h5")
    assert main(["resume", "o/out.h5", "-q"]) == 0
    assert np.array_equal(mpifed.load("o/out.h5").x, mpifed.load("o/again.h5").x)


@pytest.mark.parametrize("fate", ["removed", "moved"])
def test_a_file_that_is_lost_in_the_last_round_is_told(fate, here, monkeypatch, capsys):
    losing(monkeypatch, fate, 12)
    assert main(["run", *LONG, "checkpoint.keep=false", "checkpoint.every_rounds=5", "-q"]) == 1
    told = {"removed": "run it again", "moved": "its result is there"}[fate]
    assert f"and the run is over: {told}" in capsys.readouterr().err


SPOILS = {  # what another program does to the file of a run: how the sentence goes on
    "truncated": lambda file: os.truncate(file, 0),
    "cut in half": lambda file: os.truncate(file, file.stat().st_size // 2),
    "written over": lambda file: file.write_bytes(bytes(file.stat().st_size)),
}


@pytest.mark.parametrize("how", SPOILS)
def test_a_run_whose_file_another_program_changes_ends_with_a_sentence_and_leaves_it_alone(
    how, here, monkeypatch, capsys
):
    path, show, left = Path("o/out.h5"), Progress.show, []

    def spoil(self, round, *rest):
        if round == 7:
            SPOILS[how](path)
            left.append(path.read_bytes())
        show(self, round, *rest)

    monkeypatch.setattr(Progress, "show", spoil)
    study = ["data=gaussian", "problem=logistic"]
    assert main(["run", *LONG, *study, "record.models=1", "evaluate.clients=true", "-q"]) == 1
    did = "written over" if how == "written over" else "truncated"
    said = capsys.readouterr().err
    assert re.fullmatch(f"mpifed: o/out.h5 was {did} by another program while .*: run it again with another -o\n", said)
    assert path.read_bytes() == left[0]


def test_a_full_disk_behind_standard_output_or_error_is_told_and_ends_no_run(here):
    quick = (*SMALL, "rounds=2")
    command = shlex.join([sys.executable, "-m", "mpifed"])
    told = "mpifed: what this command prints cannot be written: no space left on device\n"
    for words, code, err in (
        (f"{command} run {' '.join(quick)} -q -o o/a.h5 2> /dev/full", 0, ""),
        (f"{command} sweep {' '.join(quick)} --grid seed=0:3 -j 1 -o o > /dev/full", 1, told),
    ):
        done = execute(["sh", "-c", words])
        assert (done.code, done.out, done.err.splitlines(True)[-1:]) == (code, "", [err] if err else []), words
    assert [mpifed.load(path).status for path in sorted(Path("o").glob("*.h5"))] == ["finished"] * 4


def test_checkpoints_go_through_a_link_to_another_disk_which_stays(here):
    scratch, link = Path("scratch"), Path("o/out.h5.checkpoint")
    link.symlink_to(scratch.absolute())
    for _ in range(2):  # the second run removes the checkpoint of the first
        assert main(["run", *LONG, "--force", "-q"]) == 0
        assert read_checkpoint("o/out.h5").round == 12
    (scratch / "mine.txt").write_text("of the user")
    assert main(["resume", "o/out.h5", "rounds=15", "-q"]) == 0
    assert main(["run", *LONG, "checkpoint.keep=false", "--force", "-q"]) == 0
    assert link.is_symlink()
    assert os.listdir(scratch) == ["mine.txt"]


def test_the_name_of_a_result_leaves_room_for_those_beside_it(here, capsys):
    most = os.pathconf("o", "PC_NAME_MAX") - len("..checkpoint")
    for length in (most, most + 1, 250):
        name = f"o/{'a' * (length - 3)}.h5"
        if length == most:
            assert main(["run", *LONG[:-1], name, "checkpoint.keep=false", "-q"]) == 0
        else:
            assert main(["run", *LONG[:-1], name, "-q"]) == 2
            assert capsys.readouterr().err.endswith(f"is wrong: the name of a result has at most {most} bytes here\n")


@pytest.mark.parametrize("mode", ["r", "a", pytest.param("xarray", marks=pytest.mark.slow)])
def test_a_result_that_the_program_itself_holds_open_is_read(mode, here):
    mpifed.run(rounds=3, data={"clients": 4}, record={"models": 1}, path="o/out.h5", progress=False)
    if mode == "xarray":  # as docs/results.md says
        held = pytest.importorskip("xarray").open_dataset("o/out.h5", group="rounds", engine="h5netcdf")
    else:
        held = h5py.File("o/out.h5", mode)
    result = mpifed.load("o/out.h5")
    assert (result.cr, len(result.models["x"])) == (3, 4)
    held.close()


@pytest.mark.slow
def test_the_file_has_the_blas_of_the_run_and_resume_says_where_it_changes(here):
    """OPENBLAS_CORETYPE makes OpenBLAS compute as on another processor."""
    if platform.machine() != "x86_64" or not provenance.describe_blas().startswith("openblas"):
        pytest.skip("numpy has no OpenBLAS for x86 here")
    done = mpifed_command("run", "rounds=3", "stop.gradient=0", "-q", "-o", "out.h5", OPENBLAS_CORETYPE="Prescott")
    assert done.code == 0, done.err
    assert re.fullmatch(r"openblas \S+ (Katmai|Prescott|Core2)", old := mpifed.load("out.h5").attrs["blas"])
    assert main(["resume", "out.h5", "rounds=4"]) == 0
    result = mpifed.load("out.h5")
    assert result.attrs["blas"] == provenance.describe_blas() == result.ranks["blas"][0]
    assert "from round 4 on this run is computed otherwise" in result.attrs["notes"]
    assert f"BLAS ({old} → {provenance.describe_blas()})" in result.attrs["notes"]


def written(kind, labels):
    """A data set with these labels in a file of a kind."""
    X = np.random.default_rng(0).normal(size=(len(labels), 3))
    path = Path(f"long.{kind}")
    if kind == "csv":
        path.write_text("".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, labels, strict=True)))
    elif kind == "npz":
        np.savez(path, X=X, y=np.array(labels))
    elif kind == "parquet":
        table = pytest.importorskip("pyarrow").table({"a": X[:, 0], "y": labels})
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with h5py.File(path, "w") as file:
            file["X"] = X
            file.create_dataset("y", data=labels, dtype=h5py.string_dtype())
    return {"name": "file", "path": str(path), "clients": 2}


@pytest.mark.parametrize("kind", ["csv", "npz", "h5", "parquet"])
def test_texts_that_are_too_long_for_labels_are_refused_before_they_are_copied(kind, here):
    data = written(kind, [letter * 1000 for letter in "ababab"])
    assert mpifed.run(data=data, problem="logistic", rounds=2, progress=False).cr == 2
    data = written(kind, [letter * 2_000_000 for letter in "ababab"])
    tracemalloc.start()
    with pytest.raises(mpifed.UserError, match=r"long\.\w+(, line 1:| has) a text of 2,000,000 characters.* 1,000$"):
        mpifed.run(data=data, problem="logistic", rounds=2, progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # the file has 12 MB


def test_arrays_have_short_labels_too():
    y = np.array([letter * 1001 for letter in "ababab"])
    with pytest.raises(mpifed.UserError, match="has a text of 1,001 characters"):
        mpifed.run(data=mpifed.arrays(np.eye(6), y, [3, 3]), problem="logistic", rounds=2, progress=False)


INTERRUPTING = """
import os, signal, sys
if any("mpifed.sweeps.workers" in word for word in sys.orig_argv):
    os.killpg(0, signal.SIGINT)  # before its first import
"""


@pytest.mark.slow
def test_a_sweep_that_is_interrupted_while_its_workers_import_ends_with_one_line(here):
    Path("sitecustomize.py").write_text(INTERRUPTING)
    words = ("sweep", "--grid", "seed=0:4", "-j", "2", "rounds=2", "-o", "points")
    done = mpifed_command(*words, process=True, PYTHONPATH=f"{Path.cwd()}:{ROOT}")
    assert (done.out, done.err) == ("0 of 4 finished; run the same command again to continue\n", "")


@pytest.mark.parametrize("words", [("-o", "a\necho intruder"), ("--grid=algorithm=fedavg,\nfedgia", "-o", "b")])
def test_a_line_break_cannot_put_a_command_into_the_script_of_slurm(words, here, capsys):
    assert main(["sweep", "--grid", "algorithm.k0=1,2", "--slurm", *words]) == 2
    assert "' is wrong: with --slurm, no word may have a line break" in capsys.readouterr().err
    assert not list(Path().rglob("*.sbatch"))


def test_names_of_a_sweep_over_objects_have_what_differs_from_the_defaults(here):
    methods = [mpifed.algorithms.FedAvg(k0=3), mpifed.algorithms.FedAvg(), mpifed.algorithms.FedGiA(H="gram")]
    base = {"algorithm": {"name": "fedavg", "k0": 7}, "data": {"clients": 4}, "rounds": 1}
    found = mpifed.sweep(base, {"algorithm": methods}, path="o", progress=False, jobs=1)
    names = ["algorithm=fedavg-k0=3.h5", "algorithm=fedavg.h5", "algorithm=fedgia-H=gram.h5"]
    assert [Path(result.path).name for result in found] == names
    assert [result.config["algorithm"]["k0"] for result in found[:2]] == [3, 5]  # an object stands for its whole table


@pytest.mark.slow
def test_the_estimate_of_a_sweep_is_as_near_as_it_says(here, capsys):
    study = ["data=synthetic", "data.clients=6", "problem=softmax", "algorithm=fedprox", "rounds=6", "stop.gradient=0"]
    (point,) = points({}, study, ["seed=0"])
    assert main(["sweep", *study, "--grid", "seed=0", "--dry-run", "-o", "o"]) == 0
    assert "takes about" in (said := capsys.readouterr().out)
    assert f"rounds × gradients × numbers in the samples: it may be {OFF} times less or more" in said
    begun = time.process_time()
    start(Job(point.config))
    assert point.cost / OFF / 2 < time.process_time() - begun < point.cost * OFF
    assert count_parameters(point.config, 60) == 10 * 61  # ten classes


@pytest.mark.parametrize(
    ("data", "asked", "told"),
    [
        ("linreg-noniid", r"--mem-per-cpu=\d00M", "memory of a core"),
        ("digits", None, "not asked for, because the size of"),
    ],
)
def test_the_script_of_slurm_asks_for_memory_or_says_why_not(data, asked, told, here):
    kind = {"digits": "softmax"}.get(data, "least-squares")
    words = [f"data={data}", f"problem={kind}", "algorithm=fedavg", "data.clients=8", "--grid", "seed=0:3", "--slurm"]
    assert main(["sweep", *words, "-o", "o"]) == 0
    lines = Path("o/sweep.sbatch").read_text().splitlines()
    found = [line.split()[1] for line in lines if line.startswith("#SBATCH --mem")]
    assert not found if asked is None else re.fullmatch(asked, *found)
    assert any(line.startswith("#   --mem-per-cpu ") and told in line for line in lines)


@pytest.mark.slow
def test_memory_asked_for_is_enough(here):
    study = ["data.clients=200", "data.features=200", "rounds=2", "stop.gradient=0"]
    (point,) = points({}, study, ["seed=0"])
    words = [sys.executable, "-m", "mpifed", "run", *study, "-q", "-o", "out.h5"]
    assert execute(["sh", "-c", f"{shlex.join(words)}; true"]).err == ""  # else the peak of this process counts, too
    assert mpifed.load("out.h5").ranks["max_rss_bytes"][0] < sum(estimate_memory(point.config))
