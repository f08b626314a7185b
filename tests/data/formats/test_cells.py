"""How cells of CSV files are written: each sentence that advises an option is followed, and the numbers looked at."""

import bz2
import re

import pytest

from mpifed.core.errors import UserError
from tests.helpers.data_files import load

ADVICE = re.compile(r'(data\.\w+ = "[^"]*"(?: and data\.\w+ = "[^"]*")?) reads? it as ([-\d.]+)')
ONE = {"clients": 1, "partition": "contiguous"}


def sentence(path, **options):
    with pytest.raises(UserError) as caught:
        load(path, **ONE, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def options(words):
    return dict(re.findall(r'data\.(\w+) = "([^"]*)"', words))


@pytest.mark.parametrize(
    ("cells", "read"),
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
def test_what_is_advised_for_a_number_reads_the_number_that_is_told(tmp_path, cells, read):
    path = tmp_path / "x.csv"
    path.write_text("a;y\n" + "".join(f"{cell};{k}\n" for k, cell in enumerate(cells)))
    said = sentence(path)
    found = ADVICE.findall(said)
    wrong = next(k for k, cell in enumerate(cells) if not cell.isdigit())
    for words, number in found:
        assert load(path, **ONE, **options(words)).rows(0, 1)[0][wrong].tolist() == [float(number)]
    assert [[" ".join(options(words)), float(number)] for words, number in found] == read
    kept = 'for a feature, data.categories = ["a"] keeps it as a text'
    assert said.endswith(kept) == cells[wrong].isprintable()
    if kept in said:
        assert load(path, **ONE, categories=["a"]).features[0].startswith("a=")


def test_marks_of_groups_stand_before_three_digits_each(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,y\n"1,011",0\n"12,345,678.25",1\n999,0\n-1e3,1\n')
    assert load(path, **ONE, thousands=",").rows(0, 1)[0].ravel().tolist() == [1011, 12345678.25, 999, -1000]
    for cell in ("1,01", "1,0111", ",011", "1011,222", "1,011,22"):
        path.write_text(f'a,y\n7,0\n"{cell}",1\n')
        assert f"'{cell}' in the column 'a' is not a number" in sentence(path, thousands=",")
    assert sentence(path, thousands=".") == 'data.thousands = "." is the decimal mark, too: data.decimal says another'


def test_texts_of_missing_cells_that_are_numbers_stand_for_the_number(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;s;y\n-9,0;-9,00;0\n2;u;1\n4;v;0\n")
    data = load(path, **ONE, decimal=",", missing_texts=["-9"], missing="drop")
    assert (data.rows(0, 1)[0].tolist(), data.features) == ([[2, 0], [4, 1]], ("a", "s=v"))
    path.write_text("a,y\n-9,0\n2,1\n-99,0\n")
    assert load(path, **ONE, missing_texts=["-9.00"], missing="drop").rows(0, 1)[0].ravel().tolist() == [2, -99]
    path.write_text("a,y\ninf,0\n2,1\n4,0\n")
    assert load(path, **ONE, missing_texts=["inf"], missing="drop").rows(0, 1)[0].ravel().tolist() == [2, 4]


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
    said = sentence(path)
    assert "data.encoding" in said
    found = re.findall(r'"([-\w]+)"', said)
    assert found == advised
    assert encoding in found
    data = load(path, **ONE, encoding=encoding)
    plain = tmp_path / "plain.csv"
    plain.write_text(text, encoding="utf-8")
    same = load(plain, **ONE, encoding="UTF-8")
    assert data.features == same.features
    assert data.rows(0, 1)[0].tolist() == same.rows(0, 1)[0].tolist()


def test_a_wrong_encoding_is_told(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,0\n")
    assert f'{path} cannot be read with data.encoding = "utf-16": ' in sentence(path, encoding="utf-16")
    assert sentence(path, encoding="latin1x").startswith('data.encoding = "latin1x" is no encoding of texts that Py')
    assert sentence(path, encoding="base64").startswith('data.encoding = "base64" is no encoding of texts')
    path.write_bytes(b"\xff\xfea\0,\0")
    assert 'data.encoding = "utf-16"' in sentence(path, encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "# made on Monday, by me, v2\na,b,y\n1,2,0\n3,4,1\n",
        "a,b,y\n1,2,0\n3,4,1\n# end\n",
        "% a table\n\na,b,y\n% first\n1,2,0\n3,4,1\n",
    ],
)
def test_comments_are_left_out_where_the_option_says_so_that_is_advised(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    said = sentence(path)
    assert re.search(r"where line \d+ is a comment, data\.comment = \"[#%]\" leaves such lines out$", said)
    data = load(path, **ONE, **options(said))
    assert (data.features, data.rows(0, 1)[0].tolist()) == (("a", "b"), [[1, 2], [3, 4]])
    assert sentence(path, comment="").startswith('data.comment = "" is wrong: it must be what lines of comments')


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
    (tmp_path / "x.csv").write_text(text, newline="")
    data = load(tmp_path / "x.csv", clients=1, features=["b"], target="y", partition="contiguous")
    assert (data.rows(0, 1)[0].tolist(), data.names) == ([[2], [4]], ("no", "yes") if words else ())
    (tmp_path / "x.csv").write_text(text.replace("3", "3 x|;", 1), newline="")
    assert re.search(r"line \d: \d columns, but the first line has 3", sentence(tmp_path / "x.csv"))
