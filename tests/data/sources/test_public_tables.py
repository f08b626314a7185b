"""Public tables are read as they are published, and FLamby's where MPIFED_DATA has their files."""

import bz2
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.data.sources.public_tables import Adult
from tests.helpers.data_files import dense, same_rows_however_asked, table_of
from tests.helpers.image_files import REAL, build


def save(root, name, pair, X, y):
    """The .mat pair of a set."""
    (root / name).mkdir(exist_ok=True)
    scipy.io.savemat(root / name / f"{pair}.mat", {"X": X}, do_compression=True)
    scipy.io.savemat(root / name / f"{pair}class.mat", {"y": y}, do_compression=True)


def test_qot_reads_the_mat_pair_and_uci_s_csv_alike(root):
    labels = np.array([-1, 1, -1, -1, 1, -1], dtype=np.int16)
    bits = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]])
    words = np.where(labels == 1, "positive", "negative")
    (root / "qot").mkdir()
    np.savetxt(root / "qot/qsar_oral_toxicity.csv", np.column_stack([bits.astype(str), words]), "%s", ";")
    from_csv = table_of(build("qot", clients=2))
    save(root, "qot", "toxicity", sp.csc_array(bits.astype(float)), labels[:, None])
    for sparse in (False, True):
        dataset = build("qot", clients=2, sparse=sparse)
        assert (dataset.classes, dataset.sparse, dataset.division) == (2, sparse, "sizes, least = 0.025")
        table = table_of(dataset)
        assert np.array_equal(table, from_csv)
        assert sorted(table[:, 0]) == [0, 0, 0, 0, 1, 1]
        assert np.allclose(np.linalg.norm(table[:, 1:], axis=0), [1, 1, 0])
        assert table.min() >= 0  # not centred
        same_rows_however_asked(dataset)


def test_sct_reads_kaggle_s_table(root):
    (root / "sct").mkdir()
    path = root / "sct/train.csv"
    path.write_text("ID_code,target,var_0,var_1\ntrain_0,0,3,-1.5\ntrain_1,1,4,2\n")
    assert np.allclose(table_of(build("sct", clients=1)), [[0, 0.6, -0.6], [1, 0.8, 0.8]])
    for text, sentence in (
        (path.read_text().replace("-1.5", "nan"), r"row 0 of X of .*train\.csv is not finite"),
        ("a,b\n1,2\n", r"train\.csv is not Kaggle's train\.csv"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=sentence):
            build("sct", clients=1)


PEOPLE = """|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Sales, Own-child, Black, Male, 0, 0, 40, United-States, <=50K.
44, ?, 160323, HS-grad, 9, Divorced, Sales, Husband, White, Male, 7688, 0, 40, United-States, >50K.

"""
MORE = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba, >50K
50, Private, 83311, Bachelors, 13, Divorced, Sales, Husband, White, Female, 0, 0, 13, United-States, <=50K
"""
FIRST = [25, 0, 226802, 0, 7, 1, 1, 2, 0, 1, 0, 0, 40, 1]
CODES = np.array(
    [FIRST, [39, 1, 77516, 1, 13, 1, 0, 1, 1, 1, 2174, 0, 40, 0], [50, 0, 83311, 1, 13, 0, 1, 0, 1, 0, 0, 0, 13, 1]]
)


@pytest.fixture
def people(root):
    (root / "adult").mkdir()
    (root / "adult/adult.test").write_text(PEOPLE)
    (root / "adult/adult.data").write_text(MORE)
    return root


def test_adult_reads_the_mat_pair_and_uci_s_files_alike(people):
    path, X, y = Adult().read()
    assert path.name == "adult.data"
    assert np.array_equal(X, CODES)  # words in alphabetical order, the person with a missing value left out
    assert list(y) == [0, 1, 0]
    from_text = table_of(Adult(clients=2).load(0, "float64"))
    assert np.allclose(np.linalg.norm(from_text[:, 1:], axis=0), CODES.any(axis=0))
    save(people, "adult", "adult", CODES.astype(np.int32), y[:, None].astype(np.uint8))
    for sparse in (False, True):
        dataset = Adult(clients=2, sparse=sparse).load(0, "float64")
        assert np.array_equal(table_of(dataset), from_text)
        assert dataset.sparse == sparse == sp.issparse(dataset.rows(0, 1)[0])
        assert dataset.division == "sizes, least = 0.01"


def test_a_bad_line_of_adult_is_named(people):
    for line, sentence in (("1, 2, 3\n", r"adult\.data, line 3: 3 values: it must have 15"), ("1, é", "set adult")):
        (people / "adult/adult.data").write_text(MORE + line, encoding="utf-8")
        with pytest.raises(UserError, match=sentence):
            Adult(clients=2).load(0, "float64")


@pytest.mark.parametrize(
    ("kind", "labels", "classes"), [("binary", [-1, 1, -1, 1], 2), ("multiclass", [3, 7, 12, 3], 3)]
)
def test_rcv1_stays_sparse_and_its_classes_count_from_0(root, kind, labels, classes):
    (root / "rcv1").mkdir()
    text = "".join(f"{label} {i + 1}:0.5 9:0.25\n" for i, label in enumerate(labels)).encode()
    (root / f"rcv1/rcv1_train.{kind}.bz2").write_bytes(bz2.compress(text))
    data = Data.build({"name": "rcv1", "labels": kind, "clients": 3}, "data")
    dataset = data.load(0, "float32")
    X, y = dataset.rows(0, 3)
    assert (dataset.n, dataset.classes, dataset.sparse, sp.issparse(X), X.dtype) == (9, classes, True, True, "float32")
    assert np.array_equal(np.sort(y), np.sort(np.unique(labels, return_inverse=True)[1]))
    same_rows_however_asked(dataset)
    (root / f"rcv1/rcv1_train.{kind}").write_bytes(text.replace(b":", b" ", 1))
    with pytest.raises(UserError, match=rf"rcv1_train\.{kind}, line 1: .* is not of the form"):
        data.load(0, "float32")


@pytest.mark.skipif(not Path(REAL, "adult/adult.mat").is_file(), reason="MPIFED_DATA has no adult/adult.mat")
def test_adult_mat_begins_with_the_first_line_of_adult_test_and_ends_with_the_last_of_adult_data():
    """So UCI's files are read in that order, and their words in alphabetical order."""
    _, X, y = Adult().read()
    assert list(X[0]) == [25, 2, 226802, 1, 7, 4, 6, 3, 2, 1, 0, 0, 40, 38]
    assert list(X[-1]) == [52, 3, 287927, 11, 9, 2, 3, 5, 4, 0, 15024, 0, 40, 38]
    assert (y[0], y[-1]) == (0, 1)


ROWS = {  # a few lines in each file's own format
    "a9a": "-1 3:1 5:1 \n+1 1:1 4:1 \n-1 2:1 \n-1 3:1 5:1 \n",
    "w8a": "+1 1:1 5:1 \n-1 2:1 \n-1 \n-1 4:1 \n",  # a page may have none of the words
    "phishing": "0 1:0.18257 2:-0.5\n1 1:0.18257 5:1\n0 3:0.18257\n0 4:0.36515\n",
    "mushrooms": "1 1:1 3:1 \n2 2:1 5:1 \n1 4:1 \n1 1:1 3:1 \n",
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


PUBLISHED = {  # one of the files -> samples, features, samples with the larger label, numbers that are not 0
    "qot/toxicity.mat": (8992, 1024, 741),
    "adult/adult.mat": (45222, 14, 11208),
    "libsvm/a9a.gz": (32561, 123, 7841, 451592),
    "libsvm/w8a.gz": (49749, 300, 1479, 579586),
    "libsvm/phishing.gz": (11055, 68, 6157, 331650),
    "libsvm/mushrooms.gz": (8124, 112, 4208, 170604),
}


QUICK = ("qot/toxicity.mat", "adult/adult.mat", "libsvm/a9a.gz")


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=() if file in QUICK else pytest.mark.slow) for file in PUBLISHED]
)
def test_the_published_tables_have_their_published_sizes(file):
    if not Path(REAL, file).is_file():
        pytest.skip(f"MPIFED_DATA has no {file}")
    folder, name = file.split(".")[0].split("/")
    scaled = folder != "libsvm"
    dataset = build(folder if scaled else name)
    X, y = dataset.rows(0, dataset.m)
    assert (*X.shape, int(y.sum()), np.count_nonzero(dense(X)))[: len(PUBLISHED[file])] == PUBLISHED[file]
    assert (dataset.m, dataset.classes, dataset.sizes_test) == ({"qot": 128, "adult": 50}.get(folder, 142), 2, None)
    if scaled:  # columns have norm one, and sizes of clients differ
        assert np.allclose(np.einsum("ij,ij->j", X, X), 1)
        assert X.min() >= 0  # not centred
        assert dataset.sizes.min() > {"qot": 0.025, "adult": 0.01}[folder] * len(X) / dataset.m


FOLDER = Path(os.environ.get("MPIFED_DATA", ""), "flamby")
HEART = {
    "path": [str(FOLDER / f"heart/processed.{name}.data") for name in ("cleveland", "hungarian", "switzerland", "va")],
    "ignore": [10, 11, 12],
    "categories": [2, 6],
    "above": 0,
    "missing": "drop",
    "ones": True,
}
BRCA = {
    "path": str(FOLDER / "brca.csv"),
    "join": str(FOLDER / "train_test_split.csv"),
    "client": "fold2",
    "test": "fold2",
    "ignore": ["fold"],
    "time": "T",
    "event": "E",
}


def loaded(**options):
    """The data set, if its files are there."""
    if not FOLDER.is_dir():
        pytest.skip("MPIFED_DATA has no flamby")
    return Data.build({"name": "file", **options}, "data").load(0, "float64")


def test_heart_has_the_samples_and_features_of_flamby():
    data = loaded(**HEART, test=0.3425, standardise="pooled")  # FLamby takes 34 %, rounded up
    assert data.sizes.tolist() == [199, 172, 30, 85]
    assert data.sizes_test.tolist() == [104, 89, 16, 45]
    assert (data.n, data.owners[0], data.values().tolist()) == (14, "processed.cleveland", [0, 1])
    assert data.features[2:5] == ("column 2=2", "column 2=3", "column 2=4")
    X = data.rows(0, 4)[0]
    assert np.allclose(X[:, 0].mean(), 0)
    assert np.allclose(X[:, 0].std(), 1)


def test_the_optimum_of_heart_is_that_of_its_tables():
    """f* of the mean logistic loss over all 740 rows, by statsmodels: -Logit(y, X).fit().llf/740 of these columns."""
    data = loaded(**HEART)
    X, y = data.rows(0, 4)
    x = np.zeros(data.n)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ x))
        x -= np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (p - y))
    assert abs(np.mean(np.logaddexp(0, X @ x) - y * (X @ x)) - 0.42012454229) < 1e-10


def test_brca_has_the_split_the_regions_and_the_events_of_flamby():
    data = loaded(**BRCA)
    assert data.sizes.tolist() == [248, 156, 164, 129, 129, 40]
    assert data.sizes_test.tolist() == [63, 40, 42, 33, 33, 11]
    assert (data.m, data.n, data.owners) == (6, 39, ("0", "1", "2", "3", "4", "5"))
    assert data.features[0] == "age_at_index"
    assert (data.rows(0, 6)[1] > 0).sum() + (data.rows_test(0, 6)[1] > 0).sum() == 151
    assert "8 rows of " in data.notes[1]
