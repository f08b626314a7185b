"""Which runs form a row, which settings lead it, and what they are called: as in print, or as the user says."""

import pytest

from mpifed.core.errors import UserError
from mpifed.report import boxplot, plot
from mpifed.report.names import AS_PRINTED, method_title, setting_letter, setting_title
from mpifed.report.settings import group_label, group_runs
from tests.helpers.compared_runs import cells, compare, seeds
from tests.helpers.figures import axes_of, grid, legend, ticks
from tests.helpers.recorded_runs import recorded


def test_runs_that_differ_only_in_the_seed_are_a_row_with_mean_and_deviation_led_by_the_settings_that_differ():
    head, [row] = cells(compare(seeds(1.0, 2.0, 3.0), columns=["objective"]))
    assert head == ["algorithm", "n", "objective"]
    assert row == ["FedGiA", "3", "2.0 ± 1.0"]  # of a sample: ((1 + 0 + 1) / 2) ** ½
    assert cells(compare(seeds(1.25), columns=["objective"])) == (["algorithm", "objective"], [["FedGiA", "1.25"]])
    head, rows = cells(compare([*seeds(1.0, k0=5), *seeds(2.0, k0=10)], columns=["objective"]))
    assert head == ["algorithm", "k₀", "objective"]
    assert rows == [["FedGiA", "5", "1"], ["FedGiA", "10", "2"]]  # 5 before 10: by number


def test_options_of_others_checkpoints_and_optima_are_no_difference_and_a_table_is_one():
    made = group_runs([*seeds(1.0), *seeds(1.0, name="fedadmm", nu=0.9, inner_max=3)])
    assert list(made.keys) == ["algorithm"]
    assert list(group_runs([*seeds(1.0), *seeds(1.0, H="gram")]).keys) == ["algorithm", "algorithm.H"]
    system = {"system": {"speed": 1e4, "latency": 0.1}}
    assert list(group_runs([*seeds(1.0), *seeds(1.0, config=system)]).keys) == ["algorithm", "system"]
    results = [recorded(config={"data": {"share": share}, "selection": {"share": share}}) for share in (0.1, 0.2)]
    assert list(group_runs(results).keys.values()) == ["algorithm", "data.share", "selection.share"]
    longer = [recorded(config={"rounds": rounds}) for rounds in (100, 200)]
    assert cells(compare(longer, columns=["rounds"]))[0] == ["algorithm", "rounds (setting)", "CR"]
    results = [recorded(ranks=2), recorded(ranks=4), recorded(ranks=4, config={"checkpoint": {"every_seconds": 1.0}})]
    made = group_runs(results)
    assert list(made.keys) == ["algorithm", "ranks"]
    assert [len(group.runs) for group in made.groups] == [1, 2]
    made = group_runs([recorded(seed=s, config={"stop": {"optimum": 1.0 + s}}) for s in range(3)])
    assert [len(group.runs) for group in made.groups] == [3]


def test_means_are_taken_over_other_settings_too_or_none():
    results = [*seeds(1.0, 3.0, k0=5), *seeds(5.0, 7.0, k0=10)]
    _, rows = cells(compare(results, by=["seed", "algorithm.k0"], columns=["objective"]))
    assert rows == [["FedGiA", "4", "4.0 ± 2.6"]]
    head, rows = cells(compare(results, by=[], columns=["objective"]))
    assert (head, len(rows)) == (["algorithm", "k₀", "seed", "objective"], 4)
    with pytest.raises(UserError, match=r"unknown setting 'algorithm\.k1'; did you mean 'algorithm\.k0'"):
        compare(results, by=["algorithm.k1"])


def labels(runs, **options):
    made = group_runs(runs, **options)
    return [group_label(group, made) for group in made.groups]


def test_a_run_is_named_by_what_tells_it_apart():
    stops = [{"stop": {"gradient": 1e-3}, "rounds": 7}, {"stop": {"gradient": 1e-9}}]
    assert labels([recorded(k0=5 + k, config=config) for k, config in enumerate(stops)]) == ["k₀ = 5", "k₀ = 6"]
    bounds = [recorded(config={"stop": {"gradient": bound}}) for bound in (1e-3, 1e-6)]
    assert sorted(labels(bounds)) == ["gradient = 0.001", "gradient = 1e-06"]
    runs = [recorded(k0=5), recorded(k0=10), recorded(name="fedavg", k0=7)]
    assert sorted(labels(runs)) == ["FedAvg", "FedGiA, k₀ = 10", "FedGiA, k₀ = 5"]
    runs = [recorded(), recorded(name="fedadmm", config={"data": {"name": "qot"}})]
    assert sorted(labels(runs)) == ["FedADMM, qot", "FedGiA, linreg-noniid"]


def test_settings_are_the_letters_of_the_papers_and_methods_are_spelt_as_there():
    letters = {"k0": "k₀ $k_{0}$", "rho": r"ρ $\rho$", "lam": r"λ $\lambda$", "eps0": r"ε₀ $\epsilon_{0}$"}
    letters |= {"mu0": r"μ₀ $\mu_{0}$", "H": "H $H$", "batch_size": "batch size batch size"}
    letters |= {name: f"{name} {name}" for name in ("clients", "data.alpha")}
    assert {n: f"{setting_title(n)} {AS_PRINTED.latex(f'algorithm.{n}', n)}" for n in letters} == letters
    assert setting_letter("server_lr") is None
    methods = {"fedgia": "FedGiA", "scaffold": "SCAFFOLD", "pfedme": "pFedMe", "fedadmm-deep": "FedADMM (deep)"}
    methods["descent.py:GradientDescent"] = "GradientDescent"
    assert {name: method_title(name) for name in methods} == methods


def test_classes_of_one_name_are_told_apart_by_their_files():
    names = ["a.py:Mine", "b.py:Mine", "/x/c.py:Mine", "/y/c.py:Mine", "d.py:Other", "fedavg", "e.py:FedAvg"]
    results = [recorded(name=name) for name in names]
    made = group_runs(results)
    told = {group.settings["algorithm"]: group_label(group, made) for group in made.groups}
    assert list(map(told.get, names)) == [
        *("Mine (a.py)", "Mine (b.py)", "Mine (/x/c.py)", "Mine (/y/c.py)", "Other", "FedAvg", "FedAvg (e.py)")
    ]
    assert [row[0] for row in cells(compare(results, columns=["objective"]))[1]] == list(told.values())
    again = compare(results[:2], columns=["objective"], rename=["Mine (a.py)=ours", "b.py:Mine=theirs"])
    assert [row[0] for row in cells(again)[1]] == ["ours", "theirs"]


def test_a_curve_is_called_what_the_user_says():
    for rename, wanted in (
        (["k0=local steps"], ["local steps = 5", "local steps = 10"]),
        (["k₀=local steps"], ["local steps = 5", "local steps = 10"]),
        (["algorithm.k0=K"], ["K = 5", "K = 10"]),
        (["k0=5=few", "k₀ = 10=many (t = 3)"], ["few", "many (t = 3)"]),
    ):
        assert labels(grid(2.0, 1.0), rename=rename) == wanted
    assert legend(plot.plot_lines(grid(2.0, 1.0), rename=rename)) == wanted


def test_methods_columns_and_whole_labels_can_be_renamed():
    runs = [recorded(), recorded(name="fedavg", k0=7)]
    figure = plot.plot_lines(
        runs, x="bytes", rename=["fedgia=ours", "objective=f", "bytes=traffic", "fedavg=the others"]
    )
    assert legend(figure) == ["the others", "ours"]
    (axis,) = axes_of(figure)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("traffic (kB)", "f")
    (axis,) = axes_of(boxplot.plot_boxes(runs, "algorithm", rename=["fedgia=ours", "algorithm=method"]))
    assert (axis.get_xlabel(), ticks(axis)) == ("method", ["FedAvg", "ours"])
