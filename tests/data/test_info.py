"""What the command data info says of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.data.base import Data
from mpifed.data.info import describe
from mpifed.data.pool import Pool
from tests.helpers.data_files import SPARSE, TEST, load, write


def test_info_tells_sizes_and_classes_of_every_client(tmp_path):
    text = describe(load(write(tmp_path / "fed.h5", {**SPARSE, **TEST})))
    for line in (
        "clients m                 4",
        "samples d                 10",
        "features n                6",
        "test samples              4",
        "classes                   4",
        "matrix                    CSR, 66.7 % nonzero",
        "samples per client        min 1, quartiles 1.75 / 2.5 / 3.25, max 4",
        "classes per client        min 1, quartiles 1.75 / 2.5 / 3, max 3",
    ):
        assert line in text.splitlines()
    assert [line.split() for line in text.splitlines()[-5:]] == [
        ["client", "samples", "test", "classes"],
        ["0", "2", "1", "2"],
        ["1", "3", "0", "3"],
        ["2", "1", "2", "1"],
        ["3", "4", "1", "3"],
    ]


@pytest.mark.parametrize("labels", [[0, 1, 1, 1], [-1, 1, 1, 1]])
def test_info_tells_the_share_of_ones_of_binary_labels(labels, monkeypatch):
    monkeypatch.setattr("mpifed.data.info.BLOCK", 1)  # client by client
    text = describe(Pool(np.ones((4, 2)), np.array(labels), None, np.array([2, 2])))
    assert "share of ones per client  min 0.5, quartiles 0.625 / 0.75 / 0.875, max 1" in text
    assert [line.split()[-1] for line in text.splitlines()[-2:]] == ["0.5", "1"]


def test_info_of_many_clients_has_no_line_a_client():
    text = describe(Data.build({"name": "linreg-noniid", "clients": 21, "features": 2}, "data").load(0, "float64"))
    assert "classes                   none (labels are not classes)" in text
    assert len(text.splitlines()) == 7
