"""Weights and offsets of samples, and weights of clients, from tables, files of arrays and data frames."""

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from tests.helpers.data_files import load, refused

SITES = ("Ulm", "Bonn", "Ulm", "Jena", "Bonn", "Jena", "Ulm", "Bonn")
ROWS = len(SITES)
X = np.arange(2.0 * ROWS).reshape(ROWS, 2) ** 1.5
Y = np.array([0, 1, 2, 0, 3, 1, 0, 2])
TIMES = np.array([1, 2, 4, 1, 0.5, 3, 2, 8])
COUNTS = np.array([3, 1, 1, 2, 5, 1, 1, 4])
SHIFTS = np.linspace(-1, 1, ROWS)
PEOPLE = np.array([{"Ulm": 120, "Bonn": 330, "Jena": 110}[site] for site in SITES])
ORDER = np.argsort(np.array(SITES), kind="stable")  # Bonn, Jena, Ulm
COLUMNS = {"frequency": "count", "exposure": "years", "offset": "shift"}


def table(tmp_path, **changes):
    columns = {"years": TIMES, "count": COUNTS, "shift": SHIFTS, "people": PEOPLE, "y": Y} | changes
    lines = ["site,a,b," + ",".join(columns)]
    for k, site in enumerate(SITES):
        lines.append(f"{site},{X[k, 0]},{X[k, 1]}," + ",".join(str(values[k]) for values in columns.values()))
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def same(columns, train, test=None):
    """Whether weights and offsets are those of the rows ``train`` and ``test``, in this order."""
    both = np.array([COUNTS, np.log(TIMES) + SHIFTS])
    np.testing.assert_array_equal(columns.values["training"], both[:, train])
    assert ("test" in columns.values) == (test is not None)
    if test is not None:
        np.testing.assert_array_equal(columns.values["test"], both[:, test])


def numbers(rows):
    """The numbers of rows in the table."""
    return [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]


def test_columns_of_a_table_come_in_the_order_of_clients_and_are_no_features(tmp_path):
    data = load(table(tmp_path), client="site", ignore="people", **COLUMNS)
    assert data.features == ("a", "b")
    assert data.columns.names == ("frequency", "offset", "exposure")
    same(data.columns, ORDER)
    assert data.columns.totals().tolist() == [10, 3, 5]
    assert data.notes[-1].startswith("samples have frequencies and offsets and exposures, which numpy reads")
    data = load(table(tmp_path), clients=3, ignore=["site", "people"], seed=4, **COLUMNS)
    same(data.columns, numbers(data.rows(0, 3)[0]))
    frame = pytest.importorskip("pandas").read_csv(table(tmp_path))
    data = mpifed.table(frame, client="site", target="y", ignore="people", **COLUMNS)
    same(data.load(0, "float64").columns, ORDER)


def test_rows_kept_for_testing_and_clients_in_another_order_take_theirs_along(tmp_path):
    options = {"client": "site", "ignore": "people", "test": 0.4}
    data = load(table(tmp_path), **options, **COLUMNS)
    same(data.columns, numbers(data.rows(0, 3)[0]), numbers(data.rows_test(0, 3)[0]))
    order = np.array([2, 0, 1])
    found = data.columns.reorder(order)
    for role in ("training", "test"):
        wanted = data.columns.padded(order, 4, role)
        np.testing.assert_array_equal(found.padded(np.arange(3), 4, role), wanted)
    np.testing.assert_array_equal(found.totals(), data.columns.totals()[order])
    fold = table(tmp_path, people=[0, 0, 1, 0, 1, 1, 0, 0])
    for own in ({"client": "site"}, {"clients": 2, "ignore": "site"}):
        data = load(fold, test="people", **own, **COLUMNS)
        same(data.columns, numbers(data.rows(0, data.m)[0]), numbers(data.rows_test(0, data.m)[0]))


def test_arrays_of_a_file_are_named_by_the_same_options(tmp_path):
    path = tmp_path / "visits.npz"
    np.savez(path, X=X, y=Y, client=np.array(SITES), count=COUNTS, years=TIMES, shift=SHIFTS, people=[330, 110, 120])
    data = load(path, client_weights="people", **COLUMNS)
    same(data.columns, ORDER)
    assert data.client_weights.tolist() == [330, 110, 120]
    assert load(path).columns is None
    refused(path, "^people of .* has 3 entries, but X has 8 rows$", weight="people")
    refused(path, "has no weights", weight="weights")
    refused(path, "^count of .* has 8 entries, and there are 3 clients", client_weights="count")


def test_groups_of_an_hdf5_file_have_them_beside_x_and_y(tmp_path):
    path = tmp_path / "visits.h5"
    with h5py.File(path, "w") as file:
        for site in ("Bonn", "Jena", "Ulm"):
            own = np.array(SITES) == site
            parts = {"X": X, "y": Y, "count": COUNTS, "years": TIMES, "shift": SHIFTS}
            for name, values in parts.items():
                file[f"{site}/{name}"] = values[own]
                file[f"{site}/{name}_test"] = values[own][:1]
    firsts = [SITES.index(site) for site in ("Bonn", "Jena", "Ulm")]
    same(load(path, **COLUMNS).columns, ORDER, firsts)
    with h5py.File(path, "a") as file:
        del file["Jena/count"]
    refused(path, "^the group Jena of .* has no count: each group is a client with X, y, count, shift and ", **COLUMNS)


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({"count": [0] * 8}, {"frequency": "count"}, r"^the column 'count' of .*, data\.frequency, is 0 in every row"),
        ({"count": [0.5] * 8}, {"frequency": "count"}, "has 0.5 in line 2.*: a frequency is a whole number from 1"),
        ({"count": [-1] * 8}, {"weight": "count"}, r"has -1 in line 2.*: a weight is a number above 0: leave out"),
        ({"years": [0] * 8}, {"exposure": "years"}, "has 0 in line 2.*: an exposure is a number above 0$"),
        ({}, {"offset": "site"}, "holds texts, such as 'Ulm': an offset is a finite number"),
        ({}, {"offset": "y"}, "is the column of the labels of"),
        ({}, {"weight": "count", "frequency": "years"}, r"^data\.weight and data\.frequency are both weights"),
        ({}, {"client_weights": "count", "client": "site"}, r"objective\.weights, has 1 and 5 in the rows of client B"),
        ({"count": [-2] * 8}, {"client_weights": "count", "client": "site"}, "has -2: weights of clients are finite"),
        ({"count": ["NA", *[1] * 7]}, {"weight": "count"}, "has 1 missing cell: 'count'"),
    ],
)
def test_columns_that_are_none_are_refused(tmp_path, changes, options, sentence):
    path = table(tmp_path, **changes)
    own = {} if "client" in options else {"clients": 2}
    refused(path, sentence, categories="site" if "site" not in options.values() else None, **own | options)


def study(path, weights, **data):
    return {
        "problem": {"name": "poisson", "bias": True},
        "algorithm": "newton",
        "rounds": 12,
        "objective": {"weights": weights},
        "data": {"name": "file", "path": str(path), "client": "site", "features": "shift"} | data,
    }


def test_a_column_has_the_weights_of_clients(tmp_path):
    path = table(tmp_path)
    by_column = mpifed.run(study(path, "people"))
    assert by_column.config["data"]["client_weights"] == "people"
    for numbers in ([330, 110, 120], np.array([33.0, 11, 12])):  # Bonn, Jena, Ulm
        given = mpifed.run(study(path, numbers))
        np.testing.assert_array_equal(by_column.x, given.x)
        np.testing.assert_array_equal(by_column.rounds["objective"], given.rounds["objective"])
    assert abs(by_column.x - mpifed.run(study(path, "samples")).x).max() > 1e-3
    assert "clients weigh as objective.weights says" in by_column.fit().notes[0]


def test_a_column_of_weights_is_no_feature_and_can_be_said_once(tmp_path):
    path = table(tmp_path)
    config = experiment(study(path, "people", features=None))
    assert "people" not in config.data.load(0, "float64").features
    with pytest.raises(UserError, match=r'^data\.client_weights = "people" is read for objective\.weights = "people":'):
        experiment(study(path, "samples", client_weights="people"))
    with pytest.raises(UserError, match=r'^objective\.weights = "years" is wrong: .* and data\.client_weights is "peo'):
        experiment(study(path, "years", client_weights="people"))
    with pytest.raises(UserError, match=r'^objective\.weights = "sample" is wrong: it must be clients, samples, a num'):
        experiment({"objective": {"weights": "sample"}})
    with pytest.raises(UserError, match=r"^objective\.weights has 2 numbers, and there are 3 clients"):
        mpifed.run(study(path, [1.0, 2.0]))
    with pytest.raises(UserError, match=r"takes weights by samples only"):
        mpifed.run(study(path, "people") | {"problem": "least-squares", "algorithm": {"name": "fedgia", "H": "gram"}})


@pytest.mark.parametrize("name", ["weight", "frequency"])
def test_rows_that_count_0_times_are_left_out_with_a_note(name, tmp_path):
    counts = np.where(np.isin(np.arange(8), [2, 5]), 0, COUNTS)
    left = np.flatnonzero(counts)
    options = {"clients": 1, "partition": "contiguous", "ignore": ["site", "people", "years", "shift"], name: "count"}
    data = load(table(tmp_path, count=counts), **options)
    np.testing.assert_array_equal(data.rows(0, 1)[0], X[left])
    np.testing.assert_array_equal(data.columns.values["training"][0], counts[left])
    assert any(note.startswith("2 of 8 rows are left out, for the column 'count' of ") for note in data.notes)
    refused(table(tmp_path, count=[0, *[-1] * 7]), "has -1 in line 3", **options)


def test_what_an_array_with_a_frequency_of_0_is_told_helps():
    counts = np.array([0, *COUNTS[1:]])
    advice = r"has 0 in entry 0: .*leave out rows with 0; data\.weight takes numbers that are"
    with pytest.raises(UserError, match=advice):
        mpifed.arrays(X, Y, 2, frequency=counts)
    data = mpifed.arrays(X[1:], Y[1:], 2, frequency=counts[1:]).load(0, "float64")
    assert data.columns.totals().sum() == counts.sum()
    assert mpifed.arrays(X, Y, 2, weight=counts + 0.5).load(0, "float64").columns.names == ("weight",)
