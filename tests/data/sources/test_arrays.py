"""Arrays in memory: whose each sample is, what is recorded of them, and what is refused."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.partition import Iid
from mpifed.data.sources.arrays import arrays
from tests.helpers.data_files import SIZES, X, same_rows_however_asked, same_tests_however_asked, y

OWNERS = np.repeat(["c", "a", "d", "b"], SIZES)
SHUFFLED = np.array([3, 0, 1, 2, 3, 1, 0, 2, 3, 3])


def test_sizes_give_each_client_its_consecutive_rows():
    made = arrays(X, y, SIZES)
    data = made.load(0, "float64")
    assert data.sizes.tolist() == SIZES.tolist()
    rows, labels = data.rows(1, 3)
    assert np.array_equal(rows, X[2:6])
    assert np.array_equal(labels, y[2:6])
    same_rows_however_asked(data)


def test_owners_give_each_client_its_rows_in_sorted_order_of_clients():
    data = arrays(X, y, SHUFFLED).load(0, "float64")
    assert data.sizes.tolist() == [2, 2, 2, 4]
    assert np.array_equal(data.rows(3, 4)[0], X[SHUFFLED == 3])
    named = arrays(X, y, OWNERS.tolist()).load(0, "float64")
    assert np.array_equal(named.rows(0, 1)[0], X[OWNERS == "a"])


def test_a_number_of_clients_is_served_by_a_partition():
    data = arrays(X, y, 4, partition="iid").load(3, "float64")
    usual = arrays(X, y, np.int64(4)).load(3, "float64")
    assert np.array_equal(data.rows(0, 4)[0], usual.rows(0, 4)[0])
    assert arrays(X, y, 4, partition=Iid()).partition == Iid()
    assert sorted(data.rows(0, 4)[0][:, 1]) == sorted(X[:, 1])


def test_sparse_and_dense_arrays_of_either_precision_are_read_as_asked():
    sparse = arrays(sp.coo_array(X), y, SIZES).load(0, "float64")
    assert sparse.sparse
    assert np.array_equal(sparse.rows(0, 4)[0].toarray(), X)
    single = arrays(X.astype("float32"), y, SIZES).load(0, "float64").rows(0, 4)[0]
    assert single.dtype == np.float64
    assert np.array_equal(single, X.astype("float32"))


def test_test_samples_are_a_share_or_given():
    share = arrays(X, y, SIZES, test=0.5).load(0, "float64")
    assert share.sizes_test.tolist() == [1, 2, 0, 2]
    same_tests_however_asked(share)
    given = arrays(X, y, SIZES, test=(X[:3], y[:3], [2, 0, 0, 1])).load(0, "float64")
    assert np.array_equal(given.rows_test(3, 4)[0], X[2:3])
    owned = arrays(X, y, OWNERS, test=(X[:3], y[:3], ["d", "a", "d"])).load(0, "float64")
    assert owned.sizes_test.tolist() == [1, 0, 0, 2]
    assert np.array_equal(owned.rows_test(3, 4)[0], X[[0, 2]])


def test_shape_and_hash_are_recorded_and_lead_to_the_arrays():
    made = arrays(X, y, SIZES)
    assert (made.shape, made.clients, len(made.sha256)) == ([10, 6], 4, 64)
    table = {"name": "arrays", "shape": [10, 6], "clients": 4, "sha256": made.sha256}
    again = Data.build(table, "data").load(0, "float64")
    assert np.array_equal(again.rows(0, 4)[0], X)


@pytest.mark.parametrize(
    "other",
    [
        lambda: arrays(X + 1, y, SIZES),
        lambda: arrays(X, 1 - y, SIZES),
        lambda: arrays(X, y, SIZES[::-1]),
        lambda: arrays(X, y, 4),
        lambda: arrays(X.astype("float32"), y, SIZES),
        lambda: arrays(sp.csr_array(X), y, SIZES),
        lambda: arrays(X, y, SIZES, test=(X[:3], y[:3], [2, 0, 0, 1])),
    ],
)
def test_other_arrays_have_another_hash(other):
    assert other().sha256 != arrays(X, y, SIZES).sha256
    assert other().sha256 == other().sha256


def test_the_order_in_memory_does_not_matter():
    assert arrays(np.asfortranarray(X), y, SIZES).sha256 == arrays(X, y, SIZES).sha256


def test_arrays_that_are_gone_are_asked_for():
    made = arrays(X, y, SIZES)
    table = {"name": "arrays", "shape": made.shape, "clients": 4, "sha256": made.sha256}
    del made
    gc.collect()
    with pytest.raises(
        UserError, match=r"arrays in memory \(10 × 6, sha256 \w{12}…\), which this program does not hold"
    ):
        Data.build(table, "data").check()


def test_arrays_that_were_changed_are_noticed():
    own = X.copy()
    made = arrays(own, y, SIZES)
    own[3, 2] += 1
    with pytest.raises(UserError, match=r"^the arrays have changed since mpifed\.arrays"):
        made.load(0, "float64")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: arrays(X[0], y, 1), r"^X has the shape \(6,\): it must be \(d, n\)"),
        (lambda: arrays(X, y[:9], 2), r"^y has 9 entries, but X has 10 rows$"),
        (lambda: arrays(X, y.astype(complex), 2), r"^y has the type complex128"),
        (lambda: arrays(np.where(X > 8, np.nan, X), y, 2), r"^row 9 of X is not finite"),
        (lambda: arrays(X, y, 11), r"^clients = 11 is wrong: 10 samples are for 1 to 10 clients$"),
        (lambda: arrays(X, y, [1, 2]), r"^clients is neither the sizes .* 10 in all, .* it has 2 entries$"),
        (lambda: arrays(X, y, SIZES, partition="iid"), r"^partition contradicts clients"),
        (lambda: arrays(X, y, 2, partition="idd"), r"^unknown partition 'idd'; did you mean 'iid'\?$"),
        (lambda: arrays(X, y, 2, test=2.0), r"^data\.test = 2\.0 is wrong"),
        (lambda: arrays(X, y, 2, test=(X, y, [5, 5])), r"^test samples of clients need clients that say whose"),
        (lambda: arrays(X, y, SIZES, test=(X, y)), r"^test has 2 parts"),
        (lambda: arrays(X, y, SIZES, test=(X[:, 1:], y, SIZES)), r"^X_test has 5 columns, but X has 6$"),
        (
            lambda: arrays(X, y, SIZES, test=(X, y, [5, 5])),
            r"^clients_test must be the sizes of the 4 clients, 10 in all",
        ),
        (
            lambda: arrays(X, y, OWNERS, test=(X[:1], y[:1], ["e"])),
            r"^clients_test must be one client for each of the 1 ",
        ),
        (lambda: Data.build("arrays", "data").load(0, "float64"), r'^data = "arrays" needs a Python program'),
    ],
)
def test_what_cannot_be_federated_data_is_refused(make, sentence):
    with pytest.raises(UserError, match=sentence):
        make()


@pytest.mark.parametrize("kind", ["U", "S", object])
def test_labels_may_be_texts_as_in_a_file(kind):
    words = np.array(["cat", "dog", "ant"])[y].astype("U").astype(kind)
    data = arrays(X, words, SIZES).load(0, "float64")
    assert data.rows(0, 4)[1].tolist() == np.array([1, 2, 0])[y].tolist()
    assert data.names == ("ant", "cat", "dog")
    assert data.notes == ("labels are text, numbered in sorted order: 'ant' is 0, 'cat' is 1, 'dog' is 2",)
    tested = arrays(X, words, SIZES, test=(X[:4], np.array(["bee", "ant", "ant", "dog"]), [1, 0, 2, 1]))
    data = tested.load(0, "float64")
    assert data.names == ("ant", "bee", "cat", "dog")
    assert data.rows_test(0, 4)[1].tolist() == [1, 0, 0, 3]


@pytest.mark.parametrize("words", [["a", None] * 5, ["a", 1.0] * 5])
def test_labels_that_are_partly_texts_are_refused(words):
    with pytest.raises(UserError, match=r"y has the type object: it must be an array of real numbers, or of texts"):
        arrays(X, np.array(words, dtype=object), SIZES)


def test_how_arrays_are_divided_is_said():
    assert arrays(X, y, SIZES).load(0, "float64").division == "by the arrays"
    assert arrays(X, y, 3, partition="contiguous").load(0, "float64").division == "contiguous"
