"""A best at an end of the grid it was chosen from may be none: those that stand there are named here, and why."""

import math
from collections import defaultdict

import numpy as np
import pytest

from benchmarks import bench as benches
from benchmarks import rows as committed
from benchmarks.beyond.least_steps import STEPS
from benchmarks.beyond.tuning import plan as tuning
from mpifed.core.arrays import is_number
from mpifed.core.toml import flatten
from tests.helpers.commands import ROOT

# benchmark -> measure, and methods with the number that is chosen: the rows of a block that differ in it alone
GRIDS = {
    "beyond/adaptive": ("rounds at objective_gap <= 1e-3", {"fedgia": "t"}),
    "beyond/graphs": ("rounds at objective_gap <= 1e-6", {"extra": "gamma", "lt-admm": "gamma", "fedgia-graph": "t"}),
    "beyond/secondorder": (
        "rounds at grad_norm_sq <= 1e-6",
        {"gd": "gamma", "fedavg": "step.a", "scaffold": "step.a", "fedgia": "t"},
    ),
    "fedgia/fitted": ("rounds", {"fedprox": "step.a"}),
    # the columns are the grid, and the paper's rule is the best global model
    "flame/eta": ("max accuracy", {}),
}
DEFAULTS = {("fedgia-graph", "t"): 1.0}  # of a row that does not say the number
GRAPHS = ("ring", "torus", "erdos-renyi", "exponential", "complete")
BOUND = "the end is 2/L, and theory has none beyond it"
FEW = "three steps, a factor of three apart, and the page says that the best is at an end"
EXTRA = "two steps beside the default; the longer one diverges with a seed on three graphs, beyond/longsteps"
NIDS = "two values: the default, and half of it, the edge of NIDS's condition"
W8A, A9A, PHISHING, MUSHROOMS = (block.name for block in benches.read("beyond/secondorder").block)
# (benchmark, method, block or value of the column) -> why the best stands at an end
ROWS = {
    **{("beyond/graphs", "extra", graph): EXTRA for graph in GRAPHS},
    **{("beyond/graphs", "fedgia-graph", graph): NIDS for graph in GRAPHS},
    ("beyond/graphs", "lt-admm", "ring"): "the default, which is shorter, is better still: no shorter one was tried",
    **{("beyond/graphs", "lt-admm", graph): "the default, shorter, takes longer" for graph in ("torus", "erdos-renyi")},
    **{("beyond/secondorder", "gd", block): BOUND for block in (W8A, A9A, PHISHING)},
    **{("beyond/secondorder", "fedavg", block): FEW for block in (W8A, MUSHROOMS)},
    **{("beyond/secondorder", "scaffold", block): FEW for block in (W8A, A9A, PHISHING, MUSHROOMS)},
    **{("beyond/secondorder", "fedgia", block): FEW for block in (W8A, A9A, PHISHING, MUSHROOMS)},
    ("fedgia/fitted", "fedprox", 1): "the paper's numbers decide, also those of k0 = 5 and 10, where it is inside",
    ("flame/eta", "50 clients", "Mnist-MLR"): "the candidates are those of the paper",
    ("flame/eta", "100 clients", "Mnist-MLR"): "the candidates are those of the paper",
}


def grids(bench, methods):
    """(block, method) -> the rows of a grid by the number that differs."""
    found = defaultdict(lambda: defaultdict(dict))
    for block in bench.block:
        for row in block.rows:
            options = flatten(row["algorithm"])
            key = methods.get(options["name"])
            number = options.get(key, DEFAULTS.get((options["name"], key)))
            if number is not None:
                rest = str({name: value for name, value in options.items() if name != key})
                found[block.name, options["name"]][rest][number] = row["name"]
    return {name: max(of.values(), key=len) for name, of in found.items()}


def ends_of_rows(name):
    """The blocks or columns whose best row, by the mean over seeds, is the first or the last of its grid."""
    measure, methods = GRIDS[name]
    bench, rows = benches.read(name), committed.read(name)
    numbers = defaultdict(list)
    for run in rows.runs:
        numbers[run.cell].append(float(run.numbers[rows.measures.index(measure)]))
    if not methods:
        names = [(row["name"], block.name) for block in bench.block for row in block.rows]
        cells = {own: [committed.Cell(*own[::-1], value) for value in sorted(bench.values)] for own in names}
    else:
        cells = {
            (method, block if bench.columns is None else value): [
                committed.Cell(block, grid[step], value) for step in sorted(grid)
            ]
            for (block, method), grid in grids(bench, methods).items()
            for value in bench.values
        }
    sign = -1 if measure.startswith("max ") else 1
    means = {key: [sign * float(np.mean(numbers[cell])) for cell in own] for key, own in cells.items()}
    assert all(len(own) > 1 and not np.isnan(own).any() for own in means.values()), "rows are lacking"
    return {(name, *key) for key, own in means.items() if math.isfinite(min(own)) and min(own) in (own[0], own[-1])}


@pytest.mark.parametrize("name", GRIDS)
def test_a_best_of_rows_is_inside_its_grid_but_where_a_reason_is_given(name):
    assert ends_of_rows(name) == {key for key in ROWS if key[0] == name}


def test_steps_of_the_least_time_are_inside_their_grid():
    bench = benches.read("beyond/leasttime")
    chosen = [row["algorithm"] for block in bench.block for row in block.rows]
    for algorithm in chosen:
        step = algorithm.get("gamma", algorithm.get("lr"))
        (place,) = [k for k, other in enumerate(STEPS) if abs(other / step - 1) < 1e-3]
        assert 0 < place < len(STEPS) - 1, algorithm


# beyond/methods: the plan has a range and 12 tries for each method, before any run; docs/studies/field.md says how many
# of the numbers are at an end. (method, option, end) -> data sets
PLANNED = {
    ("L-BFGS", "memory", "lower"): "qot mnist",  # on qot all three take as long
    ("L-BFGS", "memory", "upper"): "digits",
    ("EF21", "gamma", "upper"): "w8a digits",
    ("FLAME", "rho", "lower"): "w8a qot mnist",
    ("FedADMM, deep", "rho", "lower"): "mnist",
    ("FedAdagrad", "server.lr", "upper"): "w8a",
    ("FedAdagrad", "step.a", "lower"): "qot adult digits",
    ("FedAdagrad", "step.a", "upper"): "a9a w8a",
    ("FedAdam", "step.a", "lower"): "qot adult digits",
    ("FedAdam", "step.a", "upper"): "a9a",
    ("FedAvg", "step.a", "upper"): "a9a mnist",
    ("FedDCD, 5 steps", "eta", "upper"): "qot adult mnist",
    ("FedEPM", "mu0", "upper"): "adult",
    ("FedExP", "server.eps", "lower"): "digits",
    ("FedExP", "server.eps", "upper"): "w8a",
    ("FedExP", "step.a", "upper"): "a9a w8a mnist",
    ("FedNova", "step.a", "upper"): "a9a mnist",
    ("FedProx", "step.a", "upper"): "a9a w8a mnist",
    ("FedYogi", "step.a", "lower"): "qot adult digits",
    ("FedYogi", "step.a", "upper"): "a9a",
    ("GD", "gamma", "upper"): "w8a qot mnist",
    ("Newton", "shrink", "lower"): "a9a w8a qot adult",
    ("Newton", "shrink", "upper"): "digits",
    ("ProxSkip", "p", "lower"): "a9a w8a",
    ("ProxSkip", "p", "upper"): "qot adult mnist",
    ("SFedAvg", "step.a", "upper"): "qot digits",
    ("SFedProx", "step.a", "upper"): "qot digits",
}
# parameters, and samples of the largest client with the seed of the plan
SIZES = {
    "a9a": (124, 230),
    "w8a": (301, 351),
    "qot": (1024, 458),
    "adult": (14, 6461),
    "digits": (640, 149),
    "mnist": (7840, 207),
}


def units(rows, n, most):
    """The units of a data set, as the numbers of methods have them whose multiples are fixed."""
    L = 0.17 / rows["FLAME"]["lr"]
    X = rows["FedAdam"]["server.tau"] / 0.001
    return tuning.Units(L=L, kappa=rows["AccFedDCD"]["kappa"], n=n, D=most, mean=1.0, X=X, optimum=0.0)


def places(tries, chosen):
    """The options of a chosen setting of which more than two numbers were tried; an end is "lower" or "upper"."""
    for key in dict.fromkeys(key for one in tries for key in one.options):
        numbers = sorted({one.options[key] for one in tries if is_number(one.options.get(key))})
        if len(numbers) > 2 and key in chosen:
            place = int(np.argmin([abs(math.log(number / chosen[key])) for number in numbers]))
            assert numbers[place] == pytest.approx(chosen[key], rel=0.03), f"{key} = {chosen[key]} was not tried"
            yield key, {0: "lower", len(numbers) - 1: "upper"}.get(place, "")


def test_tuned_methods_are_inside_their_ranges_but_for_those_named_here():
    plan = tuning.read()
    found = defaultdict(list)
    inside = 0
    for block in benches.read("beyond/methods").block:
        data = block.name.split(",")[0].lower()
        rows = {row["name"]: flatten(row["algorithm"]) for row in block.rows}
        unit = units(rows, *SIZES[data])
        for number, table in enumerate(plan.method):
            if table["label"] in rows and data in table.get("data", plan.data):
                tries = tuning.settings(table, plan.settings, number, unit).tries
                for key, end in places(tries, rows[table["label"]]):
                    inside += not end
                    if end:
                        found[table["label"], key, end].append(data)
    assert {key: " ".join(of) for key, of in found.items()} == PLANNED
    ends = sum(map(len, found.values()))
    assert f"{ends} of {ends + inside} numbers" in (ROOT / "docs" / "studies" / "field.md").read_text("utf-8")
