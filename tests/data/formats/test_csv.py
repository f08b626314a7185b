"""CSV files: each sentence that advises an option is followed, and the numbers that come out looked at."""

import bz2
import gzip
import re

import numpy as np
import pytest

from mpifed.core.errors import UserError
from tests.helpers.data_files import load, refused, same_rows_however_asked, table_of

CSV = "a,b,class\n1,2.5,0\n3,-1e2,1\n5,6,1\n"
IRIS = "5.1,3.5,setosa\n4.9,3.0,virginica\n4.7,3.2,setosa\n"
USERS = "user,a,y\nzoe,1,0\nadam,2,1\nzoe,3,1\nadam,4,0\nmia,5,1\n"
ADVICE = re.compile(r'(data\.\w+ = "[^"]*"(?: and data\.\w+ = "[^"]*")?) reads? it as ([-\d.]+)')
ONE = {"clients": 1, "partition": "contiguous"}


def read(folder, text, **options):
    """The one client of a table."""
    (folder / "x.csv").write_text(text, newline="")
    return load(folder / "x.csv", **ONE, **options)


def said(folder, text, **options):
    """The sentence with which a table is refused."""
    with pytest.raises(UserError) as caught:
        read(folder, text, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rows(data):
    return data.rows(0, 1)[0].tolist()


def options(words):
    return dict(re.findall(r'data\.(\w+) = "([^"]*)"', words))


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
    data = read(tmp_path, text, **options)
    assert np.array_equal(table_of(data), [[1, 3, -100], [0, 1, 2.5], [1, 5, 6]])
    assert data.classes == 2
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
    data = read(tmp_path, text, **options)
    assert np.array_equal(table_of(data), [[1, 4.9, 3], [0, 4.7, 3.2], [0, 5.1, 3.5]])
    called = "the column 'kind'" if "kind" in text else f"column {options.get('target', 2)}"
    note = f"labels of {called} are text, numbered in sorted order: 'setosa' is 0, 'virginica' is 1"
    assert (data.names, data.notes[1:]) == (("setosa", "virginica"), (note,))


@pytest.mark.parametrize("names", [("adam", "mia", "zoe"), ("7", "8", "9.5"), ("1000001", "1000002", "1000003")])
def test_a_column_says_which_client_a_row_belongs_to(tmp_path, names):
    text = USERS.replace("adam", names[0]).replace("mia", names[1]).replace("zoe", names[2])
    (tmp_path / "users.csv").write_text(text)
    data = load(tmp_path / "users.csv", client="user")
    assert (data.owners, data.n, data.names, list(data.sizes)) == (names, 1, (), [2, 1, 2])
    X, y = data.rows(0, 3)
    assert (X.ravel().tolist(), y.tolist()[2:]) == ([2, 4, 5, 1, 3], [1, 0, 1])
    same_rows_however_asked(data)
    assert load(tmp_path / "users.csv", client=0, clients=3).m == 3


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [  # beside those of tables/test_wrong_and_strange_tables
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
        ("a,y\n7,0\n", {"thousands": "."}, r'data\.thousands = "\." is the decimal mark, too: data\.decimal says ano'),
        ("a,y\n7,0\n", {"comment": ""}, r'data\.comment = "" is wrong: it must be what lines of comments begin with'),
        ("a,y\n7,0\n", {"encoding": "latin1x"}, r'data\.encoding = "latin1x" is no encoding of texts that Python know'),
        ("a,y\n7,0\n", {"encoding": "base64"}, r'^data\.encoding = "base64" is no encoding of texts'),
        ("a,y\n7,0\n", {"encoding": "utf-16"}, r'x\.csv cannot be read with data\.encoding = "utf-16": '),
    ],
)
def test_a_bad_csv_is_told_where(tmp_path, text, options, sentence):
    (tmp_path / "x.csv").write_text(text)
    refused(tmp_path / "x.csv", sentence, **{"clients": 1, **options})


@pytest.mark.parametrize(
    ("cells", "advised"),
    [
        (["1,011", "2,500"], [["thousands", 1011], ["decimal", 1.011]]),
        (["12", "-1,011"], [["thousands", -1011], ["decimal", -1.011]]),  # after a number
        (["1,5", "2"], [["decimal", 1.5]]),
        (["1,234,567", "8"], [["thousands", 1234567]]),
        (["1,234.5", "8"], [["thousands", 1234.5]]),
        (["1.234,5", "8"], [["decimal thousands", 1234.5]]),
        (["1.234.567", "8"], [["decimal thousands", 1234567]]),
        (["1 234", "8"], [["thousands", 1234]]),
        (["1\u202f234", "8"], [["thousands", 1234]]),
        (["1'234", "8"], [["thousands", 1234]]),
    ],
)
def test_what_is_advised_for_a_number_reads_the_number_that_is_told(tmp_path, cells, advised):
    text = "a;y\n" + "".join(f"{cell};{k}\n" for k, cell in enumerate(cells))
    sentence = said(tmp_path, text)
    found = ADVICE.findall(sentence)
    wrong = next(k for k, cell in enumerate(cells) if not cell.isdigit())
    for words, number in found:
        assert rows(read(tmp_path, text, **options(words)))[wrong] == [float(number)]
    assert [[" ".join(options(words)), float(number)] for words, number in found] == advised
    kept = 'for a feature, data.categories = ["a"] keeps it as a text'
    assert sentence.endswith(kept) == cells[wrong].isprintable()
    if kept in sentence:
        assert read(tmp_path, text, categories=["a"]).features[0].startswith("a=")


def test_marks_of_groups_stand_before_three_digits_each(tmp_path):
    text = 'a,y\n"1,011",0\n"12,345,678.25",1\n999,0\n-1e3,1\n'
    assert rows(read(tmp_path, text, thousands=",")) == [[1011], [12345678.25], [999], [-1000]]
    for cell in ("1,01", "1,0111", ",011", "1011,222", "1,011,22"):
        sentence = said(tmp_path, f'a,y\n7,0\n"{cell}",1\n', thousands=",")
        assert f"'{cell}' in the column 'a' is not a number" in sentence


def test_texts_of_missing_cells_that_are_numbers_stand_for_the_number(tmp_path):
    text = "a;s;y\n-9,0;-9,00;0\n2;u;1\n4;v;0\n"
    data = read(tmp_path, text, decimal=",", missing_texts=["-9"], missing="drop")
    assert (rows(data), data.features) == ([[2, 0], [4, 1]], ("a", "s=v"))
    for text, missing, left in (
        ("a,y\n-9,0\n2,1\n-99,0\n", "-9.00", [[2], [-99]]),
        ("a,y\ninf,0\n2,1\n4,0\n", "inf", [[2], [4]]),
    ):
        assert rows(read(tmp_path, text, missing_texts=[missing], missing="drop")) == left


@pytest.mark.parametrize(
    ("encoding", "text", "advised"),
    [
        ("latin-1", "stadt,y\nKöln,0\nBonn,1\n", ["latin-1", "cp1252"]),
        ("cp1252", "größe,y\n5,0\n7,1\n", ["latin-1", "cp1252"]),
        ("utf-16", "größe\ty\n5\t0\n7\t1\n", ["utf-16"]),  # with the mark of the order of bytes
        ("utf-16-le", "größe,y\n5,0\n7,1\n", ["utf-16-le"]),
        ("utf-16-be", "a,y\n5,0\n7,1\n", ["utf-16-be"]),
    ],
)
def test_an_encoding_that_is_advised_reads_the_file(tmp_path, encoding, text, advised):
    path = tmp_path / "x.csv.bz2"
    path.write_bytes(bz2.compress(text.encode(encoding)))
    with pytest.raises(UserError, match=r"data\.encoding") as caught:
        load(path, **ONE)
    assert re.findall(r'"([-\w]+)"', str(caught.value)) == advised
    assert encoding in advised
    data, same = load(path, **ONE, encoding=encoding), read(tmp_path, text, encoding="UTF-8")
    assert (data.features, rows(data)) == (same.features, rows(same))
    path.write_bytes(bz2.compress(b"\xff\xfea\0,\0"))
    with pytest.raises(UserError, match=r'data\.encoding = "utf-16"'):
        load(path, **ONE, encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "# made on Monday, by me, v2\na,b,y\n1,2,0\n3,4,1\n",
        "a,b,y\n1,2,0\n3,4,1\n# end\n",
        "% a table\n\na,b,y\n% first\n1,2,0\n3,4,1\n",
    ],
)
def test_comments_are_left_out_where_the_option_says_so_that_is_advised(tmp_path, text):
    sentence = said(tmp_path, text)
    assert re.search(r"where line \d+ is a comment, data\.comment = \"[#%]\" leaves such lines out$", sentence)
    data = read(tmp_path, text, **options(sentence))
    assert (data.features, rows(data)) == (("a", "b"), [[1, 2], [3, 4]])


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(
    "lines",
    [
        ["sep=;", "a;b;y", "1;2;0", "3;4;1"],
        ['"sep=|"', "a|b|y", "1|2|0", "3|4|1"],
        ["a|b|y", "1|2|0", "3|4|1"],
        ["a b  y", " 1  2 0 ", "3 4   1"],
        ['"a" "b" "y"', "1 2 0", "3 4 1"],
    ],
)
def test_what_stands_between_cells_is_read_from_the_first_lines(tmp_path, lines, words):
    text = "\r\n".join(lines)
    if words:
        text = text.replace("0", "no").replace("1", "yes")
    data = read(tmp_path, text, features=["b"], target="y")
    assert (rows(data), data.names) == ([[2], [4]], ("no", "yes") if words else ())
    assert re.search(r"line \d: \d columns, but the first line has 3", said(tmp_path, text.replace("3", "3 x|;", 1)))


def test_quoted_commas_belong_to_a_text_and_decimal_commas_to_a_number(tmp_path):
    data = read(tmp_path, 'town;price;y\n"Bonn, am Rhein";1,5;0\n"Köln";-2,25;1\n', decimal=",")
    assert (data.features, rows(data)) == (("town=Köln", "price"), [[0, 1.5], [1, -2.25]])
    assert rows(read(tmp_path, "1,5;2,5\n3,5;4,5\n", decimal=",")) == [[1.5], [3.5]]  # without a header
