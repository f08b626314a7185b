"""Tables of the LIBSVM collection are read as they are published, with a column of ones on wish."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.errors import UserError
from tests.helpers.data_files import dense, same_rows_however_asked, table_of
from tests.helpers.image_files import build
from tests.helpers.real_data import REAL

ROWS = {  # a few lines in each file's own format
    "a9a": "-1 3:1 5:1 \n+1 1:1 4:1 \n-1 2:1 \n-1 3:1 5:1 \n",
    "w8a": "+1 1:1 5:1 \n-1 2:1 \n-1 \n-1 4:1 \n",  # a page may have none of the words
    "phishing": "0 1:0.18257 2:-0.5\n1 1:0.18257 5:1\n0 3:0.18257\n0 4:0.36515\n",
    "mushrooms": "1 1:1 3:1 \n2 2:1 5:1 \n1 4:1 \n1 1:1 3:1 \n",
}
REAL_SIZES = {  # samples, features, samples with the larger label, numbers that are not 0
    "a9a": (32561, 123, 7841, 451592),
    "w8a": (49749, 300, 1479, 579586),
    "phishing": (11055, 68, 6157, 331650),
    "mushrooms": (8124, 112, 4208, 170604),
}


@pytest.fixture(params=ROWS)
def name(request, root):
    """A set with four samples of five features, one of them of the larger label."""
    (root / request.param).mkdir()
    (root / request.param / request.param).write_text(ROWS[request.param])
    return request.param


def test_rows_stay_sparse_and_the_larger_label_is_1_with_a_last_column_of_ones_on_wish(name):
    dataset = build(name, clients=2, sparse=True)
    assert (dataset.m, dataset.n, dataset.classes, dataset.sparse) == (2, 5, 2, True)
    X, y = dataset.rows(0, 2)
    assert sp.issparse(X)
    assert sorted(y) == [0, 0, 0, 1]
    same_rows_however_asked(dataset)
    assert build(name, clients=2).sparse == (name != "phishing")  # nearly half of its numbers are not 0
    plain = build(name, clients=2, sparse=False)
    assert isinstance(plain.rows(0, 2)[0], np.ndarray)
    assert np.array_equal(table_of(plain), table_of(dataset))
    rows = build(name, clients=2, ones=True).rows(0, 2)[0]
    assert np.array_equal(dense(rows), np.column_stack([dense(X), np.ones(4)]))
    assert np.array_equal(build(name, clients=2, ones=True, sparse=False).rows(0, 2)[0], dense(rows))
    assert list(build(name, clients=3, partition={"name": "sizes", "sizes": 1}).sizes) == [1, 1, 1]


def test_the_file_may_be_packed_and_lie_in_the_folder_of_the_collection(name, root):
    text, before = ROWS[name].encode(), table_of(build(name, clients=2))
    (root / name / name).unlink()
    (root / name / f"{name}.bz2").write_bytes(bz2.compress(text))
    assert np.array_equal(table_of(build(name, clients=2)), before)
    (root / name / f"{name}.bz2").unlink()
    (root / "libsvm").mkdir()
    (root / f"libsvm/{name}.gz").write_bytes(gzip.compress(text))
    assert np.array_equal(table_of(build(name, clients=2)), before)
    (root / f"libsvm/{name}.gz").write_bytes(gzip.compress(text.replace(b":", b" ", 1)))
    with pytest.raises(UserError, match=rf"libsvm/{name}\.gz, line 1: .* is not of the form"):
        build(name)


@pytest.mark.parametrize("name", ROWS)
def test_the_published_tables_have_their_published_sizes(name):
    if not (Path(REAL, "libsvm", f"{name}.gz").is_file() or Path(REAL, name, name).is_file()):
        pytest.skip(f"MPIFED_DATA has no {name}")
    X, y = build(name, clients=1).rows(0, 1)
    assert (*X.shape, int(y.sum()), np.count_nonzero(dense(X))) == REAL_SIZES[name]
