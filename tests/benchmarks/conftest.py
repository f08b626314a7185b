"""A folder of benchmarks with one benchmark that takes no time to run."""

import pytest

from benchmarks import bench

TINY = """
title = "Rounds of two methods"
source = "Table 0"
about = "a test"
seeds = 20
report = 2
trials = 20
columns = { key = "algorithm.k0", values = [1, 5] }
measures = ["rounds", "objective_gap", "tct"]
different = "nothing"
study = { rounds = 40, data = { name = "linreg-noniid", clients = 6, features = 5, least = 5, most = 9 } }
quick = { seeds = 1, values = [5] }
figure = [
    { name = "curves", title = "f", log = "xy", y = ["objective_gap", "grad_norm_sq"], panels = "column" },
    { name = "means", title = "rounds", kind = "means", y = ["rounds"], log = "y" },
    { name = "along", title = "rounds", kind = "means", along = "objective_gap", y = ["rounds"], log = "xy" },
    { name = "boxes", title = "rounds", kind = "boxes", y = ["rounds"] },
    { name = "dots", title = "rounds", kind = "dots", y = ["rounds", "tct"], log = "x" },
]
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
[[claim]]
text = "FedGiA takes fewer rounds"
where = "page 1"
measure = "rounds"
blocks = ["Example V.1"]
order = ["FedGiA", "FedAvg"]
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The file of the benchmark fedgia/tiny, in a folder beside which results/ would be."""
    file = tmp_path / "benchmarks/fedgia/tiny.toml"
    file.parent.mkdir(parents=True)
    file.write_text(TINY)
    monkeypatch.setattr(bench, "HERE", tmp_path / "benchmarks")
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    return file
