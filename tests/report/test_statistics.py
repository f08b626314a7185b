"""Statistics of paired runs, against the definitions written as loops."""

from itertools import combinations, product
from itertools import pairwise as neighbours

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report import compare, profile
from mpifed.report.compare import TableOptions
from mpifed.report.statistics import (
    bootstrap_band,
    cost_ratios,
    holm_correction,
    pairwise_tests,
    performance_profile,
    signed_rank_test,
)
from tests.helpers.commands import mpifed
from tests.helpers.recorded_runs import recorded

RNG = np.random.default_rng(5)
COSTS = np.where(RNG.random((30, 4)) < 0.2, np.inf, RNG.integers(1, 9, (30, 4)).astype(float))


def test_a_profile_counts_instances_within_a_factor_of_the_best_and_misses_and_noughts_have_no_factor():
    factors = [1.0, 1.5, 2.0, 8.0]
    for k, factor in product(range(4), factors):
        within = sum(np.isfinite(row[k]) and row[k] <= factor * min(row) for row in COSTS)
        assert performance_profile(COSTS, factors)[k, factors.index(factor)] == within / 30
    ratios = cost_ratios([[np.inf, np.inf], [0.0, 1.0], [0.0, 0.0]])
    assert ratios.tolist() == [[np.inf] * 2, [1.0, np.inf], [1.0, 1.0]]


def test_holms_correction():
    p = RNG.random(7).tolist()
    order = sorted(range(7), key=p.__getitem__)
    wanted = {index: max((7 - k) * p[order[k]] for k in range(place + 1)) for place, index in enumerate(order)}
    assert holm_correction(p) == [min(1.0, wanted[k]) for k in range(7)]
    assert holm_correction([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_tests_of_pairs_are_sums_over_all_signs_corrected_for_their_number():
    d = np.array([3.0, -1.0, 4.0, 2.0, 7.0, -0.5, 5.0])
    ranks = np.argsort(np.argsort(abs(d))) + 1
    middle, own = sum(ranks) / 2, sum(ranks[d > 0])
    beyond = [abs(sum(r for r, up in zip(ranks, ups, strict=True) if up) - middle) for ups in product((0, 1), repeat=7)]
    assert signed_rank_test(d) == pytest.approx(np.mean(np.array(beyond) >= abs(own - middle)))
    assert signed_rank_test(np.zeros(3)) == 1.0
    costs = RNG.random((12, 4))
    costs[3] = 0.5
    found = pairwise_tests(costs)
    pairs = list(combinations(range(4), 2))
    counts = [(sum(costs[:, a] < costs[:, b]), sum(costs[:, b] < costs[:, a])) for a, b in pairs]
    assert [pair[:2] for pair in found] == pairs
    assert [(pair.wins, pair.losses) for pair in found] == counts
    assert [pair.p for pair in found] == holm_correction(
        [signed_rank_test(costs[:, a] - costs[:, b]) for a, b in pairs]
    )


def test_bands_draw_whole_groups_so_that_seeds_of_one_workload_do_not_make_them_narrow():
    groups = [np.full((50, 1), value) for value in (0.0, 1.0)]
    found = bootstrap_band(groups, lambda one: one.mean(axis=0))
    assert (found.middle.item(), found.low.item(), found.high.item()) == (0.5, 0.0, 1.0)
    many = bootstrap_band([np.concatenate(groups)], lambda one: one.mean(axis=0))
    assert 0.35 < many.low.item() < many.middle.item() == 0.5 < many.high.item() < 0.65


def test_a_profile_of_runs_pairs_them_by_data_and_seed():
    def run(name, seed, clients):
        return recorded(name=name, seed=seed, config={"data": {"clients": clients}})

    runs = [run(name, s, c) for name, s, c in product(("gd", "fedavg"), (0, 1), (4, 9))]
    values = [1.0, 2.0, 3.0, 4.0, 2.0, 2.0, 1.0, np.inf]
    found = profile.collect_costs(runs, values)
    assert (found.labels, found.methods, len(found.groups)) == (["FedAvg", "GD"], ["fedavg", "gd"], 2)
    assert sorted(np.concatenate(found.groups).tolist()) == [[1, 3], [2, 1], [2, 2], [np.inf, 4]]
    lacking = "runs on the same data and seeds: FedAvg lacks some"
    for count, of, told in ((7, values, lacking), (4, values, "there is one method"), (8, [-1.0] * 8, "never below 0")):
        with pytest.raises(UserError, match=told):
            profile.collect_costs(runs[:count], of[:count])
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
    for files, name, form, words in (
        (runs[::7], "objectiv", "terminal", "did you mean 'objective'"),
        (runs[::7], "objective", "csv", "--test does not go with --format csv"),
        (runs[::7], "snr", "terminal", "unknown column 'snr'"),
        (runs[:1], "objective", "terminal", "--test objective is wrong: it needs two rows, and there is one"),
    ):
        done = mpifed("compare", *files, "--test", name, "--format", form, cwd=tmp_path)
        assert (done.code, words in done.err) == (2, True), done
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
        return compare.compare_pairs(runs, "accuracy" if columns else "objective", TableOptions(format=form))

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
    shown = [
        label for tick, label in zip(axis.get_xticks(), axis.get_xticklabels(), strict=True) if low <= tick <= high
    ]
    wanted = [10**power * one for power in range(4) for one in (1, 2, 5)]
    assert [label.get_text() for label in shown] == [str(one) for one in wanted if one <= last]
    assert not len(axis.get_xticks(minor=True))
    boxes = [label.get_window_extent() for label in shown]
    assert all(a.x1 < b.x0 for a, b in neighbours(boxes)), "no label covers the next"
