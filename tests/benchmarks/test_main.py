"""One command runs, prints, draws and reports a benchmark."""

import re
import shutil
import subprocess
import sys
import time

import h5py
import msgspec
import pytest

from benchmarks import __main__ as program
from benchmarks import bench, outcome, pictures, report, rows, tally
from mpifed.report import style
from tests.helpers.commands import ROOT, execute, mpirun

RUN = ["-m", "benchmarks", "run"]


@pytest.fixture
def command(monkeypatch, capsys):
    """A function that runs the program in this process: its exit code, what it printed, and its errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        return program.main(), *capsys.readouterr()

    return run


@pytest.fixture
def results(tiny):
    """The folder of the results of a benchmark without pictures."""
    tiny.write_text(re.sub("figure = .*?\n]\n", "", tiny.read_text(), flags=re.DOTALL))
    return tiny.parents[2] / "results"


def stored(folder):
    """The result files below a folder and when each was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.h5")}


@pytest.mark.slow
def test_a_signal_ends_the_processes_too_and_a_mistake_all_ranks_with_one_sentence(tmp_path):
    words = [*RUN, "fedgia/table4", "--seeds", "9", "--processes", "2", "--to", str(tmp_path)]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    run = subprocess.Popen([sys.executable, *words], cwd=ROOT, text=True, **pipes)
    begun = time.monotonic()
    while not stored(tmp_path) and time.monotonic() < begun + 60:
        time.sleep(0.1)
    run.terminate()
    _, error = run.communicate(timeout=20)  # ends when no process holds the pipes
    assert "benchmarks: interrupted; run the same command again to continue" in error
    assert run.returncode == 1
    (tmp_path / "file").write_text("")
    done = execute(mpirun(3, *RUN, "fedgia/limit", "--quick", "--to", tmp_path / "file"), timeout=60, cwd=ROOT)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("is wrong: Not a directory; it must be a folder that can be written") == 1


def test_one_command_runs_prints_draws_and_reports_and_counts_run_nothing(tiny, command, monkeypatch):
    monkeypatch.setitem(style.RC, "savefig.dpi", 100)  # coarse pictures are drawn faster
    words = ["--seeds", "2", "--processes", "1"]
    results = tiny.parents[2] / "results"
    assert "| fedgia/tiny | 2 |  |  |  |  |  |  | 3 |  |  |  | 1 |  |" in command("report", "--counts", *words)[1]
    assert not results.exists()
    code, shown, _ = command("run", "fedgia/tiny", *words)
    assert code == 0
    assert re.search(r"^  FedGiA +\d+\.\d ± \d+\.\d \[5\.0\] \? [+-]\d+ %, 2 seeds", shown, re.MULTILINE)
    assert re.search(r"Example V.2: not available: data = .sct. finds no", shown)
    assert "✓ “FedGiA takes fewer rounds”, page 1, holds in both cases, tested as CR of FedGiA < FedAvg:" in shown
    for picture in ("curves", "means", "along", "boxes", "dots"):
        assert (results / "fedgia/tiny" / f"{picture}.png").stat().st_size > 5000
    files = stored(results)
    assert len(files) == 8
    counts = command("report", "--counts", *words)[1].splitlines()
    monkeypatch.setattr(report, "save_pictures", lambda *_: ([], ""))  # they are drawn already
    assert command("report", *words)[0] == 0
    assert stored(results) == files
    page = (results / "report.md").read_text()
    assert all(line in page for line in counts)
    assert "FedAvg: it is a test" in page
    assert str(results.parent) not in page


def test_quick_has_a_folder_of_its_own_and_a_block_for_an_array_job_is_run_in_parts(tiny, results, command):
    assert command("report", "--quick", "--processes", "1")[0] == 0
    files = stored(results / "quick/fedgia/tiny")
    names = ["example-v.1-fedavg-k0-5-seed-0.h5", "example-v.1-fedgia-k0-5-seed-0.h5"]
    assert sorted(path.name for path in files) == names
    name, one = 'name = "Example V.1"', ["--seeds", "1", "--processes", "1"]
    tiny.write_text(tiny.read_text().replace(name, f"{name}\narray = true"))
    page = results / "report.md"
    assert command("report", *one)[0] == 0
    assert "too long for the report: python -m benchmarks run fedgia/tiny --slurm" in page.read_text()
    assert stored(results) == files
    code, shown, _ = command("run", "fedgia/tiny", "--slurm", "--tasks", "3")
    assert (code, shown.splitlines()[-1]) == (0, "sbatch results/sweep.sbatch")
    script = (results / "sweep.sbatch").read_text()
    assert 'python -m benchmarks run fedgia/tiny --to=results \\\n    --part "$SLURM_ARRAY_TASK_ID/' in script
    for part in ("0/2", "1/2"):
        assert command("run", "fedgia/tiny", "--part", part, *one)[0] == 0
    assert len(stored(results)) == 4 + len(files)
    assert command("report", *one)[0] == 0
    assert "too long for the report" not in page.read_text()


def test_a_part_ends_with_its_table_also_where_only_other_rows_record_a_measure(results, tiny, command):
    row = '        { name = "FedEPM", algorithm.name = "fedepm" },\n        { name = "FedAvg"'
    text = tiny.read_text().replace('        { name = "FedAvg"', row)
    one = ["--seeds", "1", "--processes", "1"]
    tiny.write_text(text.replace('"tct"]', '"tct", "snr"]'))
    code, shown, error = command("run", "fedgia/tiny", "--only", "V.1 FedGiA", *one)
    assert code == 0, error
    assert re.search(r"^ *FedGiA +.*–", shown, re.MULTILINE)
    assert command("run", "fedgia/tiny", *one)[0] == 0
    tiny.write_text(text.replace('"tct"]', '"tct", "snrr"]'))
    code, _, error = command("run", "fedgia/tiny", *one)
    assert (code, error.strip()) == (2, "benchmarks: fedgia/tiny: no run has the measure 'snrr'")


def test_rows_give_the_tables_and_counts_of_their_results_but_not_of_changed_settings(results, tiny, command):
    assert command("rows")[1] == "fedgia/tiny: no results in results\n"
    assert command("report", "--processes", "1")[0] == 0
    code, shown, _ = command("rows")
    assert (code, shown[-15:]) == (0, ": 8 of 12 runs\n")
    printed = command("run", "fedgia/tiny", "--seeds", "2", "--processes", "1")[1]
    counts = command("report", "--counts", "--processes", "1")[1]
    kept = (file := rows.path("fedgia/tiny")).read_bytes()
    command("rows")
    assert file.read_bytes() == kept  # the same results, the same bytes
    file.unlink()
    for status, runs in (("stopped", 7), ("finished", 8), ("stopped", 8)):  # none of a run that was interrupted
        with h5py.File(min(results.rglob("*.h5")), "a") as result:
            result.attrs["status"] = status
        assert command("rows")[1].endswith(f": {runs} of 12 runs\n")  # beside the rows that were there
    assert file.read_bytes() == kept
    for path in results.rglob("*.h5"):
        path.unlink()
    assert command("tables", "fedgia")[1].split() == report.portable(printed).split()
    found = tally.tally(outcome.committed("fedgia/tiny"))
    assert counts == f"{tally.counted([found])}\n\n{tally.remaining([found])}\n"
    dots = bench.Figure(name="dots", title="rounds", kind="dots", y=["rounds"])
    assert pictures.figure(outcome.committed("fedgia/tiny"), dots).axes  # without result files
    tiny.write_text(tiny.read_text().replace("rounds = 40", "rounds = 41"))
    assert "not available: no rows: it was not run with these settings" in command("tables")[1]
    for damaged in (kept[:-9], kept[:30] + bytes(30) + kept[60:]):
        file.write_bytes(damaged)
        assert "is damaged" in command("tables")[2]


def test_new_runs_are_those_without_a_row_of_the_same_settings(results, tiny, command):
    tiny.write_text(tiny.read_text().replace("report = 2", "report = 1"))

    def new():
        assert command("report", "--new", "--processes", "1")[:2] == (0, "")
        return stored(results).keys()

    every = new()
    command("rows")
    kept = rows.read("fedgia/tiny")
    shutil.rmtree(results)
    assert not new()
    rows.write("fedgia/tiny", msgspec.structs.replace(kept, runs=kept.runs[1:]))
    assert len(new() & every) == 1
    command("rows")
    found = rows.read("fedgia/tiny")
    assert ([run.key for run in found.runs], found.lacking) == ([run.key for run in kept.runs], kept.lacking)
    assert found.runs[1:] == kept.runs[1:]
    tiny.write_text(tiny.read_text().replace("step.a = 0.05", "step.a = 0.06"))
    assert sorted("fedavg" in str(name) for name in new()) == [False, True, True]  # other rows are kept
    tiny.write_text(tiny.read_text().replace("rounds = 40", "rounds = 41"))
    assert new() == every


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "fedgia/table5"], "there is no benchmark 'fedgia/table5'"),
        (["run", "fedgia"], "there is no benchmark 'fedgia'"),
        (["run", "fedgia/tiny", "--seeds", "0"], "--seeds 0 is wrong"),
        (["run", "fedgia/tiny", "--processes", "0"], "--processes 0 is wrong"),
        (["run", "fedgia/tiny", "--only", "V.3"], "--only V.3 is wrong: it must be a part of a block and its row"),
        (["run", "fedgia/tiny", "--part", "2/2"], "--part 2/2 is wrong"),
        (["report", "fedpd"], "there is no benchmark 'fedpd'"),
    ],
)
def test_a_mistake_is_reported_in_one_sentence(words, sentence, results, command):
    code, _, error = command(*words)
    assert code == 2
    assert error.startswith(f"benchmarks: {sentence}")
    assert error.count("\n") == 1
    assert not results.exists()


def test_the_help_of_robust_means_runs_nothing_and_an_unknown_word_is_told():
    done = [execute([sys.executable, "-m", "benchmarks.robust", word], 60, ROOT) for word in ("--help", "--quick")]
    assert [one.code for one in done] == [0, 2]
    assert "docs/studies/robust.md" in done[0].out
    assert "unrecognized arguments: --quick" in done[1].err
