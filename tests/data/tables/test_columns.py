"""What the columns of a table become, and that it is said: features, categories, clients, names of rows."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.data.tables.table import DataTable
from tests.helpers.data_files import load, saved

pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
IDS = "id,a,y\n007,1,0\n07,2,1\n7,4,1\n1E5,8,1\n100000,16,0\n20,32,0\n7,64,1\n"


def read(folder, text, **options):
    (folder / "x.csv").write_text(text)
    return load(folder / "x.csv", **options)


def said(data, word):
    return [note for note in data.notes if word in note]


def test_an_index_of_pandas_is_no_feature_and_no_label_where_it_has_no_name(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "y": [0, 1, 1]}, index=[7, 3, 5])
    frame.to_parquet(tmp_path / "x.parquet")
    data = load(tmp_path / "x.parquet", clients=1, partition="contiguous")
    assert (data.features, data.rows(0, 1)[1].tolist()) == (("a",), [0, 1, 1])
    assert said(data, "left out '__index_level_0__' (names of rows)")
    frame.rename_axis("who").to_parquet(tmp_path / "x.parquet")
    assert load(tmp_path / "x.parquet", client="who", target="y").owners == ("3", "5", "7")
    two = frame.set_index([["u", "v", "w"], [1, 2, 3]])
    two.to_parquet(tmp_path / "x.parquet")
    assert load(tmp_path / "x.parquet", clients=1).features == ("a",)


def test_ids_are_kept_as_they_are_written(tmp_path):
    data = read(tmp_path, IDS, client="id", target="y")
    assert (data.owners, data.m) == (("007", "07", "7", "20", "100000", "1E5"), 6)
    assert data.rows(0, data.m)[0].ravel().tolist() == [1, 2, 4, 64, 32, 16, 8]
    assert said(data, "different clients, though their names are one number: '007' and '07' and '7', '100000' and ")
    data = read(tmp_path, "a,id,y\n1,9007199254740993,0\n2,9007199254740992,1\n", client="id")
    assert data.owners == ("9007199254740992", "9007199254740993")
    (tmp_path / "more.csv").write_text("id,b\n007,1\n7,2\n")
    data = read(tmp_path, IDS, client="id", target="y", join=str(tmp_path / "more.csv"))
    assert (data.owners, data.rows(0, 2)[0].tolist()) == (("007", "7"), [[1, 1], [4, 2], [64, 2]])
    frame = pandas.DataFrame({"id": [7.0, 7.0, 10.0], "a": [1, 2, 3], "y": [0, 1, 1]})
    assert mpifed.table(frame, client="id").load(0, "float64").owners == ("7", "10")
    with pytest.raises(UserError, match=r"'id' of the data frame has numbers from 2\^53 on, which are not told apart"):
        mpifed.table(frame.assign(id=2.0**53), client="id").load(0, "float64")


def categories(folder, kind, **columns):
    return saved(kind, pandas.DataFrame({"a": [1.0, 2.0, 4.0, 8.0], **columns}), folder, row_group_size=2)


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_the_order_of_categories_is_that_of_the_table(tmp_path, kind):
    dose = pandas.Categorical(["low", "none", None, "high"], ["unused", "none", "low", "high"], ordered=True)
    age = pandas.cut([3, 7, 12, 60], [0, 5, 10, 100]).rename_categories(str)
    label = pandas.Categorical(["well", "ill", "ill", "well"], ["well", "ill"])
    data = categories(tmp_path, kind, dose=dose, age=age, y=label)(clients=1, missing="drop", partition="contiguous")
    assert data.features == ("a", "dose=low", "dose=high", "age=(5, 10]", "age=(10, 100]")
    X, y = data.rows(0, 1)
    assert X.tolist() == [[1, 1, 0, 0, 0], [2, 0, 0, 1, 0], [8, 0, 1, 0, 1]]
    assert (data.names, y.tolist()) == (("well", "ill"), [0, 1, 0])
    assert said(data, "numbered in the order of its categories: 'well' is 0, 'ill' is 1")
    data = categories(tmp_path, kind, dose=dose, y=label)(clients=2, missing="drop", test=0.4)
    tests = data.rows_test(0, 2)
    assert tests[1].tolist() == [{2.0: 1, 1.0: 0, 8.0: 0}[a] for a in tests[0][:, 0]]


def test_categories_that_are_numbers_stay_categories_in_a_parquet_file(tmp_path):
    grade = pandas.Categorical([10, 2, 2, 3], [10, 3, 2])
    assert categories(tmp_path, "frame", g=grade, y=[0, 1, 0, 1])(clients=1).features == ("a", "g=3", "g=2")
    assert categories(tmp_path, "parquet", g=grade, y=[0, 1, 0, 1])(clients=1).features == ("a", "g=3", "g=10")


def test_a_dictionary_in_the_order_of_appearance_is_sorted(tmp_path):
    for name, words in (("x", ["v", "u"]), ("z", ["w", "u"])):
        pq.write_table(pa.table({"s": pa.array(words).dictionary_encode(), "y": [0, 1]}), tmp_path / f"{name}.parquet")
    assert load(tmp_path / "x.parquet", clients=1).features == ("s=v",)
    both = [str(tmp_path / f"{name}.parquet") for name in "xz"]
    assert mpifed.data.File(path=both).load(0, "float64").features == ("s=v", "s=w")


def test_several_files_keep_an_order_that_all_have(tmp_path):
    for order, features in ((["w", "u", "v"], ("s=u", "s=v", "g=3")), (["v", "u", "w"], ("s=v", "s=w", "g=3"))):
        for name, cells, own in (("x", ["u", "w"], ["w", "u", "v"]), ("z", ["v", "u"], order)):
            frame = pandas.DataFrame(
                {"s": pandas.Categorical(cells, own), "g": pandas.Categorical([2, 3]), "y": [0, 1]}
            )
            frame.to_parquet(tmp_path / f"{name}.parquet")
        both = [str(tmp_path / f"{name}.parquet") for name in "xz"]
        assert mpifed.data.File(path=both).load(0, "float64").features == features


def test_the_order_of_categories_belongs_to_what_a_frame_is_known_by():
    words = pandas.Categorical(["u", "v"])
    frames = [pandas.DataFrame({"s": one, "y": [0, 1]}) for one in (words, words.reorder_categories(["v", "u"]))]
    assert mpifed.table(frames[0]).sha256 != mpifed.table(frames[1]).sha256


def test_clients_without_a_row_are_named(tmp_path):
    (tmp_path / "more.csv").write_text("who,b\np1,7\np3,8\n")
    text = "who,a,site,y\np1,1,1,0\np2,2,22,1\np3,3,3,1\n"
    data = read(tmp_path, text, client="site", join=str(tmp_path / "more.csv"), target="y")
    assert said(data, "1 client of the column 'site' has no row left, and no part in the run: 22")
    frame = pandas.DataFrame({"a": [1.0, None], "site": [7, 8], "y": [0, 1]})
    data = mpifed.table(frame, client="site", missing="drop").load(0, "float64")
    assert said(data, "1 client of the column 'site' has no row left, and no part in the run: 8")


def test_an_empty_text_is_a_level_of_a_frame_and_levels_that_differ_are_no_one_number(tmp_path):
    frame = pandas.DataFrame({"s": ["", ""], "a": [1.0, 2.0], "y": [0, 1]})
    assert mpifed.table(frame, clients=1).load(0, "float64").features == ("a",)
    assert not said(read(tmp_path, "zip,y\n1,0\n2,1\n", categories=["zip"], clients=1), "one number")


class Name(str):
    """A name of a column that counts with how many others it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_of_many_columns_are_looked_up_and_not_compared_with_each_other():
    names = [Name(f"g{k}") for k in range(5000)]
    table = DataTable("x", names)
    assert [table.find("features", Name(name)) for name in names] == list(range(5000))
    assert Name.compared < 3 * 5000  # 12 million pairs


def test_columns_of_a_wide_parquet_file_are_read_many_at_a_time(tmp_path, monkeypatch):
    frame = pandas.DataFrame(np.arange(900.0).reshape(2, 450)).rename(columns=str).assign(y=[0, 1])
    frame.to_parquet(tmp_path / "x.parquet")
    calls = []
    read_file = pq.ParquetFile.read
    monkeypatch.setattr(pq.ParquetFile, "read", lambda self, **how: calls.append(1) or read_file(self, **how))
    assert load(tmp_path / "x.parquet", clients=1, partition="contiguous").rows(0, 1)[0][1].tolist()[-1] == 899
    assert len(calls) == 1
    monkeypatch.setattr("mpifed.data.formats.parquet.AT_ONCE", 160)  # ten columns of two rows
    assert load(tmp_path / "x.parquet", clients=1).n == 450
    assert len(calls) == 1 + 46
