"""Arrays in memory: whose each sample is, what is recorded of them, and what is refused."""

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed
from mpifed.core.errors import UserError
from mpifed.core.objects import to_plain
from mpifed.data.dataset import Data
from mpifed.data.partition import Iid
from mpifed.data.sources.arrays import arrays
from mpifed.data.sources.held import refuse_others
from tests.helpers.data_files import SIZES, X, same_rows_however_asked, same_tests_however_asked, y

OWNERS = np.repeat(["c", "a", "d", "b"], SIZES)
SHUFFLED = np.array([3, 0, 1, 2, 3, 1, 0, 2, 3, 3])
TEST = (X[:3], y[:3], [2, 0, 0, 1])


def loaded(X, y, clients, seed=0, **options):
    return arrays(X, y, clients, **options).load(seed, "float64")


def test_sizes_or_owners_give_each_client_its_rows():
    data = loaded(X, y, SIZES)
    rows, labels = data.rows(1, 3)
    assert (data.sizes.tolist(), data.division) == (SIZES.tolist(), "by the arrays")
    assert np.array_equal(rows, X[2:6])
    assert np.array_equal(labels, y[2:6])
    same_rows_however_asked(data)
    data = loaded(X, y, SHUFFLED)
    assert data.sizes.tolist() == [2, 2, 2, 4]
    assert np.array_equal(data.rows(3, 4)[0], X[SHUFFLED == 3])
    assert np.array_equal(loaded(X, y, OWNERS.tolist()).rows(0, 1)[0], X[OWNERS == "a"])  # in sorted order


def test_a_number_of_clients_is_served_by_a_partition_and_arrays_of_any_form_are_read_as_asked():
    rows, usual = (loaded(X, y, 4, 3, partition="iid").rows(0, 4)[0], loaded(X, y, np.int64(4), 3).rows(0, 4)[0])
    assert np.array_equal(rows, usual)
    assert sorted(rows[:, 1]) == sorted(X[:, 1])
    assert arrays(X, y, 4, partition=Iid()).partition == Iid()
    assert loaded(X, y, 3, partition="contiguous").division == "contiguous"
    sparse = loaded(sp.coo_array(X), y, SIZES)
    assert sparse.sparse
    assert np.array_equal(sparse.rows(0, 4)[0].toarray(), X)
    single = loaded(X.astype("float32"), y, SIZES).rows(0, 4)[0]
    assert single.dtype == np.float64
    assert np.array_equal(single, X.astype("float32"))


def test_test_samples_are_a_share_or_given():
    share = loaded(X, y, SIZES, test=0.5)
    assert share.sizes_test.tolist() == [1, 2, 0, 2]
    same_tests_however_asked(share)
    assert np.array_equal(loaded(X, y, SIZES, test=TEST).rows_test(3, 4)[0], X[2:3])
    owned = loaded(X, y, OWNERS, test=(X[:3], y[:3], ["d", "a", "d"]))
    assert owned.sizes_test.tolist() == [1, 0, 0, 2]
    assert np.array_equal(owned.rows_test(3, 4)[0], X[[0, 2]])


def test_shape_and_hash_are_recorded_and_lead_to_the_arrays_as_long_as_they_are_there_and_the_same():
    own = X.copy()
    made = arrays(own, y, SIZES)
    assert (made.shape, made.clients, len(made.sha256)) == ([10, 6], 4, 64)
    again = Data.build({"name": "arrays", "shape": [10, 6], "clients": 4, "sha256": made.sha256}, "data")
    assert np.array_equal(again.load(0, "float64").rows(0, 4)[0], X)
    own[3, 2] += 1
    with pytest.raises(UserError, match=r"^the data in memory have changed since mpifed\.arrays"):
        made.load(0, "float64")
    del made
    gc.collect()
    gone = r"arrays in memory \(10 × 6, sha256 \w{12}…\), which this program does not hold"
    with pytest.raises(UserError, match=gone):
        again.check()


def test_other_arrays_have_another_hash_and_the_order_in_memory_does_not_matter():
    others = [(X + 1, y, SIZES), (X, 1 - y, SIZES), (X, y, SIZES[::-1]), (X, y, 4)]
    others += [(X.astype("float32"), y, SIZES), (sp.csr_array(X), y, SIZES), (X, y, SIZES, TEST)]
    hashes = [arrays(*words[:3], test=(*words, 0.0)[3]).sha256 for words in [(X, y, SIZES), *others, *others]]
    assert len(set(hashes)) == 1 + len(others)
    assert arrays(np.asfortranarray(X), y, SIZES).sha256 == hashes[0]


MASKED = np.ma.array(X, mask=np.isin(np.arange(60).reshape(10, 6), [7, 30]))
MASK = r"has a mask over \d+ numbers?, of which nothing is known: leave"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((X[0], y, 1), r"^X has the shape \(6,\): it must be \(d, n\)"),
        ((X, y[:9], 2), r"^y has 9 entries, but X has 10 rows$"),
        ((X, y.astype(complex), 2), r"^y has the type complex128"),
        ((X, ["a", None] * 5, SIZES), r"^y has the type object: it must be an array of real numbers, or of texts"),
        ((np.where(X > 8, np.nan, X), y, 2), r"^row 9 of X is not finite"),
        ((X, y, 11), r"^clients = 11 is wrong: 10 samples are for 1 to 10 clients$"),
        ((X, y, [[0] * 5, [1] * 4]), r"^clients has parts of different lengths: it must be an array$"),
        ((X, y, ["a", None] * 5), r"^clients has the type object"),
        ((X, y, [0.0, np.nan] * 5), r"^row 1 of clients is not finite"),
        ((X, y, [1, 2]), r"^clients is neither the sizes .* 10 in all, .* it has 2 entries$"),
        ((X, y, SIZES, {"partition": "iid"}), r"^partition contradicts clients"),
        ((X, y, 2, {"partition": "idd"}), r"^unknown partition 'idd'; did you mean 'iid'\?$"),
        ((X, y, 2, {"test": 2.0}), r"^data\.test = 2\.0 is wrong"),
        ((X, y, 2, {"test": (X, y, [5, 5])}), r"^test samples of clients need clients that say whose"),
        ((X, y, SIZES, {"test": (X, y)}), r"^test has 2 parts"),
        ((X, y, SIZES, {"test": (X[:, 1:], y, SIZES)}), r"^X_test has 5 columns, but X has 6$"),
        ((X, y, SIZES, {"test": (X, y, [5, 5])}), r"^clients_test must be the sizes of the 4 clients, 10 in all"),
        ((X, y, OWNERS, {"test": (X[:1], y[:1], ["e"])}), r"^clients_test must be one client for each of the 1 "),
        # numpy drops a mask when a masked array becomes an array, and the numbers below are then samples
        ((MASKED, y, SIZES), rf"^X {MASK}"),
        ((list(MASKED), y, SIZES), rf"^X {MASK}"),
        ((X, np.ma.masked_equal(y, 1), SIZES), rf"^y {MASK}"),
        ((X, y, np.ma.masked_equal(OWNERS, "a")), rf"^clients {MASK}"),
        ((X, y, SIZES, {"weight": np.ma.masked_equal(np.arange(10.0), 3)}), rf"^weight {MASK}"),
        ((X, y, SIZES, {"test": (MASKED[:3], y[:3], [2, 0, 0, 1])}), rf"^X_test {MASK}"),
        ((X, y, SIZES, {"classes": 2}), r"the arrays has the label 2, which is none of data\.classes = 2: name"),
        (
            (X, y, SIZES, {"classes": [1, 1, 2]}),
            r"data\.classes = \[1, 1, 2\] is wrong: it must be a number of classes ",
        ),
        ((X, y, SIZES, {"classes": ["a", "b"]}), "has the label 0, which is none of"),
    ],
)
def test_what_cannot_be_federated_data_is_refused(words, sentence):
    with pytest.raises(UserError, match=sentence):
        loaded(*words[:3], **(words[3] if len(words) > 3 else {}))


@pytest.mark.parametrize("kind", ["U", "S", object])
def test_labels_may_be_texts_as_in_a_file(kind):
    words = np.array(["cat", "dog", "ant"])[y].astype("U").astype(kind)
    data = loaded(X, words, SIZES)
    assert data.rows(0, 4)[1].tolist() == np.array([1, 2, 0])[y].tolist()
    assert data.names == ("ant", "cat", "dog")
    assert data.notes == ("labels are text, numbered in sorted order: 'ant' is 0, 'cat' is 1, 'dog' is 2",)
    data = loaded(X, words, SIZES, test=(X[:4], np.array(["bee", "ant", "ant", "dog"]), [1, 0, 2, 1]))
    assert (data.names, data.rows_test(0, 4)[1].tolist()) == (("ant", "bee", "cat", "dog"), [1, 0, 0, 3])


def test_what_the_sentence_on_a_mask_advises_gives_the_rows_without_one():
    pandas = pytest.importorskip("pandas")
    keep = ~MASKED.mask.any(axis=1)
    sizes = np.add.reduceat(keep, np.cumsum([0, *SIZES[:-1]]))
    data = loaded(X[keep], y[keep], np.repeat(np.arange(4), sizes))
    frame = pandas.DataFrame({str(j): pandas.Series(MASKED[:, j]) for j in range(X.shape[1])}).assign(
        y=y, client=np.repeat(np.arange(4), SIZES)
    )
    table = mpifed.table(frame, target="y", client="client", missing="drop").load(0, "float64")
    assert np.array_equal(table.rows(0, table.m)[0], data.rows(0, data.m)[0])
    assert arrays(np.ma.array(X), y, SIZES).sha256 == arrays(X, y, SIZES).sha256  # none of them has a mask


def test_masks_of_data_of_ones_own_and_of_items_are_not_dropped():
    class Own(Data):
        def load(self, seed, dtype):
            return mpifed.extend.Pool(MASKED, y, None, SIZES, dtype)

    with pytest.raises(UserError, match=r"^rows\(0, 4\) of Pool returns a masked array"):
        mpifed.run(data=Own(clients=4), rounds=1, progress=None)
    with pytest.raises(UserError, match="masked entries, of which nothing is known"):
        mpifed.datasets([[(MASKED[0], 1)], [(MASKED[1], 0)]])


def test_tensors_that_are_no_arrays_and_frames_of_objects_are_told():
    class Tensor:
        def __array__(self, *args, **named):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")

    with pytest.raises(UserError, match=r"^X cannot be made an array of numpy: Can't call numpy"):
        arrays(Tensor(), y, SIZES)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).astype(object)
    with pytest.raises(UserError, match=r"it must be an array of real numbers; mpifed\.table takes a data frame$"):
        arrays(frame, y, SIZES)
    assert mpifed.table(frame.assign(y=y), target="y", clients=2).load(0, "float64").n == X.shape[1]


def test_classes_are_those_that_are_stated():
    data = loaded(X, y, SIZES, classes=5)
    assert (data.classes, data.stated, data.rows(0, 4)[1].tolist()) == (5, True, y.tolist())
    words = np.array(["cat", "dog", "ant"])[y]
    data = loaded(X, words, SIZES, classes=["dog", "cat", "owl", "ant"], test=(X[:4], ["cat"] * 4, [1, 1, 1, 1]))
    assert data.rows(0, 4)[1].tolist() == np.array([1, 0, 3])[y].tolist()
    assert data.names == ("dog", "cat", "owl", "ant")
    assert "labels are numbered as data.classes says: 'dog' is 0, 'cat' is 1, 'owl' is 2, 'ant' is 3" in data.notes
    assert loaded(X, y + 1, SIZES, classes=[3, 1, 2]).rows(0, 4)[1].tolist() == np.array([1, 2, 0])[y].tolist()


def test_ranks_whose_program_passes_other_arrays_or_none_hear_that_they_differ():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    made = [arrays(A, y, [2, 4]) for A in (X, X.copy(), X + 1e-9)]
    first, same, other = ({"data": to_plain(one, "data")} for one in made)
    refuse_others(same, first, 2)
    refuse_others({"data": "digits"}, {"data": "digits"}, 1)
    words = r"^the arrays of data differ between ranks: sha256 [0-9a-f]{12}… on rank 0, and "
    with pytest.raises(UserError, match=words + r"sha256 [0-9a-f]{12}… on rank 2: every rank must pass the same ones"):
        refuse_others(other, first, 2)
    for without in ({}, {"data": "digits"}):
        with pytest.raises(UserError, match=words + "none on rank 1"):
            refuse_others(without, first, 1)
