"""One command runs, prints, draws and reports a benchmark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import mpifed
from benchmarks import __main__ as program
from benchmarks import bench as benches
from benchmarks import verdict
from tests.helpers.commands import ROOT, execute, mpirun


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    return program.main()


@pytest.mark.slow
def test_a_signal_ends_the_processes_too(tmp_path):
    words = ["-m", "benchmarks", "run", "fedgia/table4", "--seeds", "9", "--processes", "2", "--to", str(tmp_path)]
    run = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    while not list(tmp_path.rglob("*.h5")) and time.monotonic() < begun + 60:
        time.sleep(0.1)
    run.terminate()
    _, error = run.communicate(timeout=20)  # ends when no process holds the pipes
    assert "benchmarks: interrupted; run the same command again to continue" in error
    assert run.returncode == 1


@pytest.mark.slow
def test_a_mistake_on_ranks_ends_all_of_them():
    done = execute(mpirun(3, "-m", "benchmarks", "run", "fedgia/table5"), timeout=60, cwd=ROOT)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("there is no benchmark 'fedgia/table5'") == 1


@pytest.mark.parametrize("ranks", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_results_that_cannot_be_written_are_refused(tmp_path, ranks):
    (tmp_path / "file").write_text("")
    words = ["-m", "benchmarks", "run", "fedgia/limit", "--quick", "--to", str(tmp_path / "file")]
    done = execute(mpirun(3, *words) if ranks > 1 else [sys.executable, *words], timeout=60, cwd=ROOT)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("is wrong: Not a directory; it must be a folder that can be written") == 1


def test_one_command_runs_prints_draws_and_reports(tiny, monkeypatch, capsys):
    words = ["--seeds", "2", "--processes", "1"]
    assert command(monkeypatch, "run", "fedgia/tiny", *words) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^  FedGiA +\d+\.\d ± \d+\.\d \[5\.0\] \? [+-]\d+ %, 2 seeds", shown, re.MULTILINE)
    assert re.search(r"Example V.2: not available: data = .sct. finds no", shown)
    assert "✓ “FedGiA takes fewer rounds”, page 1, holds in both cases, tested as CR of FedGiA < FedAvg:" in shown
    for picture in ("curves", "means", "along", "boxes", "dots"):
        assert (tiny / "results/fedgia/tiny" / f"{picture}.png").stat().st_size > 5000
    files = {path: path.stat().st_mtime_ns for path in (tiny / "results/fedgia/tiny").glob("*.h5")}
    assert len(files) == 8
    assert command(monkeypatch, "report", *words) == 0
    assert {path: path.stat().st_mtime_ns for path in files} == files
    page = (tiny / "results/report.md").read_text()
    assert "(../benchmarks/fedgia/tiny.toml)" in page
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (tiny / "results" / target).exists(), target
    assert "| FedAvg | " in page
    assert "*FedAvg: it is a test*" in page
    assert str(tiny) not in page
    web = (tiny / "results/report.html").read_text()
    assert web.count("<table>") == len(re.findall(r"^\|---", page, re.MULTILINE))
    assert "](" not in re.sub(r"<script>.*?</script>", "", web, flags=re.DOTALL)  # no link of Markdown is left
    targets = re.findall(r'href="#([^"]+)"', web)
    assert len(targets) >= 3  # the contents, and the table of benchmarks
    for target in targets:
        assert f'id="{target}"' in web


def test_counts_run_nothing(tiny, monkeypatch, capsys):
    words = ["--seeds", "3", "--processes", "1"]
    assert command(monkeypatch, "report", "--counts", *words) == 0
    assert "| fedgia/tiny | 3 |  |  |  |  | 3 |  |  |  | 1 |  |" in capsys.readouterr().out
    assert not (tiny / "results").exists()
    assert command(monkeypatch, "run", "fedgia/tiny", *words) == 0
    capsys.readouterr()
    assert command(monkeypatch, "report", "--counts", *words) == 0
    shown = capsys.readouterr().out
    assert command(monkeypatch, "report", *words) == 0
    table = [line.split("|")[2:] for line in shown.splitlines() if line.startswith("| fedgia/tiny")]
    page = (tiny / "results/report.md").read_text()
    assert table == [line.split("|")[2:] for line in page.splitlines() if line.startswith("| [fedgia/tiny]")]
    assert shown.splitlines()[-1] in page


def test_quick_has_a_folder_of_its_own_and_a_smaller_grid(tiny, monkeypatch):
    assert command(monkeypatch, "report", "--quick", "--processes", "2") == 0
    names = sorted(path.name for path in (tiny / "results/quick/fedgia/tiny").glob("*.h5"))
    assert names == ["example-v.1-fedavg-k0-5-seed-0.h5", "example-v.1-fedgia-k0-5-seed-0.h5"]


def test_a_block_for_an_array_job_is_shown_by_the_report_but_not_run(tiny, monkeypatch):
    file = benches.HERE / "fedgia/tiny.toml"
    file.write_text(
        file.read_text("utf-8").replace('name = "Example V.1"', 'name = "Example V.1"\narray = true'), "utf-8"
    )
    assert command(monkeypatch, "report", "--seeds", "1", "--processes", "1") == 0
    page, results = tiny / "results/report.md", tiny / "results/fedgia/tiny"
    assert "too long for the report: python -m benchmarks run fedgia/tiny --slurm" in page.read_text("utf-8")
    assert not list(results.glob("*.h5"))
    assert command(monkeypatch, "run", "fedgia/tiny", "--seeds", "1", "--processes", "1") == 0
    assert command(monkeypatch, "report", "--seeds", "1", "--processes", "1") == 0
    assert len(list(results.glob("example-v.1-*.h5"))) == 4
    assert "too long for the report" not in page.read_text("utf-8")


def test_parts_make_the_whole_and_a_script_for_slurm_names_them(tiny, monkeypatch, capsys):
    for part in ("0/2", "1/2"):
        assert command(monkeypatch, "run", "fedgia/tiny", "--seeds", "1", "--processes", "1", "--part", part) == 0
    assert len(list((tiny / "results/fedgia/tiny").glob("*.h5"))) == 4
    assert command(monkeypatch, "run", "fedgia/tiny", "--slurm", "--tasks", "3") == 0
    script = (tiny / "results/sweep.sbatch").read_text()
    assert capsys.readouterr().out.splitlines()[-1] == "sbatch results/sweep.sbatch"
    assert 'python -m benchmarks run fedgia/tiny --to=results \\\n    --part "$SLURM_ARRAY_TASK_ID/' in script


@pytest.mark.slow
def test_ranks_give_the_same_results(tmp_path):
    words = ["-m", "benchmarks", "run", "fedgia/table4", "--only", "V.1 FedGiA_D", "--seeds", "1", "--to"]
    for folder, start in ((tmp_path / "one", [sys.executable, *words]), (tmp_path / "three", mpirun(3, *words))):
        done = execute([*start, folder], timeout=120, cwd=ROOT)
        assert done.code == 0, done.err
    one, three = (sorted(folder.glob("fedgia/table4/*.h5")) for folder in (tmp_path / "one", tmp_path / "three"))
    assert [path.name for path in one] == [path.name for path in three]
    assert len(one) == 3
    for a, b in zip(one, three, strict=True):
        assert np.array_equal(mpifed.load(a).rounds["objective"], mpifed.load(b).rounds["objective"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "fedgia/table5"], "there is no benchmark 'fedgia/table5'"),
        (["run", "fedgia/tiny", "--seeds", "0"], "--seeds 0 is wrong"),
        (["run", "fedgia/tiny", "--part", "2/2"], "--part 2/2 is wrong"),
        (["report", "fedpd"], "there is no benchmark 'fedpd'"),
    ],
)
def test_a_mistake_is_reported_in_one_sentence(words, sentence, tiny, monkeypatch, capsys):
    assert command(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"benchmarks: {sentence}")
    assert error.count("\n") == 1
    assert not (tiny / "results").exists()


@pytest.mark.skipif(
    not os.environ.get("MPIFED_BENCHMARKS"), reason="takes ten minutes: MPIFED_BENCHMARKS=1 asks for it"
)
def test_the_quick_report_on_all_papers(tmp_path):
    done = execute([sys.executable, "-m", "benchmarks", "report", "--quick", "--to", tmp_path], timeout=1800, cwd=ROOT)
    assert done.code == 0, done.err
    page = (tmp_path / "quick" / "report.md").read_text("utf-8")
    assert all(f": {name}" in page for name in benches.names())
    assert verdict.AGREES in page
