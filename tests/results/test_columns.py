"""The table of recorded columns: complete, consistent, and without columns that nothing writes."""

import mpifed
from mpifed.experiment.config import override
from mpifed.results.columns import CLIENTS, COLUMNS, MEASURES, MODEL, RANKS, SCALES, SELECTION, UNKNOWN
from tests.helpers.studies import STUDIES


def test_every_column_has_a_unit_that_agrees_with_its_name_and_a_sentence():
    columns = [*(c for table in (COLUMNS, RANKS, CLIENTS, MODEL, SCALES) for c in table.values()), SELECTION, UNKNOWN]
    for column in columns:
        assert column.unit in ("1", "s", "byte", "bit")
        assert column.description.endswith(".")
        assert column.description[0].isupper()
    for name, column in COLUMNS.items():
        assert (column.unit == "s") == name.endswith("_seconds")
        assert (column.unit == "byte") == name.startswith("bytes_")
        assert (column.unit == "s") == (column.part == "time")
        assert not (column.integer and column.span == "state")
    names = [column.symbol or name for name, column in COLUMNS.items()]
    assert len(set(names)) == len(names)


def test_every_column_is_written_by_some_run():
    studies = [
        ["algorithm=fedadmm", "algorithm.lagrangian=true", "stop.optimum=0.0"],
        ["algorithm=fedgia", "algorithm.adaptive=true"],
        ["algorithm=feddcd", "algorithm.dual=true", "data=gaussian", "data.clients=13"],
        ["algorithm=flame", "data=digits", "data.clients=13", "algorithm.envelope=true", "algorithm.lagrangian=true"],
        ["algorithm=fedepm", "data=gaussian", "data.clients=13", "algorithm.noise=clipped", "algorithm.delta=1e-5"],
        STUDIES["fedavg, flaky"],
        STUDIES["newton"],
        STUDIES["fedavg, partial"],
        STUDIES["fedavg, asynchronous"],
        ["algorithm=dgd", "graph=ring", "data=gaussian", "data.clients=13"],
    ]
    results = [mpifed.run(override({}, [*study, "rounds=2", "stop.diverged=0"])) for study in studies]
    written = {name for result in results for name in result.rounds} - {"round"}
    assert {name for result in results for name in result.ranks} == {"rank", *RANKS}
    assert set(COLUMNS) == written | set(MEASURES)  # tests/problems/test_torch_losses.py has those of regression
