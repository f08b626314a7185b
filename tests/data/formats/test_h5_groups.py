"""HDF5 files in which each group is a client."""

import h5py
import numpy as np
import pytest

from tests.helpers.data_files import load, refused, same_rows_however_asked, same_tests_however_asked

X = np.arange(20.0).reshape(10, 2)
PARTS = {"bonn": slice(0, 3), "aachen": slice(3, 5), "köln": slice(5, 10)}


def written(path, more=(), drop=()):
    with h5py.File(path, "w") as file:
        for name, rows in PARTS.items():
            file[f"{name}/X"] = X[rows]
            file[f"{name}/y"] = np.arange(10)[rows] % 2
        for name, value in more:
            file[name] = value
        for name in drop:
            del file[name]
    return path


def test_groups_are_clients_in_the_order_of_their_names(tmp_path):
    data = load(written(tmp_path / "x.h5"))
    assert (data.owners, data.sizes.tolist(), data.division) == (
        ("aachen", "bonn", "köln"),
        [2, 3, 5],
        "by the groups of the file",
    )
    assert np.array_equal(data.rows(0, 3)[0], X[[3, 4, 0, 1, 2, 5, 6, 7, 8, 9]])
    assert data.rows(1, 2)[1].tolist() == [0, 1, 0]
    same_rows_however_asked(data)


def test_some_groups_may_have_test_samples_and_groups_contradict_a_partition(tmp_path):
    tests = [("bonn/X_test", X[:2] + 1), ("bonn/y_test", [1, 0]), ("köln/X_test", X[2:3]), ("köln/y_test", [1])]
    data = load(written(tmp_path / "x.h5", tests))
    assert data.sizes_test.tolist() == [0, 2, 1]
    assert data.rows_test(0, 3)[0].tolist() == [[1, 2], [3, 4], [4, 5]]
    same_tests_however_asked(data)
    assert load(written(tmp_path / "x.h5"), test=0.4).sizes_test.tolist() == [1, 1, 2]
    refused(written(tmp_path / "x.h5"), r"data\.clients = 4 contradicts .*, which has sizes of 3 clients", clients=4)


@pytest.mark.parametrize(
    ("more", "drop", "sentence"),
    [
        ([], ["bonn/y"], r"the group bonn of .*x\.h5 has no y: each group is a client with X and y$"),
        ([("bonn/X_test", X[:1])], [], r"the group bonn of .*x\.h5 has no y_test"),
        (
            [("ulm/X", X[:, :1]), ("ulm/y", [0] * 10)],
            [],
            r"ulm/X of .*x\.h5 has the shape \(10, 1\), but .* has \(2, 2\)",
        ),
        ([("ulm/X", 1.0), ("ulm/y", 0)], [], r"ulm/X of .*x\.h5 is one number: X has a row for each sample$"),
        ([("ulm/X", X[:0]), ("ulm/y", np.zeros(0))], [], r"sizes of .* must be whole numbers, .* each at least 1$"),
        ([("ulm/X", X[:4]), ("ulm/y", [0] * 5)], [], r"y of .*x\.h5 has 15 entries, but X has 14 rows"),
        ([("ulm/X", X[:4] * np.nan), ("ulm/y", [0] * 4)], [], r"row 10 of X of .*x\.h5 is not finite"),
        ([("ulm/X", h5py.SoftLink("/bonn/X")), ("ulm/y", [0] * 3)], [], r"X of .*x\.h5 is a link: copy the data into"),
    ],
)
def test_a_wrong_group_is_named(tmp_path, more, drop, sentence):
    refused(written(tmp_path / "x.h5", more, drop), sentence)
