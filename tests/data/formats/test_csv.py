"""CSV files."""

import gzip

import numpy as np
import pytest

from tests.helpers.data_files import load, refused, same_rows_however_asked, table_of

CSV = "a,b,class\n1,2.5,0\n3,-1e2,1\n5,6,1\n"
IRIS = "5.1,3.5,setosa\n4.9,3.0,virginica\n4.7,3.2,setosa\n"
USERS = "user,a,y\nzoe,1,0\nadam,2,1\nzoe,3,1\nadam,4,0\nmia,5,1\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (CSV, {}),
        (CSV, {"target": "class"}),
        (CSV, {"target": -1}),
        (CSV.split("\n", 1)[1], {}),
        (CSV.replace(",", ";"), {}),
        (CSV.replace(",", "\t"), {}),
        ("class,a,b\n0,1,2.5\n1,3,-1e2\n1,5,6\n", {"target": "class"}),
        ("\ufeff" + CSV, {"target": "class"}),
        (CSV.replace("a,b", "5,6"), {}),  # a word above numbers
        (CSV.replace("a,", '"a",').replace("\n", "\r\n"), {}),
        (CSV.replace("\n", "\r"), {}),
    ],
)
def test_csv_with_and_without_header(tmp_path, text, options):
    (tmp_path / "x.csv").write_text(text, newline="")
    dataset = load(tmp_path / "x.csv", clients=1, **options)
    assert np.array_equal(table_of(dataset), [[1, 3, -100], [0, 1, 2.5], [1, 5, 6]])
    assert dataset.classes == 2
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert load(tmp_path / "x.csv.gz", clients=1, **options).n == 2


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (IRIS, {}),
        ("\ufeff" + IRIS.replace("\n", "\r\n"), {}),
        (IRIS.replace(",", "\t").replace("\n", "\n\n").rstrip("\n"), {}),
        ("length,width,kind\n" + IRIS, {}),
        ("0,1,kind\n" + IRIS, {}),  # pandas numbers columns that have no name
        ("1,2,kind\n" + IRIS, {}),
        ("length,width,kind\n" + IRIS.replace("setosa", '"setosa"').replace("virginica", " virginica "), {}),
        ("kind;a;b\nsetosa;5.1;3.5\nvirginica;4.9;3.0\nsetosa;4.7;3.2\n", {"target": "kind"}),
        ("setosa;5.1;3.5\nvirginica;4.9;3.0\nsetosa;4.7;3.2\n", {"target": 0}),
    ],
)
def test_labels_may_be_text_with_and_without_header(tmp_path, text, options):
    (tmp_path / "iris.csv").write_text(text)
    dataset = load(tmp_path / "iris.csv", clients=1, **options)
    rows = np.array([[0, 4.7, 3.2], [1, 4.9, 3.0], [0, 5.1, 3.5]])
    assert np.array_equal(table_of(dataset), rows[np.lexsort(rows.T)])
    assert dataset.names == ("setosa", "virginica")
    called = "the column 'kind'" if "kind" in text else f"column {options.get('target', 2)}"
    said = f"labels of {called} are text, numbered in sorted order: 'setosa' is 0, 'virginica' is 1"
    assert dataset.notes[1:] == (said,)


@pytest.mark.parametrize("names", [("adam", "mia", "zoe"), ("7", "8", "9.5"), ("1000001", "1000002", "1000003")])
def test_a_column_says_which_client_a_row_belongs_to(tmp_path, names):
    (tmp_path / "users.csv").write_text(
        USERS.replace("adam", names[0]).replace("mia", names[1]).replace("zoe", names[2])
    )
    dataset = load(tmp_path / "users.csv", client="user")
    assert (dataset.owners, dataset.n, dataset.names, list(dataset.sizes)) == (names, 1, (), [2, 1, 2])
    X, y = dataset.rows(0, 3)
    assert (X.ravel().tolist(), y.tolist()[2:]) == ([2, 4, 5, 1, 3], [1, 0, 1])
    same_rows_however_asked(dataset)
    assert load(tmp_path / "users.csv", client=0, clients=3).m == 3


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [  # beside those of tables/test_wrong_tables
        ("1,2\n", {"target": "a"}, r'data\.target = "a" is not a column of .*, which has no header'),
        (CSV, {"target": 3}, r"data\.target = 3 is not a column of .*, which has 3"),
        ("", {}, r"x\.csv is empty$"),
        ("a,b,y\n1,2\n3,4\n5,6\n", {}, r"x\.csv, line 2: 2 columns, but the first line has 3$"),
        ("a,y\n1,0\n1_0,1\n", {}, r"line 3: '1_0' in the column 'a' is not a number, as the first entry is"),
        ("a,y\n-9,1\n2,0\n", {"missing_texts": ["-9"]}, r"1 missing cell: 'a' \(1\), the first one .* in line 2;"),
        ("a,s,y\n-9,u,1\n2,v,0\n", {"missing_texts": ["-9"]}, r"1 missing cell: .* in the column 'a' in line 2;"),
        (IRIS + "1,2,\n", {}, "the first one in column 2 in line 4"),
        (USERS, {"client": "klient"}, r'data\.client = "klient" is not a column of .*, which has columns user, a, y'),
        (USERS, {"client": 2}, r"data\.client = 2 is the column of the labels of .*: data\.target must be another one"),
        (USERS, {"client": "user", "partition": "iid", "clients": None}, '"iid" contradicts .* a column of 3 clients'),
    ],
)
def test_a_bad_csv_is_told_where(tmp_path, text, options, sentence):
    (tmp_path / "x.csv").write_text(text)
    refused(tmp_path / "x.csv", sentence, **{"clients": 1, **options})
