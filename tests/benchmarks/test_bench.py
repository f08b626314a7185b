"""Benchmark files are sound, verdicts say what draws can say, and one command runs, prints, draws and reports."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from benchmarks import __main__ as program
from benchmarks import bench as benches
from benchmarks import measures, report, verdict
from benchmarks.bench import Bench, Block, Cell, Claim, Columns
from benchmarks.measures import Extra
from benchmarks.optimum import Optima
from benchmarks.verdict import AGREES, NONE, OFF, OPEN, SPREAD, TIME, Sample, examine, judge
from mpifed.core.errors import UserError
from mpifed.experiment import config
from tests.helpers.commands import ROOT, execute, mpirun

PAPERS = ("fedadmm", "fedgia", "fedepm", "flame", "feddcd", "beyond")
TINY = """
title = "Rounds of two methods"
source = "Table 0"
about = "a test"
seeds = 20
report = 2
columns = { key = "algorithm.k0", values = [1, 5] }
measures = ["rounds", "objective_gap", "tct"]
different = "nothing"
study = { rounds = 40, data = { name = "linreg-noniid", clients = 6, features = 5, least = 5, most = 9 } }
[[block]]
name = "Example V.1"
optimum = true
study = { stop = { gradient = 1e-6, gradient_scale = "m^2" } }
rows = [{ name = "FedGiA", algorithm.name = "fedgia" },
        { name = "FedAvg", algorithm = { name = "fedavg", step.a = 0.05 }, selection.name = "all" }]
paper = { FedGiA = { rounds = [5.0, 4.0], tct = [1.0, 1.0] }, FedAvg = { rounds = ["> 40", ""] } }
why = { FedAvg = "it is a test" }
[[block]]
name = "Example V.2"
study = { data = "sct", problem.name = "logistic" }
rows = [{ name = "FedGiA", algorithm.name = "fedgia" }]
[[figure]]
name = "curves"
title = "f"
log = "xy"
y = ["objective_gap", "grad_norm_sq"]
panels = "column"
[[figure]]
name = "means"
title = "rounds"
kind = "means"
y = ["rounds", "tct"]
log = "y"
[[figure]]
name = "boxes"
title = "rounds"
kind = "boxes"
y = ["rounds"]
[[claim]]
text = "FedGiA takes fewer rounds"
where = "page 1"
measure = "rounds"
blocks = ["Example V.1"]
order = ["FedGiA", "FedAvg"]
[quick]
seeds = 1
values = [5]
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder of benchmarks with one that takes no time."""
    (tmp_path / "benchmarks" / "fedgia").mkdir(parents=True)
    (tmp_path / "benchmarks" / "fedgia" / "tiny.toml").write_text(TINY)
    for module in (benches, report):
        monkeypatch.setattr(module, "HERE", tmp_path / "benchmarks")
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    return program.main()


@pytest.mark.parametrize("name", benches.names())
def test_every_benchmark_is_sound(name):
    bench = benches.read(name)
    for grid in (bench, bench.reduced()):
        runs = list(benches.runs(grid, 1, name))
        assert runs
        assert len({run.name for run in runs}) == len(runs)
        for figure in grid.figure:
            assert figure.kind == "curves" or bench.columns is not None
    more = measures.extra(name.split("/")[0])
    for measure in (*bench.measures, *(claim.measure for claim in bench.claim)):
        assert measure in more.measures or measures.parsed(measure)
    assert {run.name for run in benches.runs(bench.reduced(), bench.quick.seeds, name)}


def test_a_signal_ends_the_processes_too(tmp_path):
    words = ["-m", "benchmarks", "run", "fedgia/table4", "--seeds", "9", "--processes", "2", "--to", str(tmp_path)]
    run = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    while not list(tmp_path.rglob("*.h5")) and time.monotonic() < begun + 60:
        time.sleep(0.1)
    run.terminate()
    _, told = run.communicate(timeout=20)  # ends when nobody holds the pipes any more
    assert "benchmarks: interrupted; the same command goes on" in told
    assert run.returncode == 1


def test_a_mistake_on_ranks_ends_all_of_them():
    done = execute(mpirun(3, "-m", "benchmarks", "run", "fedgia/table5"), timeout=60, cwd=ROOT)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("there is no benchmark 'fedgia/table5'") == 1


@pytest.mark.parametrize("ranks", [1, 3])
def test_results_that_cannot_be_written_are_refused(tmp_path, ranks):
    (tmp_path / "file").write_text("")
    words = ["-m", "benchmarks", "run", "fedgia/limit", "--quick", "--to", str(tmp_path / "file")]
    done = execute(mpirun(3, *words) if ranks > 1 else [sys.executable, *words], timeout=60, cwd=ROOT)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("is wrong: Not a directory; it must be a folder that can be written") == 1


def test_every_paper_has_benchmarks():
    assert {name.split("/")[0] for name in benches.names()} == set(PAPERS)


def test_one_command_runs_prints_draws_and_reports(tiny, monkeypatch, capsys):
    words = ["--seeds", "2", "--processes", "1"]
    assert command(monkeypatch, "run", "fedgia/tiny", *words) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^  FedGiA +\d+\.\d ± \d+\.\d \[5\] \? [+-]\d+ %", shown, re.MULTILINE)
    assert re.search(r"Example V.2: not reachable here: data = .sct. finds no", shown)
    assert "holds              FedGiA takes fewer rounds" in shown
    for picture in ("curves", "means", "boxes"):
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
    assert "it is a test" not in page
    assert str(tiny) not in page
    assert (tiny / "results/report.html").read_text().count("<table>") == len(re.findall(r"^\|---", page, re.MULTILINE))


def test_quick_has_a_folder_of_its_own_and_a_smaller_grid(tiny, monkeypatch):
    assert command(monkeypatch, "report", "--quick", "--processes", "2") == 0
    names = sorted(path.name for path in (tiny / "results/quick/fedgia/tiny").glob("*.h5"))
    assert names == ["example-v.1-fedavg-k0-5-seed-0.h5", "example-v.1-fedgia-k0-5-seed-0.h5"]


def test_parts_make_the_whole_and_a_script_for_slurm_names_them(tiny, monkeypatch, capsys):
    for part in ("0/2", "1/2"):
        assert command(monkeypatch, "run", "fedgia/tiny", "--seeds", "1", "--processes", "1", "--part", part) == 0
    assert len(list((tiny / "results/fedgia/tiny").glob("*.h5"))) == 4
    assert command(monkeypatch, "run", "fedgia/tiny", "--slurm", "--tasks", "3") == 0
    script = (tiny / "results/sweep.sbatch").read_text()
    assert capsys.readouterr().out.splitlines()[-1] == "sbatch results/sweep.sbatch"
    assert 'python -m benchmarks run fedgia/tiny --to=results \\\n    --part "$SLURM_ARRAY_TASK_ID/' in script


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
def test_a_mistake_is_told_in_one_sentence(words, sentence, tiny, monkeypatch, capsys):
    assert command(monkeypatch, *words) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"benchmarks: {sentence}")
    assert told.count("\n") == 1
    assert not (tiny / "results").exists()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("seeds = 20", "missing required field `seeds`"),
        ("rounds = [5.0, 4.0]", "no such row or measure"),
        ('order = ["FedGiA", "FedAvg"]', "needs one of order, falls"),
        ("k0", "no option 'k1'"),
    ],
)
def test_a_wrong_file_is_refused(wrong, sentence, tiny):
    other = {"seeds = 20": "", "rounds = [5.0, 4.0]": "rounds = [5.0]", "k0": "k1"}.get(wrong, "")
    file = tiny / "benchmarks" / "fedgia" / "tiny.toml"
    file.write_text(TINY.replace(wrong, other, 1))
    with pytest.raises(UserError, match=sentence if wrong != "k0" else "k1"):
        list(benches.runs(benches.read("fedgia/tiny"), 1, "fedgia/tiny"))


def test_a_number_near_the_mean_agrees_one_far_is_off():
    draws = Sample((10.0, 11.0, 12.0, 11.0, 10.5, 11.5, 11.0, 10.0, 12.0, 11.0))
    assert judge(draws, 11.2, 20, False).kind == AGREES
    assert judge(draws, 12.4, 20, False).kind == SPREAD
    assert judge(draws, 15.0, 20, False) == (OFF, "-27 %")
    assert judge(draws, 22.0, 20, True) == (TIME, "0.5 × theirs")
    assert judge(Sample((99.5, 100.5, 100.0)), 102.9, 20, False) == (OFF, "-3 %")
    assert judge(Sample((0.904, 0.9041, 0.9042)), 0.91, 20, False) == (OFF, "-0.6 %")
    assert judge(Sample((), 0, "no data"), 11.0, 20, False) == (NONE, "no data")


def test_a_number_never_reached_is_off_where_runs_were_long_enough():
    never = (math.inf,) * 3
    assert judge(Sample((math.inf, 30.0, 31.0)), 11.0, 20, False) == (OFF, "not reached in 1 of 3 draws")
    assert judge(Sample(never, least=100.0), 96.0, 20, False) == (OFF, "not reached in 3 of 3 draws")
    assert judge(Sample(never, least=100.0), 418.0, 20, False) == (OPEN, "above 100 here")
    assert judge(Sample(never, least=100.0), "> 100", 20, False) == (AGREES, "not reached here either")
    assert judge(Sample(never, least=100.0), "> 500", 20, False) == (OPEN, "above 100 here")
    assert judge(Sample((100.0,) * 3, 3, least=100.0), "> 100", 20, False).kind == AGREES
    assert judge(Sample((120.0, 130.0, math.inf)), "> 100", 20, False).kind == AGREES
    assert judge(Sample((20.0, 130.0, math.inf)), "> 100", 20, False) == (OFF, "reached in 1 of 3 draws")


def test_few_draws_and_wide_spreads_leave_it_open():
    assert judge(Sample((10.0, 12.0)), 11.0, 20, False) == (OPEN, "+0.0 %")
    assert judge(Sample((math.inf,) * 2), 11.0, 20, False).kind == OPEN
    assert judge(Sample((math.inf,) * 2), "> 100", 20, False).kind == OPEN
    assert judge(Sample((14.0, 19.0, 22.0)), 3.0, 1, False) == (OPEN, "+511 %, a wide spread")
    assert judge(Sample((0.1, -0.1, 0.3)), 0.0, 1, False).kind == AGREES


def test_counts_that_never_vary_still_have_a_spread():
    assert judge(Sample((5.0,) * 5), 5.1, 20, False).kind == AGREES
    assert judge(Sample((5.0,) * 20), 6.1, 20, False).kind == OFF
    assert judge(Sample((0.5,) * 20), 0.6, 20, False).kind == OFF


@given(st.lists(st.floats(1, 100), min_size=3, max_size=20), st.floats(0, 50), st.floats(0, 50))
def test_a_number_farther_away_never_has_a_better_verdict(values, near, far):
    near, far = sorted((near, far))
    worth = [AGREES, SPREAD, OPEN, OFF]
    ours = Sample(tuple(values))
    kinds = [judge(ours, ours.mean + away, 20, False).kind for away in (near, far)]
    assert far - near < 1 or worth.index(kinds[0]) <= worth.index(kinds[1])


def claim(samples, **said):
    rows = ["A", "B"]
    bench = Bench(
        title="",
        source="",
        seeds=1,
        report=1,
        columns=Columns(key="algorithm.k0", values=[1, 2, 3]),
        block=[Block(name="", rows=[{"name": row} for row in rows])],
    )
    found = {
        (Cell("", row, value), "rounds"): Sample((number, number))
        for row, numbers in zip(rows, samples, strict=True)
        for value, number in zip((1, 2, 3), numbers, strict=True)
    }
    return examine(bench, Claim(text="", measure="rounds", **said), found).text


@pytest.mark.parametrize(
    ("a", "b", "said", "text"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds"),
        ([1.0, 2.0, 5.0], [2.0, 3.0, 4.0], {"order": ["A", "B"]}, "holds in 2 of 3"),
        ([1.0, 2.0, 5.0], [math.inf] * 3, {"order": ["A", "B"]}, "holds"),
        ([1.0, 2.0, math.inf], [math.inf] * 3, {"order": ["A", "B"]}, "holds, 1 not decided"),
        ([1.0, math.inf, math.inf], [math.inf, 1.0, math.inf], {"order": ["A", "B"]}, "holds in 1 of 2, 1 not decided"),
        ([math.inf, 2.0, math.inf], [3.0, 2.0, 1.0], {"falls": ["A", "B"]}, "holds, 1 not decided"),
        ([math.inf] * 3, [math.inf] * 3, {"rises": ["A", "B"]}, "not decided: all ended at a limit"),
        ([3.0, 2.0, 1.0], [1.0, 1.0, 1.0], {"falls": ["A", "B"]}, "holds in 1 of 2"),
        ([math.inf, 2.0, 1.0], [1.0, 1.0, 1.0], {"falls": ["A"]}, "holds"),
        ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], {"rises": ["A"]}, "holds"),
        ([1.0, 1.1, 1.0], [1.0, 2.0, 1.0], {"flat": ["A", "B"]}, "holds in 1 of 2"),
        ([1.0, 1.0, 1.0], [1.01, 1.0, 1.3], {"equal": ["A", "B"], "within": 0.02}, "holds in 2 of 3"),
        ([1.0, 1.0, 1.0], [1.01, 1.0, 1.3], {"below": ["A", "B"], "bound": 1.0}, "holds in 4 of 6"),
        ([math.nan] * 3, [1.0] * 3, {"order": ["A", "B"]}, "not reachable here"),
    ],
)
def test_claims(a, b, said, text):
    assert claim([a, b], **said) == text


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (Sample((100.0,) * 2, 2), Sample((100.0,) * 2, 2), "not decided: all ended at a limit"),
        (Sample((100.0,) * 2, 2), Sample((90.0,) * 2), "does not hold"),
        (Sample((90.0,) * 2), Sample((100.0,) * 2, 2), "holds"),
    ],
)
def test_runs_that_ended_at_the_same_limit_decide_nothing(a, b, text):
    bench = Bench(title="", source="", seeds=1, report=1, block=[Block(name="", rows=[{"name": "A"}, {"name": "B"}])])
    found = {(Cell("", "A", None), "rounds"): a, (Cell("", "B", None), "rounds"): b}
    assert examine(bench, Claim(text="", measure="rounds", order=["A", "B"]), found).text == text


def test_an_optimum_is_worked_out_again_where_the_file_of_optima_is_damaged(tmp_path):
    setup = config.experiment({"data": {"clients": 6, "features": 5}, "stop": {"objective_gap": 1e-3, "optimum": 0.0}})
    optimum = Optima(tmp_path).given(setup).stop.optimum
    assert list(Optima(tmp_path).known.values()) == [optimum]
    (tmp_path / "optima.json").write_text('{"a": ')
    assert Optima(tmp_path).given(setup).stop.optimum == optimum
    assert list(tmp_path.iterdir()) == [tmp_path / "optima.json"]


def test_measures_of_a_run():
    result = mpifed.run(
        {"rounds": 8, "data": {"clients": 6, "features": 5}, "stop": {"gradient": 1e-30, "optimum": 1.0}}
    )
    f, none = result.rounds["objective"], Extra({}, {"half": lambda result: result.rounds["objective"] / 2})
    assert np.array_equal(result.rounds["objective_gap"], f - 1.0)
    assert measures.value(result, "objective", none) == f[-1]
    assert measures.value(result, "max objective", none) == f.max()
    assert measures.value(result, "half", none) == f[-1] / 2
    assert measures.value(result, f"rounds at objective <= {f[3]}", none) == np.argmax(f <= f[3])
    assert (
        measures.value(result, f"exchanges at objective <= {f[3]}", none)
        == result.rounds["exchanges"][np.argmax(f <= f[3])]
    )
    assert measures.value(result, "rounds at objective <= -1", none) == math.inf
    assert measures.value(result, "rounds at accuracy >= 0.5", none) != measures.value(result, "rounds", none)
    assert measures.censored(result, "rounds")
    assert np.array_equal(measures.series(result, "iterations", none), 10 * np.arange(9))
    for wrong in ("rounds at objective", "max f g", "rounds at accuracy >= x", "rounds at accuracy > 0.5"):
        with pytest.raises(UserError, match="is no measure"):
            measures.parsed(wrong)


def test_the_optimum_is_that_of_normal_equations(tmp_path):
    study = config.experiment({"data": {"clients": 7, "features": 4, "least": 5, "most": 9}, "seed": 3})
    data = study.data.load(3, "float64")
    a, b = data.rows(0, data.m)
    weights = np.repeat(1 / (data.m * data.sizes), data.sizes)
    x = np.linalg.solve(a.T @ (weights[:, None] * a), a.T @ (weights * b))
    least = 0.5 * float(weights @ (a @ x - b) ** 2)
    found = Optima(tmp_path).given(study).stop.optimum
    assert found == pytest.approx(least, abs=1e-14)
    assert Optima(tmp_path).given(study).stop.optimum == found


@pytest.mark.skipif(
    not os.environ.get("MPIFED_BENCHMARKS"), reason="takes ten minutes: MPIFED_BENCHMARKS=1 asks for it"
)
def test_the_quick_report_on_all_papers(tmp_path):
    done = execute([sys.executable, "-m", "benchmarks", "report", "--quick", "--to", tmp_path], timeout=1800, cwd=ROOT)
    assert done.code == 0, done.err
    page = (tmp_path / "quick" / "report.md").read_text("utf-8")
    assert all(f": {name}" in page for name in benches.names())
    assert verdict.AGREES in page
