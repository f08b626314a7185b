"""The studies of speed run at tiny sizes, and find what they should where the answer is known."""

import argparse
import mmap
import re

import numpy as np
import pytest

from benchmarks.speed.studies import predicted_sums, ranks, secondorder, survival
from benchmarks.speed.studies.endurance import GOAL, Mark, line, marked, resident
from benchmarks.speed.studies.predicted_sums import BARE
from tests.benchmarks.speed.conftest import rows
from tests.benchmarks.speed.test_programs import ratios
from tests.helpers.commands import ROOT, mpirun

pytestmark = pytest.mark.slow

DEFAULTS = ranks.parser().parse_args([])
MACHINE = ranks.machine(DEFAULTS)


def test_memory_does_not_grow_with_the_rounds(printed):
    """Growth is of resident memory, seconds are those of a tenth of the rounds at either end."""
    assert marked(21_000) == [1000, 3000, 19_000, 21_000]
    marks = [Mark(1000, 50_000_000, 1.0), Mark(3000, 0, 1.2), Mark(19_000, 0, 2.0), Mark(21_000, 55_000_000, 2.6)]
    text, growth = line("run", marks, 4_000_000)
    assert growth == pytest.approx(10)
    assert text.split() == ["run", "21000", "50.0", "55.0", "10.0", "%", "100", "300", "4.0"]
    table = printed("studies.endurance", "--rounds=20000", "--only=every 100")
    assert table[-1] == f"growth below {GOAL:.0f} %: yes"


def test_resident_memory_is_that_of_this_process():
    """A mapping of its own, as an array may lie in memory that was freed before, and so add nothing."""
    size = 1 << 28
    before = resident()
    with mmap.mmap(-1, size) as held:
        for page in range(0, size, mmap.PAGESIZE):
            held[page] = 1
        after = resident()
    assert 0.9 * size < after - before < 1.1 * size
    assert resident() < after - 0.9 * size


def test_the_seconds_of_a_paper_have_ours_beside(printed):
    table = printed("studies.paper_times", "--seeds", "1", "--only", "V.1 FedGiA", "--k0", "5", "--rounds", "2")
    assert len(ratios(table, 3)) == 2


def test_on_each_way_rank_0_receives_the_messages_that_it_should_and_no_bit_changes(printed, tmp_path):
    mpirun(1)  # skips where there is none
    printed("studies.tree", "--ranks", "2", "3", "5", "--crossing", "2", "--to", tmp_path)
    found = rows(tmp_path / "counts.csv")
    assert all(row["same_bits"] == "True" for row in found)
    messages = {(row["ranks"], row["kind"]): float(row["messages"]) for row in found}
    assert [messages[count, "star"] for count in "235"] == [1, 2, 4]
    assert [messages[count, "tree"] for count in "235"] == [1, 2, 3]
    times = rows(tmp_path / "crossing.csv")
    assert len(times) == 5
    assert all(float(cell) > 0 for row in times for cell in row.values())


def test_the_predicted_way_is_the_fastest_of_mpifed_and_stars_suffer_from_many_ranks(monkeypatch, printed, tmp_path):
    monkeypatch.setattr(predicted_sums, "RANKS", (16, 64, 256))
    monkeypatch.setattr(predicted_sums, "FEATURES", (100, 10_000_000))
    few = {(one.ranks, one.n): one for one in predicted_sums.predictions(1000)}
    for one in few.values():
        assert one.seconds[one.chosen] == min(seconds for way, seconds in one.seconds.items() if way != BARE)
    star, tree = ([few[count, 100].seconds[way] for count in (16, 256)] for way in ("star", "tree"))
    assert star[1] > 10 * star[0]
    assert tree[1] < 4 * tree[0]
    assert few[256, 100].chosen == "tree"
    assert few[64, 10_000_000].chosen == "slices"
    _, *lines, last = printed("studies.predicted_sums", "--clients", "1000", "--to", tmp_path)
    assert [text.split()[:2] for text in lines] == [[n, r] for n in ("100", "10,000,000") for r in ("16", "64", "256")]
    assert all(text.count("*") == 1 for text in lines)
    found = [(int(row["ranks"]), int(row["n"]), row["chosen"]) for row in rows(tmp_path / "predicted_sums.csv")]
    assert found == [(one.ranks, one.n, one.chosen) for one in few.values()]
    picture = tmp_path / "predicted_sums.png"
    assert "needs matplotlib" in last or picture.stat().st_size > 10_000


@pytest.mark.parametrize("reproducible", [True, False])
@pytest.mark.parametrize("n", ranks.FEATURES)
@pytest.mark.parametrize("m", ranks.CLIENTS[:3])
def test_hosts_are_as_efficient_as_asked_and_twice_as_many_are_not(m, n, reproducible):
    best, spent = ranks.most_ranks(MACHINE, m, n, 0.5, reproducible)
    alone = ranks.seconds(MACHINE, 1, m, n, reproducible)
    hosts = best - 1
    assert hosts <= m
    assert spent == ranks.seconds(MACHINE, best, m, n, reproducible)
    assert alone / (hosts * spent) >= 0.5
    if 2 * hosts <= min(m, ranks.MOST):
        assert alone / (2 * hosts * ranks.seconds(MACHINE, 2 * hosts + 1, m, n, reproducible)) < 0.5


def test_a_slow_network_is_worth_fewer_ranks_and_one_process_may_be_the_best_and_the_page_has_the_table():
    assert ranks.table(MACHINE, DEFAULTS.efficiency, True) in (ROOT / "docs" / "clusters.md").read_text("utf-8")
    slow = ranks.machine(ranks.parser().parse_args(["--latency", "1e-3", "--bandwidth", "1e8"]))
    assert ranks.most_ranks(slow, 10_000, 1000, 0.5, True)[0] < ranks.most_ranks(MACHINE, 10_000, 1000, 0.5, True)[0]
    assert ranks.most_ranks(slow, 4, 2, 0.5, True) == (1, ranks.seconds(slow, 1, 4, 2, True))


@pytest.fixture
def phishing(tmp_path, monkeypatch):
    """A few samples in the format of the file."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((142 * 2, 4))
    labels = (samples[:, 0] + 0.5 * rng.standard_normal(len(samples)) > 0).astype(int)
    (tmp_path / "phishing").mkdir()
    lines = [
        f"{label} " + " ".join(f"{k}:{v}" for k, v in enumerate(a, 1)) for label, a in zip(labels, samples, strict=True)
    ]
    (tmp_path / "phishing/phishing").write_text("\n".join(lines))
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))


def test_survival_has_a_line_for_different_and_for_shared_times(printed):
    _, *lines, last = printed(
        "studies.survival", "--clients", "3", "--samples", "40", "--features", "5", "--repeat", "1"
    )
    assert [line.split()[0] for line in lines] == ["all", "30"]
    ratios = [float(line.split()[-1]) for line in lines]
    assert last.endswith("not met" if max(ratios) > survival.GOAL else "met")


@pytest.mark.parametrize("method", secondorder.METHODS)
def test_fednl_and_newtons_method_in_plain_numpy_end_at_the_minimiser(method, phishing):
    table = secondorder.study("phishing", method, samples=2)
    pooled = secondorder.Pooled(table)
    x, steps = pooled.newton()
    run = secondorder.ours(table)
    assert run.result.rounds["grad_norm_sq"][-1] <= secondorder.TOLERANCE**2
    assert run.result.rounds["objective"][-1] == pytest.approx(pooled.value(x), rel=1e-12)
    assert np.allclose(run.result.x, x, atol=1e-5)
    assert 0 < steps < 15
    assert run.seconds > 0
    args = argparse.Namespace(samples=2, repeat=1, launcher="", ranks=3)
    found = secondorder.line("phishing", method, args, pooled)  # rounds, bits, seconds and their ratio
    assert re.fullmatch(rf"phishing +{method} +\d+( +\d+\.\d+){{5}} +\d\.\de-\d\d", found)
