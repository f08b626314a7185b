"""What the command data info says of a data set."""

import numpy as np
import pytest

from mpifed.data.info import count_roles, describe, histogram, survey
from mpifed.data.pool import Pool
from tests.helpers.data_files import SPARSE, TEST, load, write
from tests.helpers.image_files import build


def info(dataset):
    return describe(dataset, survey(dataset))


def of(y, sizes, n=2):
    return info(Pool(np.ones((len(y), n)), np.asarray(y), None, np.array(sizes)))


def words(text):
    return [line.split() for line in text.splitlines()]


def test_info_tells_sizes_and_classes_of_every_client(tmp_path):
    head, classes, clients = info(load(write(tmp_path / "fed.h5", {**SPARSE, **TEST}))).split("\n\n")
    assert head.splitlines() == [
        "clients m                 4",
        "samples d                 10",
        "features n                6",
        "test samples              4",
        "constant features         2 (0, 3)",
        "matrix                    CSR, 66.7 % nonzero",
        "classes                   4 (0, 1, 2, 3)",
        "partition                 by the sizes in the file",
        "samples per client        min 1, median 2.5, max 4  ▕████▏",
        "test samples per client   min 0, median 1, max 2  ▕▄█▄▏",
        "classes per client        min 1, median 2.5, max 3  ▕▄▄█▏",
    ]
    assert words(classes)[:3] == [
        ["class", "samples", "share", "clients"],
        ["0", "4", "40.0", "%", "3", "█" * 24],
        ["1", "3", "30.0", "%", "3", "█" * 18],
    ]
    assert words(clients) == [
        ["client", "samples", "test", "classes", "0:", "1:", "2:", "3:"],
        ["0", "2", "1", "2", "1", "1", "·", "·"],
        ["1", "3", "0", "3", "1", "1", "1", "·"],
        ["2", "1", "2", "1", "·", "·", "1", "·"],
        ["3", "4", "1", "3", "2", "1", "1", "·"],
    ]


@pytest.mark.parametrize("labels", [[0, 1, 1, 1], [-1, 1, 1, 1]])
def test_info_tells_the_share_of_ones_of_binary_labels(labels, monkeypatch):
    monkeypatch.setattr("mpifed.data.info.READ", 1)  # client by client
    text = of(labels, [2, 2])
    assert "share of 1 per client     min 0.5, median 0.75, max 1  ▕█              █▏" in text.splitlines()
    assert words(text)[-2:] == [["0", "2", "2", "1", "1"], ["1", "2", "1", "·", "2"]]


def test_tables_of_many_clients_and_classes_are_folded_and_large_counts_written_out():
    _, classes, clients = of(np.arange(600) % 30, np.full(100, 6)).split("\n\n")
    assert "… 10 more classes" in classes.splitlines()
    assert "… 80 more clients" in clients.splitlines()
    assert len(classes.splitlines()) == len(clients.splitlines()) == 22
    assert words(clients)[0] == ["client", "samples", "classes", "most", "frequent", "share"]
    assert words(clients)[-1] == ["99", "6", "6", "24", "17", "%"]
    text = of(np.zeros(35_000), [10_000, 25_000], 1)
    assert "samples per client        min 10000, median 17500, max 25000" in text


def test_info_of_numbers_tells_their_spread():
    text = of([0.5, 1.5, -2.25, -2.25], [2, 2])
    assert "classes                   none (labels are numbers from -2.25 to 1.5)" in text.splitlines()
    assert words(text)[-3:] == [
        ["client", "samples", "mean", "y", "sd", "y", "min", "y", "max", "y"],
        ["0", "2", "1", "0.5", "0.5", "1.5"],
        ["1", "2", "-2.25", "0", "-2.25", "-2.25"],
    ]
    assert "… 1 more clients" in info(build({"name": "linreg-noniid", "clients": 21, "features": 2}))


def test_a_histogram_shows_every_value():
    shown = [histogram(np.array(values)) for values in ([1, 2, 2, 3], [1, 5], [0.0, 1.0], [1] * 99 + [2])]
    assert shown == ["▕▄█▄▏", "▕█   █▏", "▕█" + " " * 14 + "█▏", "▕█▁▏"]


def test_counts_and_moments_are_those_of_each_client(monkeypatch):
    rng = np.random.default_rng(0)
    y, sizes = 10**6 + rng.integers(3, 7, 50), np.array([1, 9, 20, 15, 5])
    X = rng.integers(0, 2, (50, 4))
    for block in (1, 30, 10**6):
        monkeypatch.setattr("mpifed.data.info.READ", block)
        found = survey(Pool(X, y, None, sizes))
        assert found.nonzeros == np.count_nonzero(X)
        assert found.names == ["1000003", "1000004", "1000005", "1000006"]
        for i, part in enumerate(np.split(y, np.cumsum(sizes)[:-1])):
            assert found.counts[[i]].toarray().ravel().tolist() == np.bincount(part - 10**6, minlength=7)[3:].tolist()
            assert (found.low[i], found.high[i]) == (part.min(), part.max())
            assert (found.mean[i], found.deviation[i]) == pytest.approx((part.mean(), part.std()))


def test_samples_are_counted_by_role_client_and_class(tmp_path):
    counts = count_roles(load(write(tmp_path / "fed.h5", {**SPARSE, **TEST})))
    assert {role: table.toarray().tolist() for role, table in counts.items()} == {
        "training": [[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 0], [2, 1, 1, 0]],
        "test": [[0, 0, 0, 1], [0, 0, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0]],
    }
    numbers = count_roles(Pool(np.ones((3, 2)), np.array([0.5, 1.5, 2.5]), None, np.array([2, 1])))
    assert numbers["training"].toarray().tolist() == [[2], [1]]


def test_labels_that_are_no_classes_have_no_levels_and_classes_of_generated_data_are_known_without_reading_them():
    for labels in ([0.5, 1.0], [-1.5, 2.0], range(1001)):
        y = np.array(list(labels), dtype=float)
        found = survey(Pool(np.ones((len(y), 1)), y, None, np.array([len(y)])))
        assert (found.names, found.counts.shape) == ([], (1, 0))
    dataset = build({"name": "synthetic", "clients": 2, "least": 20, "most": 30, "classes": 4})
    found = survey(dataset)
    assert found.names == ["0", "1", "2", "3"]
    assert np.array_equal(np.asarray(found.counts.sum(axis=1)).ravel(), dataset.sizes)
