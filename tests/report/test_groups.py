"""Which runs form a row, and which settings lead it."""

import pytest

from mpifed.core.errors import UserError
from mpifed.report.groups import label, study
from tests.helpers.compared_runs import cells, compare, seeds
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
    made = study([*seeds(1.0), *seeds(1.0, name="fedadmm", nu=0.9, inner_max=3)])
    assert list(made.keys) == ["algorithm"]
    assert list(study([*seeds(1.0), *seeds(1.0, H="gram")]).keys) == ["algorithm", "algorithm.H"]
    system = {"system": {"speed": 1e4, "latency": 0.1}}
    assert list(study([*seeds(1.0), *seeds(1.0, config=system)]).keys) == ["algorithm", "system"]
    results = [recorded(config={"data": {"share": share}, "selection": {"share": share}}) for share in (0.1, 0.2)]
    assert list(study(results).keys.values()) == ["algorithm", "data.share", "selection.share"]
    longer = [recorded(config={"rounds": rounds}) for rounds in (100, 200)]
    assert cells(compare(longer, columns=["rounds"]))[0] == ["algorithm", "rounds (setting)", "CR"]
    results = [recorded(ranks=2), recorded(ranks=4), recorded(ranks=4, config={"checkpoint": {"every_seconds": 1.0}})]
    made = study(results)
    assert list(made.keys) == ["algorithm", "ranks"]
    assert [len(group.runs) for group in made.groups] == [1, 2]
    made = study([recorded(seed=s, config={"stop": {"optimum": 1.0 + s}}) for s in range(3)])
    assert [len(group.runs) for group in made.groups] == [3]


def test_means_are_taken_over_other_settings_too_or_none():
    results = [*seeds(1.0, 3.0, k0=5), *seeds(5.0, 7.0, k0=10)]
    _, rows = cells(compare(results, by=["seed", "algorithm.k0"], columns=["objective"]))
    assert rows == [["FedGiA", "4", "4.0 ± 2.6"]]
    head, rows = cells(compare(results, by=[], columns=["objective"]))
    assert (head, len(rows)) == (["algorithm", "k₀", "seed", "objective"], 4)
    with pytest.raises(UserError, match=r"unknown setting 'algorithm\.k1'; did you mean 'algorithm\.k0'"):
        compare(results, by=["algorithm.k1"])


def test_a_run_is_named_by_what_tells_it_apart():
    def named(*configs):
        made = study([recorded(k0=5 + k, config=config) for k, config in enumerate(configs)])
        return [label(group, made) for group in made.groups]

    assert named({"stop": {"gradient": 1e-3}, "rounds": 7}, {"stop": {"gradient": 1e-9}}) == ["k₀ = 5", "k₀ = 6"]
    made = study([recorded(config={"stop": {"gradient": bound}}) for bound in (1e-3, 1e-6)])
    assert sorted(label(group, made) for group in made.groups) == ["gradient = 0.001", "gradient = 1e-06"]
    made = study([recorded(k0=5), recorded(k0=10), recorded(name="fedavg", k0=7)])
    assert sorted(label(group, made) for group in made.groups) == ["FedAvg", "FedGiA, k₀ = 10", "FedGiA, k₀ = 5"]
    made = study([recorded(), recorded(name="fedadmm", config={"data": {"name": "qot"}})])
    assert sorted(label(group, made) for group in made.groups) == ["FedADMM, qot", "FedGiA, linreg-noniid"]
