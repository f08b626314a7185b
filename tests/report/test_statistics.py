"""Statistics of paired runs, against the definitions written as loops."""

from itertools import pairwise as neighbours
from itertools import product
from math import comb

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report import compare, profile
from mpifed.report.compare import TableOptions
from mpifed.report.statistics import (
    bootstrap_band,
    cost_ratios,
    find_winners,
    holm_correction,
    pairwise_tests,
    sign_test,
    signed_rank_test,
)
from mpifed.report.statistics import performance_profile as shares
from tests.helpers.commands import mpifed
from tests.helpers.recorded_runs import recorded

RNG = np.random.default_rng(5)
COSTS = np.where(RNG.random((30, 4)) < 0.2, np.inf, RNG.integers(1, 9, (30, 4)).astype(float))


def test_a_profile_counts_instances_within_a_factor_of_the_best():
    factors = [1.0, 1.5, 2.0, 8.0]
    for k, factor in product(range(4), factors):
        within = 0
        for row in COSTS:
            within += np.isfinite(row[k]) and row[k] <= factor * min(row)
        assert shares(COSTS, factors)[k, factors.index(factor)] == within / 30


def test_where_all_miss_nobody_is_within_a_factor_and_a_cost_of_0_is_only_matched_by_0():
    assert cost_ratios([[np.inf, np.inf], [0.0, 1.0], [0.0, 0.0]]).tolist() == [[np.inf] * 2, [1.0, np.inf], [1.0, 1.0]]


def test_holms_correction():
    p = RNG.random(7).tolist()
    order = sorted(range(7), key=p.__getitem__)
    wanted = {index: max((7 - k) * p[order[k]] for k in range(place + 1)) for place, index in enumerate(order)}
    assert holm_correction(p) == [min(1.0, wanted[k]) for k in range(7)]
    assert holm_correction([]) == []
    assert holm_correction([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_tests_of_pairs_are_sums_over_all_signs():
    for wins, losses in ((7, 1), (3, 3), (0, 5)):
        n, seen = wins + losses, comb(wins + losses, wins)
        assert sign_test(wins, losses) == pytest.approx(
            sum(c for k in range(n + 1) if (c := comb(n, k)) <= seen) / 2**n
        )
    assert sign_test(0, 0) == signed_rank_test(np.zeros(3)) == 1.0
    d = np.array([3.0, -1.0, 4.0, 2.0, 7.0, -0.5, 5.0])
    ranks = np.argsort(np.argsort(abs(d))) + 1
    middle, own = sum(ranks) / 2, sum(ranks[d > 0])
    beyond = [abs(sum(r for r, up in zip(ranks, ups, strict=True) if up) - middle) for ups in product((0, 1), repeat=7)]
    assert signed_rank_test(d) == pytest.approx(np.mean(np.array(beyond) >= abs(own - middle)))


def test_pairs_count_a_miss_as_more_than_any_cost_and_are_corrected_for_their_number():
    found = pairwise_tests(COSTS)
    assert [(pair.a, pair.b) for pair in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for pair in found:
        wins = sum(row[pair.a] < row[pair.b] for row in COSTS)
        losses = sum(row[pair.b] < row[pair.a] for row in COSTS)
        assert (pair.wins, pair.losses) == (wins, losses)
    assert [pair.p for pair in found] == holm_correction([sign_test(pair.wins, pair.losses) for pair in found])


def test_bands_draw_whole_groups_so_that_seeds_of_one_workload_do_not_make_them_narrow():
    groups = [np.full((50, 1), value) for value in (0.0, 1.0)]
    found = bootstrap_band(groups, lambda one: one.mean(axis=0))
    assert (found.middle.item(), found.low.item(), found.high.item()) == (0.5, 0.0, 1.0)
    many = bootstrap_band([np.concatenate(groups)], lambda one: one.mean(axis=0))
    assert 0.35 < many.low.item() < many.middle.item() == 0.5 < many.high.item() < 0.65


def test_those_tie_whose_bands_reach_that_of_the_best():
    found = bootstrap_band([np.array([[1.0, 5.0, 2.0], [3.0, 6.0, 2.5]])], lambda one: one.min(axis=0))
    assert find_winners(found, better=-1) == [0, 2]
    assert find_winners(found) == [1]


def test_a_profile_of_runs_pairs_them_by_data_and_seed():
    def run(name, seed, clients, f):
        return recorded(name=name, seed=seed, objective=f, config={"data": {"clients": clients}})

    runs = [run(name, s, c, (8.0, 2.0)) for name, s, c in product(("gd", "fedavg"), (0, 1), (4, 9))]
    values = [1.0, 2.0, 3.0, 4.0, 2.0, 2.0, 1.0, np.inf]
    found = profile.collect_costs(runs, values)
    assert found.labels == ["FedAvg", "GD"]
    assert found.methods == ["fedavg", "gd"]
    assert sorted(np.concatenate(found.groups).tolist()) == [[1, 3], [2, 1], [2, 2], [np.inf, 4]]
    assert len(found.groups) == 2
    with pytest.raises(UserError, match="runs on the same data and seeds: FedAvg lacks some"):
        profile.collect_costs(runs[:-1], values[:-1])
    with pytest.raises(UserError, match="there is one method"):
        profile.collect_costs(runs[:4], values[:4])
    with pytest.raises(UserError, match="never below 0"):
        profile.collect_costs(runs, [-1.0] * 8)
    mine = [recorded(name=name, seed=seed) for name, seed in product(("a.py:Mine", "b.py:Mine"), (0, 1))]
    assert profile.collect_costs(mine, values[:4]).labels == ["Mine (a.py)", "Mine (b.py)"]


def test_compare_tests_every_two_rows_over_the_seeds_that_all_have_and_plot_draws_a_profile(tmp_path):
    for seed, name in product(range(7), ("gd", "fedavg")):
        f = 2.0 + seed / 10 + (name == "gd")
        recorded(tmp_path / f"{name}{seed}.h5", name=name, seed=seed, objective=(8.0, f))
    runs = sorted(path.name for path in tmp_path.glob("*.h5"))
    told = mpifed("compare", *runs, "--test", "objective", cwd=tmp_path).out
    assert told.rstrip().splitlines()[-1].split("  ")[-1].strip() == "0.01562"  # 2/2^7
    assert "FedAvg – GD" in told
    assert "7 : 0" in told
    refused = {
        ("client_seconds", "terminal"): "",
        ("objectiv", "terminal"): "did you mean 'objective'",
        ("objective", "csv"): "--test does not go with --format csv",
    }
    for (name, form), words in refused.items():
        told = mpifed("compare", *runs, "--test", name, "--format", form, cwd=tmp_path)
        assert words in told.err
        assert told.code == (2 if words else 0)
    alone = mpifed("compare", runs[0], "--test", "objective", cwd=tmp_path)
    assert "it needs two rows" in alone.err
    pytest.importorskip("matplotlib")
    mpifed("plot", *runs, "--profile", "rounds to objective <= 2.7", "-o", "a.svg", cwd=tmp_path)
    assert (tmp_path / "a.svg").exists()


@pytest.mark.parametrize(("rows", "seeds", "least", "enough"), [(2, 5, "0.062", 6), (3, 6, "0.094", 7), (2, 1, "1", 6)])
def test_a_test_with_too_few_seeds_is_one_sentence_whose_advice_is_enough(rows, seeds, least, enough):
    def told(count, form="terminal", **columns):
        runs = [
            recorded(k0=k, seed=seed, objective=(8.0, 1.0 + k + seed), columns=columns if k == 1 else None)
            for k, seed in product(range(1, rows + 1), range(count))
        ]
        return compare.compare_pairs(runs, "accuracy" if columns else "objective", TableOptions(form=form))

    for start, form in (("", "terminal"), ("% ", "latex")):
        assert told(seeds, form) == (
            f"{start}--test objective has too few seeds: the {rows} rows share {seeds}, "
            f"with which p is at least {least}; from {enough} on it can be below 0.05"
        )
    assert float(told(enough).split()[-1]) < 0.05
    with pytest.raises(UserError, match="no run of the row k₀ = 2 that counts has accuracy"):
        told(enough, accuracy=(0.0, 0.5))


@pytest.mark.parametrize(("slowest", "last"), [(6.0, 10), (35.0, 20), (700.0, 1000)])
def test_the_factors_of_a_profile_are_1_2_5_10_in_numbers(slowest, last):
    pytest.importorskip("matplotlib")
    costs = profile.Costs(["a", "b", "c"], ["gd"] * 3, [np.array([[1.0, 2.0, slowest], [2.0, 1.0, 2.0]])] * 3)
    figure = profile.plot_profile(costs, "rounds", band="none")
    figure.draw_without_rendering()
    (axis,) = figure.get_axes()
    low, high = axis.get_xlim()
    ticks = zip(axis.get_xticks(), axis.get_xticklabels(), strict=True)
    shown = [label.get_text() for tick, label in ticks if low <= tick <= high]
    wanted = [10**power * one for power in range(4) for one in (1, 2, 5)]
    assert shown == [str(one) for one in wanted if one <= last]
    assert not len(axis.get_xticks(minor=True))
    boxes = [label.get_window_extent() for label in axis.get_xticklabels() if label.get_text() in shown]
    assert all(a.x1 < b.x0 for a, b in neighbours(boxes)), "no label covers the next"
