"""Columns of tables as features: levels, missing cells, standardising, and what stands for what."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.data.info import describe, survey
from tests.helpers.data_files import DENSE, csr, load, same_rows_however_asked, same_tests_however_asked, saved, write

pandas = pytest.importorskip("pandas")
TABLE = {
    "age": [30.0, 40.0, np.nan, 60.0, 35.0, 50.0],
    "sex": ["m", "f", "f", None, "m", "f"],
    "grade": [2, 10**12, 2, 1, 10**12, 2],
    "site": ["b", "a", "b", "a", "b", "a"],
    "y": [0, 1, 0, 1, 1, 0],
}
FRAME = pandas.DataFrame(TABLE)
WHOLE = FRAME.dropna()
CLIENT = {"client": "site", "target": "y"}


kinds = pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])


@kinds
def test_texts_and_listed_columns_become_zeros_and_ones_with_names_and_are_taken_by_name_or_number(kind, tmp_path):
    whole = saved(kind, WHOLE, tmp_path)
    made = whole(**CLIENT, categories=["grade"])
    assert made.features == ("age", "sex=m", "grade=1000000000000")  # in a full row no grade is 1
    assert made.rows(0, 2)[0].tolist() == [[40, 0, 1], [50, 0, 0], [30, 1, 0], [35, 1, 1]]
    made = whole(**CLIENT, categories=["grade"], levels="all")
    assert made.features == ("age", "sex=f", "sex=m", "grade=2", "grade=1000000000000")
    assert made.rows(0, 2)[0].tolist()[0] == [40, 1, 0, 0, 1]
    same_rows_however_asked(made)
    listed = whole(**CLIENT, features=["grade", "sex", "age"])
    assert (listed.features, listed.rows(0, 1)[0].tolist()[0]) == (("grade", "sex=m", "age"), [10**12, 0, 40])
    assert whole(client=3, target=-1, ignore=[2]).features == ("age", "sex=m")


@kinds
def test_missing_cells_are_refused_dropped_or_filled(kind, tmp_path):
    data = saved(kind, FRAME, tmp_path)
    with pytest.raises(UserError, match=r"has 2 missing cells: 'age' \(1\), 'sex' \(1\), the first one in the column"):
        data(**CLIENT)
    dropped = data(**CLIENT, missing="drop")
    assert dropped.notes[1:] == ("2 of 6 rows are left out: 2 missing cells in 'age' (1), 'sex' (1)",)
    assert dropped.sizes.tolist() == [2, 2]
    filled = data(**CLIENT, missing="mean").rows(0, 2)[0]
    assert filled[:, 0].tolist() == [40, 60, 50, 30, 43, 35]  # (40 + 60 + 50 + 30 + 35)/5
    assert filled[1, 1] == 0.4  # the share of m
    filled = data(**CLIENT, missing="client-mean").rows(0, 2)[0]
    assert filled[:, 0].tolist() == [40, 60, 50, 30, 32.5, 35]
    assert filled[1, 1] == 0


def test_means_are_those_of_training_samples(tmp_path):
    frame = pandas.DataFrame({"a": [1, 3, 90, np.nan], "fold": ["train", "train", "test", "test"], "y": [0, 1, 0, 1]})
    for how in ("mean", "client-mean"):
        made = saved("csv", frame, tmp_path)(test="fold", clients=1, missing=how)
        assert made.rows_test(0, 1)[0].tolist() == [[90], [2]]


@pytest.mark.parametrize("how", ["pooled", "own", "federated"])
def test_standardised_features_have_mean_0_and_deviation_1_in_training(tmp_path, how):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(5, 3, (60, 3)), columns=["a", "b", "c"])
    frame["c"] = 7
    frame["sex"] = rng.choice(["f", "m"], 60)
    frame["site"] = np.arange(60) % 3
    frame["fold"] = np.where(np.arange(60) < 45, "train", "test")
    frame["y"] = rng.integers(0, 2, 60)
    made = saved("csv", frame, tmp_path)(client="site", test="fold", standardise=how, ones=True)
    plain = saved("csv", frame, tmp_path)(client="site", test="fold")
    assert made.features == ("a", "b", "c", "sex=m", "intercept")
    for i in range(3):
        whose = (i, i + 1) if how == "own" else (0, 3)
        old, train = plain.rows(*whose)[0], made.rows(*whose)[0]
        assert np.allclose(train[:, :2].mean(axis=0), 0, atol=1e-12)
        assert np.allclose(train[:, :2].std(axis=0), 1)
        assert not train[:, 2].any()
        assert set(train[:, 3]) == {0, 1}
        assert (train[:, 4] == 1).all()
        scaled = (plain.rows_test(i, i + 1)[0][:, :2] - old[:, :2].mean(axis=0)) / old[:, :2].std(axis=0)
        assert np.allclose(made.rows_test(i, i + 1)[0][:, :2], scaled)
    same_rows_however_asked(made)
    same_tests_however_asked(made)
    notes = "\n".join(made.notes)
    assert ("constant there: they are 0" in notes) == (how == "own")
    assert ("constant features are 0 when they are standardised: c" in notes) == (how != "own")
    assert ("168 bytes up (Σa and Σa² of 3 features) and 144 down" in notes) == (how == "federated")
    assert made.exchanged == ((3, 168, 144) if how == "federated" else (0, 0, 0))


def test_the_sums_of_clients_are_charged_before_round_1(tmp_path):
    source = {"name": "file", "path": str(write(tmp_path / "fed.npz", DENSE)), "standardise": "federated"}
    study = {"algorithm": "gd", "rounds": 2, "progress": False, "problem": "least-squares"}
    result = mpifed.run(data=source, path=tmp_path / "a.h5", **study)
    plain = mpifed.run(data=source | {"standardise": "pooled"}, path=tmp_path / "b.h5", **study)
    assert (result.rounds["bytes_up"] - plain.rounds["bytes_up"]).tolist() == [8 * 4 * 13] * 3
    assert (result.rounds["bytes_down"] - plain.rounds["bytes_down"]).tolist() == [8 * 4 * 12] * 3
    assert (result.rounds["exchanges"] - plain.rounds["exchanges"]).tolist() == [1] * 3


def test_what_is_not_a_table_is_standardised_too_but_not_sparse_matrices(tmp_path):
    X = np.random.default_rng(0).normal(3, 2, (12, 4))
    path = write(tmp_path / "fed.h5", {"X": X, "y": np.arange(12) % 2, "sizes": np.array([5, 7])})
    made = load(path, standardise="pooled", dtype="float32")
    assert np.allclose(made.rows(0, 2)[0], (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-6)
    assert made.rows(0, 2)[0].dtype == np.float32
    path = write(tmp_path / "sparse.npz", {**csr("X", X), "y": np.arange(12) % 2, "sizes": np.array([5, 7])})
    with pytest.raises(UserError, match=r'^data\.standardise = "own" would make a sparse matrix dense'):
        load(path, standardise="own")
    made = load(path, ones=True)
    assert made.rows(0, 2)[0].toarray()[:, 4].tolist() == [1] * 12
    assert made.features == ()


def test_times_and_events_are_labels_with_a_sign(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "t": [5.0, 0, 2], "e": [True, False, True]})
    for kind in ("csv", "parquet", "frame"):
        made = saved(kind, frame, tmp_path)(time="t", event="e", clients=1, partition="contiguous")
        assert (made.rows(0, 1)[1].tolist(), made.classes) == ([5, -1, 2], 0)


def test_test_rows_without_clients_are_dealt_out_evenly_and_one_column_may_say_the_fold_and_the_client(tmp_path):
    frame = pandas.DataFrame({"a": range(9), "fold": [0, 1, 0, 1, 0, 1, 0, 0, 0], "y": [0, 1, 0, 1, 0, 1, 0, 1, 1]})
    made = saved("csv", frame, tmp_path)(clients=2, test="fold")
    assert (made.sizes.tolist(), made.sizes_test.tolist()) == ([3, 3], [1, 2])
    assert made.rows_test(0, 2)[0].ravel().tolist() == [1, 3, 5]
    folds = ["train_1", "test_0", "train_0", "test_1", "train_1"]
    made = saved("csv", frame[:5].assign(fold=folds), tmp_path)(client="fold", test="fold")
    assert made.owners == ("0", "1")
    assert [part.ravel().tolist() for part in (made.rows(0, 2)[0], made.rows_test(0, 2)[0])] == [[2, 0, 4], [1, 3]]


def test_files_of_one_table_are_a_client_each(tmp_path):
    (tmp_path / "bonn.csv").write_text("kind,a,y\n1.0,2,0\n3,4,1\n")
    (tmp_path / "aachen.csv").write_text("kind,a,y\n1,5,0\n2,?,1\n2,7,0\n")
    paths = [str(tmp_path / f"{name}.csv") for name in ("bonn", "aachen")]
    source = {"name": "file", "path": paths, "missing": "drop", "categories": ["kind"]}
    made = Data.build(source, "data").load(0, "float64")
    assert (made.owners, made.sizes.tolist(), made.features) == (("bonn", "aachen"), [2, 2], ("kind=2", "kind=3", "a"))
    assert made.rows(0, 2)[0].tolist() == [[0, 0, 2], [0, 1, 4], [0, 0, 5], [1, 0, 7]]
    (tmp_path / "aachen.csv").write_text("kind,b,y\n1,5,0\n")
    with pytest.raises(UserError, match=r"unlike .*bonn\.csv, .*aachen\.csv has no column 'a'$"):
        Data.build(source, "data").load(0, "float64")
    (tmp_path / "aachen.csv").write_bytes(b"kind,a,y\n\xff,5,0\n")
    with pytest.raises(UserError, match=r"^.*aachen\.csv, line 2: the byte 0xff is not UTF-8: data\.encoding names"):
        Data.build(source, "data").load(0, "float64")
    (tmp_path / "aachen.csv").write_text("kind,a,y\n1,?,0\n")
    with pytest.raises(UserError, match=r"aachen\.csv has no row for training: each file of data\.path is a client"):
        Data.build(source, "data").load(0, "float64")


def test_a_second_table_adds_columns_by_the_name_that_both_have(tmp_path):
    (tmp_path / "x.csv").write_text("who,a,y\np2,1,0\np1,2,1\np9,3,0\n,4,0\n")
    (tmp_path / "more.csv").write_text("who,b,site\np1,7,u\np2,8,v\n,9,u\n,9,u\n")
    joined = {"join": str(tmp_path / "more.csv"), "target": "y"}
    made = load(tmp_path / "x.csv", client="site", **joined)
    assert (made.features, made.owners) == (("a", "b"), ("u", "v"))
    assert made.rows(0, 2)[0].tolist() == [[2, 7], [1, 8]]
    assert made.notes[1].startswith("2 rows of ")  # a missing key is that of no row
    (tmp_path / "z.csv").write_text("who,a,y\np1,5,1\n")
    paths = [str(tmp_path / f"{name}.csv") for name in "xz"]
    made = mpifed.data.File(path=paths, ignore="site", **joined).load(0, "float64")
    assert (made.owners, made.rows(1, 2)[0].tolist()) == (("x", "z"), [[5, 7]]), "each file is a client"
    (tmp_path / "more.csv").write_text("who,b\np1,7\np1,8\n")
    with pytest.raises(UserError, match=r"more\.csv has several rows with who = 'p1': it must have one$"):
        load(tmp_path / "x.csv", **joined)
    (tmp_path / "more.csv").write_text("whom,b\np1,7\n")
    with pytest.raises(UserError, match=r"by one column of the same name, but they share none$"):
        load(tmp_path / "x.csv", **joined)


def test_frames_of_a_program_are_held_by_it(monkeypatch):
    made = mpifed.table(WHOLE, **CLIENT)
    result = mpifed.run(data=made, problem="logistic", algorithm="gd", rounds=1, progress=False)
    assert result.cr == 1
    odd = mpifed.table(WHOLE.astype({"age": object, "grade": "Sparse[int64]"}), **CLIENT).load(0, "float64")
    assert odd.rows(0, 2)[0].tolist() == made.load(0, "float64").rows(0, 2)[0].tolist()
    with pytest.raises(UserError, match=r"^the data frame has no columns$"):
        mpifed.table(pandas.DataFrame())
    with pytest.raises(UserError, match=r"^data is a data frame: write data = mpifed\.table\(frame"):
        mpifed.run(data=WHOLE, rounds=1)
    with pytest.raises(UserError, match=r"^mpifed\.table takes a data frame, not list"):
        mpifed.table([1, 2])
    with pytest.raises(UserError, match=r'^data = "frame" needs a Python program'):
        Data.build("frame", "data").load(0, "float64")
    for wrong in (WHOLE.assign(day=pandas.Timestamp("2020-01-01")), WHOLE.assign(day=[1, "x", 2, 3])):
        with pytest.raises(UserError, match=r"'day' of the data frame (has the type datetime|holds 1 among others)"):
            mpifed.table(wrong, **CLIENT).load(0, "float64")


def test_info_shows_levels_missing_cells_and_constant_columns(tmp_path):
    made = saved("csv", FRAME.assign(same=1), tmp_path)(**CLIENT, missing="drop", categories=["grade"])
    text = describe(made, survey(made))
    rows = [line.split() for line in text.splitlines()]
    assert ["constant", "features", "1", "(same)"] in rows
    assert ["age", "1", "1", "30", "to", "50"] in rows
    assert ["sex", "1", "1", "[f],", "m"] in rows
    assert ["grade", "1", "·", "[2],", "1000000000000"] in rows
    assert ["0", "a", "2", "2", "1", "1"] in rows


@kinds
def test_texts_are_the_same_with_and_without_blanks(kind, tmp_path):
    frame = pandas.DataFrame({"s": ["u ", "u", None, " v"], "site": list("aabb"), "y": [0.0, 1.0, 2.0, 3.0]})
    data = saved(kind, frame, tmp_path)(**CLIENT, missing="drop")
    assert data.features == ("s=v",)
    assert data.rows(0, 2)[0].tolist() == [[0], [0], [1]]
