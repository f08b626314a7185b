"""The summary of `mpifed show`: its words, its size on a screen, curves in a line of text, and the ranks of a run."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.report.summary import (
    BLOCKS,
    MIB,
    binding_line,
    gaps_above_smallest,
    memory_option,
    memory_per_cpu,
    peak_memory,
    rank_lines,
    show,
    sparkline,
)
from mpifed.results.result import load
from tests.helpers.recorded_runs import CONFIG
from tests.helpers.recorded_runs import detailed as run

STORY = """
fedgia on least-squares / linreg-noniid: 8 clients, 6 parameters, 3 ranks
finished (gradient: 1e-09 <= 1e-07) after 4 rounds
objective 8 → 0.5 | ‖∇f‖² 1 → 0.0001 | accuracy 0.9876
exchanges 8 | uploads 16 | downloads 32 | up 768 kB (768,000) | down 1.536 MB (1,536,000)
TCT 2 | LCT 0.25 | CR 4 | compute, slowest rank 10 | compute, all clients 7.5
evaluation 10 | server 0.625 | communication 0.3125
"""
SETTINGS = """seed 3 | rounds 100 | dtype float64 | data linreg-noniid | data.clients 8 | data.partition iid
problem least-squares | algorithm fedgia | algorithm.k0 5 | selection uniform | selection.share 0.5"""


def holds(text, parts):
    """Whether a summary has all parts, however they are aligned."""
    words = " ".join(text.split())
    return all(part.strip() in words for line in parts.splitlines() for part in line.split(" | "))


def test_show_tells_the_whole_story(tmp_path):
    path = tmp_path / "out.h5"
    text = show(run(path))
    assert holds(text, STORY)
    assert holds(text, SETTINGS), "every key of a configuration that does not say what is at its default"
    assert text == show(load(path))
    (line,) = (line for line in text.split("\n") if "TCT:" in line)
    told = "CR: rounds · TCT: time without evaluation · LCT: a round's computation, slowest rank"
    assert line == " " * 15 + told
    row = "2 node0002 4 20 0.2857 0.5000 12.35 0 0.0000 77 2.500 0.0010 95.24"
    assert text.split("\n")[-1].split() == row.split()


def shown(everything=False, config=CONFIG, **attrs):
    """The summary of a run whose file has these attributes."""
    result = run(config=config)
    result.attrs.update(attrs)
    return show(result, everything)


def test_curves_are_lines_of_the_outcome_and_a_gradient_that_is_stopped_by_over_m_squared_is_shown_so():
    for rounds in (1, 2, 300, 41):
        text = show(run(rounds=rounds))
        lines = [line for line in text.split("\n") if any(block in line for block in BLOCKS)]
        assert len(lines) == (2 if rounds > 1 else 0)
        assert max(map(len, text.split("\n"))) <= 100
    (objective, gradient) = lines
    assert objective.startswith("outcome        objective  8 → ")
    assert gradient.split()[:4] == ["‖∇f‖²", "1", "→", "1e-40"]
    assert gradient.endswith("▁  log scale")
    text = show(run(config=CONFIG + '[stop]\ngradient_scale = "m^2"\n'))
    assert "‖∇f‖²/m² 0.01562 → 1.56" in " ".join(text.split())
    assert "‖∇f‖²/m²" not in show(run())


def test_show_leaves_out_what_is_at_its_default_and_shows_all_on_wish():
    whole = CONFIG + "[stop]\ngradient = 0.5\naccuracy = 0.0\n[evaluate]\nevery = 1\n"
    changed = "seed data.clients stop.gradient"
    short, whole = (shown(everything, whole, changed=changed) for everything in (False, True))
    always = "seed 3 | data.clients 8 | data.partition iid | algorithm.k0 5 | selection.share 0.5"
    assert holds(short, f"{always} | stop.gradient 0.5")
    assert holds(whole, f"{always} | dtype float64 | stop.accuracy 0.0 | evaluate.every 1")
    assert not any(holds(short, key) for key in ("dtype float64", "stop.accuracy 0.0", "evaluate.every 1"))


def test_what_the_run_said_of_itself_is_shown_whole():
    note = "fedgia asks all clients; " + "which is a sentence that is longer than a line, " * 3
    lines = shown(notes=note + "\nand another").split("\n")
    assert max(map(len, lines)) <= 100
    assert " ".join(note.split()) in " ".join(" ".join(lines).split())
    assert any(line.strip() == "and another" for line in lines)
    because = "a core has 2,048 KiB of L2 cache"
    assert f"blocks of 1,048,576 bytes, because {because}" in shown(block_bytes=1 << 20, block_bytes_reason=because)
    assert "sums over clients: star up to 102" in shown(everything=True, reduction="star up to 102")
    assert "sums over clients" not in shown(reduction="star up to 102")
    result = run()
    assert not any(words in show(result) for words in ("blocks", "selection has no effect"))
    result.clients["times_selected"][:] = 0
    assert "fedgia asks all clients; selection has no effect" in show(result)


def test_long_values_have_lines_of_their_own_and_a_long_title_leaves_out_version_and_time():
    config = CONFIG.replace('name = "linreg-noniid"', f'name = "file"\npath = "/scratch/{"very-" * 30}long.h5"')
    text = show(run(config=config))
    lines = text.split("\n")
    assert max(map(len, lines)) <= 100
    assert "long.h5" in text
    assert any("algorithm.k0" in line and "seed" in line for line in lines)  # the others keep their columns
    (names, end) = show(run(reason="gradient: " + "9" * 60)).split("\n")[:2]
    assert "· mpifed" in names
    assert end == f"finished (gradient: {'9' * 60}) after 4 rounds"
    (_, end) = show(run(reason="9 " * 60)).split("\n")[:2]
    assert len(end) <= 100
    assert end.endswith(" …")
    ends = {"failed": "failed (ValueError: bad) after 4 rounds", "running": "running, or killed after 4 rounds"}
    assert all(words in show(run(status=status, reason="ValueError: bad")) for status, words in ends.items())


def test_a_result_fits_on_a_screen_and_many_ranks_are_summed_up():
    for ranks in (1, 2, 3, 16, 17, 1000):
        lines = show(run(ranks=ranks)).split("\n")
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 100
        head = next(k for k, line in enumerate(lines) if line.split()[:2] == ["rank", "host"])
        rows = [str(k) for k in range(ranks)] if ranks <= 16 else ["min", "median", "max"]
        assert [line.split()[0] for line in lines[head + 1 :]] == rows


def test_a_falling_curve_falls_and_decades_are_shown_in_logarithms():
    assert sparkline(np.arange(8.0)[::-1]) == (BLOCKS[::-1], False)
    assert sparkline(10.0 ** -np.arange(8.0)) == (BLOCKS[::-1], True)
    blocks = {(99.0, 1.0): ("█▁", False), (100.0, 1.0): ("█▁", True)}
    blocks |= {(1e9, 1.0, 0.0): ("█▁▁", False), (-1e9, 1.0): ("▁█", False)}
    # what does not move has no curve, and rounds without a value are left out
    blocks |= dict.fromkeys([(), (1.0,), (2.0, 2.0), (np.nan, 1.0), (np.inf, -np.inf)], ("", False))
    blocks |= {(4.0, np.nan, 2.0, np.inf, 0.0): ("█▅▁", False)}
    assert {values: sparkline(np.array(values)) for values in blocks} == blocks
    for rounds in (2, 40, 41, 100_000):  # long runs have the width of short ones and keep their ends
        curve, _ = sparkline(np.linspace(5.0, 1.0, rounds))
        assert len(curve) == min(rounds, 40)
        assert (curve[0], curve[-1]) == ("█", "▁")
        assert list(curve) == sorted(curve, reverse=True)


@given(st.lists(st.floats(), max_size=60), st.integers(2, 50))
def test_any_values_make_a_line_of_blocks_and_finite_ones_have_positive_distances(values, width):
    curve, _ = sparkline(np.array(values, float), width)
    assert len(curve) <= width
    assert set(curve) <= set(BLOCKS)
    found = gaps_above_smallest(np.clip(values, -1e300, 1e300))
    assert found is None or (found > 0).all()


def test_values_that_have_settled_are_shown_by_their_distance_from_the_least_but_not_what_rounding_decides():
    values = 1.8 + 10.0 ** -np.arange(8.0)
    np.testing.assert_allclose(gaps_above_smallest(values), [*(values[:-1] - values[-1]), values[-2] - values[-1]])
    values = np.array([2.0, 1.0, 1.0, 1.0 + 2e-16, 1.0 - 1e-16, 1.0])
    assert sparkline(gaps_above_smallest(values)) == ("█▁▁▁▁▁", True)
    for values in (np.arange(8.0), [2.0, 1.5, 1.25, 1.125], 1 + 1e-16 * np.arange(9.0), [], [np.nan, np.inf]):
        assert gaps_above_smallest(np.array(values)) is None


def line_about_ranks(cpus, hosts=None, threads=None):
    """Return the line about ranks with these CPUs, hosts and threads."""
    result = run(ranks=len(cpus))
    result.ranks["cpus"] = np.array(cpus, object)
    result.ranks["threads"] = np.array(threads or [1] * len(cpus))
    result.ranks["hostname"] = np.array(hosts or ["node1.example"] * len(cpus), object)
    (line,) = binding_line(result)
    assert rank_lines(result, 16)[1] == line
    return line.strip()


@pytest.mark.parametrize(
    ("cpus", "hosts", "threads", "line"),
    [
        (["0-3"], None, None, "1 thread; may use CPUs 0-3"),
        (["0-3"], None, [4], "4 threads; may use CPUs 0-3"),
        (["0-1"] * 3, None, None, "1 thread a rank; not bound: 3 ranks share CPUs 0-1"),
        (["0", "1"], None, None, "1 thread a rank; bound to CPUs 0 | 1"),
        (["0", "1", "1"], None, None, "1 thread a rank; bound, but not each to its own: 2 ranks share CPUs 1"),
        (["0-7", "0-7"], ["a", "b"], [2, 8], "2 to 8 threads a rank; may use CPUs 0-7"),
        (["0-7"] * 3, ["a", "b.eu", "b.eu"], None, "1 thread a rank; not bound: 2 ranks share CPUs 0-7 on b"),
        ([""], None, None, "1 thread"),
    ],
)
def test_threads_and_binding_are_a_line(cpus, hosts, threads, line):
    assert line_about_ranks(cpus, hosts, threads) == line


def test_many_cpus_do_not_break_the_line_and_a_file_that_does_not_tell_has_none():
    line = line_about_ranks([str(k) for k in range(0, 200, 2)])
    assert len(line) <= 85
    assert line.startswith("1 thread a rank; bound to CPUs 0 | 2 | ")
    assert line.endswith(" …")
    assert binding_line(run()) == []


def test_a_quarter_more_than_the_largest_peak_in_two_digits_is_asked_for_each_cpu_of_a_rank():
    asked = {1: 2, 79: 99, 80: 100, 81: 110, 100: 130, 800: 1000, 801: 1100, 5000: 6300}
    assert {peak: memory_per_cpu(np.array([0.2, peak, 0.5]) * MIB) for peak in asked} == asked
    for peak in np.geomspace(1, 1e6, 50):
        assert 1.25 * peak <= memory_per_cpu(np.array([peak]) * MIB) <= 1.25 * peak * 1.1 + 1
    assert memory_option(np.array([800.0]) * MIB, 4) == "--mem-per-cpu=250M"
    assert memory_option(np.zeros(3)) == memory_option(np.zeros(0)) == "", "nothing was measured"


def test_memory_that_a_machine_has_once_is_asked_for_once():
    ranks = {
        "max_rss_bytes": np.array([300.0, 300, 300, 300]) * MIB,
        "shared_bytes": np.array([200.0, 200, 200, 400]) * MIB,
        "hostname": np.array(["a", "a", "b", "a"]),
    }
    assert np.array_equal(peak_memory(ranks), np.array([100 + 200 / 3, 100 + 200 / 3, 300, 0 + 300 / 3]) * MIB)
    del ranks["shared_bytes"]  # of a file of an earlier version
    assert np.array_equal(peak_memory(ranks), ranks["max_rss_bytes"])


def test_the_summary_of_several_ranks_has_the_option_and_that_of_one_has_not():
    for size in (2, 3, 1000):
        result = run(ranks=size)
        (found,) = re.findall(r"peak memory; ask for (--mem-per-cpu=\d+M)$", show(result), re.M)
        assert found == memory_option(result.ranks["max_rss_bytes"])
    assert "--mem-per-cpu" not in show(run(ranks=1))
