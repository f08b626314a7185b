"""What the command data info says of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.data.base import Data
from mpifed.data.info import describe, histogram
from mpifed.data.pool import Pool
from mpifed.data.survey import survey
from tests.helpers.data_files import SPARSE, TEST, load, write


def info(dataset):
    return describe(dataset, survey(dataset))


def test_info_tells_sizes_and_classes_of_every_client(tmp_path):
    text = info(load(write(tmp_path / "fed.h5", {**SPARSE, **TEST})))
    for line in (
        "clients m                 4",
        "samples d                 10",
        "features n                6",
        "test samples              4",
        "matrix                    CSR, 66.7 % nonzero",
        "classes                   4 (0, 1, 2, 3)",
        "partition                 by the sizes in the file",
        "samples per client        min 1, median 2.5, max 4  ▕████▏",
        "test samples per client   min 0, median 1, max 2  ▕▄█▄▏",
        "classes per client        min 1, median 2.5, max 3  ▕▄▄█▏",
    ):
        assert line in text.splitlines()
    _, classes, clients = text.split("\n\n")
    assert [line.split() for line in classes.splitlines()][:3] == [
        ["class", "samples", "share", "clients"],
        ["0", "4", "40.0", "%", "3", "█" * 24],
        ["1", "3", "30.0", "%", "3", "█" * 18],
    ]
    assert [line.split() for line in clients.splitlines()] == [
        ["client", "samples", "test", "classes", "0:", "1:", "2:", "3:"],
        ["0", "2", "1", "2", "1", "1", "·", "·"],
        ["1", "3", "0", "3", "1", "1", "1", "·"],
        ["2", "1", "2", "1", "·", "·", "1", "·"],
        ["3", "4", "1", "3", "2", "1", "1", "·"],
    ]


@pytest.mark.parametrize("labels", [[0, 1, 1, 1], [-1, 1, 1, 1]])
def test_info_tells_the_share_of_ones_of_binary_labels(labels, monkeypatch):
    monkeypatch.setattr("mpifed.data.survey.BLOCK", 1)  # client by client
    text = info(Pool(np.ones((4, 2)), np.array(labels), None, np.array([2, 2])))
    assert "share of 1 per client     min 0.5, median 0.75, max 1  ▕█              █▏" in text.splitlines()
    assert [line.split() for line in text.splitlines()[-2:]] == [["0", "2", "2", "1", "1"], ["1", "2", "1", "·", "2"]]


def test_tables_of_many_clients_and_classes_are_folded():
    y = np.arange(600) % 30
    text = info(Pool(np.ones((600, 2)), y, None, np.full(100, 6)))
    _, classes, clients = text.split("\n\n")
    assert "… 10 more classes" in classes.splitlines()
    assert "… 80 more clients" in clients.splitlines()
    assert len(classes.splitlines()) == len(clients.splitlines()) == 22
    assert clients.splitlines()[0].split() == ["client", "samples", "classes", "most", "frequent", "share"]
    assert clients.splitlines()[-1].split() == ["99", "6", "6", "24", "17", "%"]


def test_large_counts_are_written_out():
    text = info(Pool(np.ones((35_000, 1)), np.zeros(35_000), None, np.array([10_000, 25_000])))
    assert "samples per client        min 10000, median 17500, max 25000" in text


def test_info_of_numbers_tells_their_spread():
    text = info(Pool(np.ones((4, 2)), np.array([0.5, 1.5, -2.25, -2.25]), None, np.array([2, 2])))
    assert "classes                   none (labels are numbers from -2.25 to 1.5)" in text.splitlines()
    assert [line.split() for line in text.splitlines()[-3:]] == [
        ["client", "samples", "mean", "y", "sd", "y", "min", "y", "max", "y"],
        ["0", "2", "1", "0.5", "0.5", "1.5"],
        ["1", "2", "-2.25", "0", "-2.25", "-2.25"],
    ]
    many = info(Data.build({"name": "linreg-noniid", "clients": 21, "features": 2}, "data").load(0, "float64"))
    assert "… 1 more clients" in many


@pytest.mark.parametrize(
    ("values", "wanted"),
    [([1, 2, 2, 3], "▕▄█▄▏"), ([1, 5], "▕█   █▏"), ([0.0, 1.0], "▕█" + " " * 14 + "█▏"), ([1] * 99 + [2], "▕█▁▏")],
)
def test_a_histogram_shows_every_value(values, wanted):
    assert histogram(np.array(values)) == wanted
