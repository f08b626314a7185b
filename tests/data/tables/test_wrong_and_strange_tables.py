"""Wrong tables: each gets one sentence that says where, or the right answer with a note; never a traceback."""

import json
import re

import pytest

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from tests.helpers.data_files import load, refused

GOOD = "age,sex,site,y\n30,m,a,0\n40,f,a,1\n50,f,b,0\n60,m,b,1\n"
TIMES = "age,t,e\n30,5,1\n40,3,0\n50,9,1\n"
FOLDS = "age,sex,fold,site,y\n30,m,train,a,0\n40,m,train,a,1\n50,m,train,b,0\n60,f,test,b,1\n"
SURVIVAL = {"time": "t", "event": "e"}
DECIMAL = r"is not a number as the file is read: data\.decimal = \",\" reads it as 1\.5; for a feature, data\."
WRONG = [
    (GOOD.replace("f", "3"), {}, r"line 3: '3' in the column 'sex' is a number, .* data\.categories = \[\"sex\"\] tak"),
    (GOOD.replace("sex", "age"), {}, r"has several columns 'age': each needs a name of its own$"),
    (GOOD.replace("50,f", "50,f,7"), {}, r"line 4: 5 columns, but the first line has 4$"),
    (GOOD.replace("50,f", '50,"f'), {}, r"line 5: .* columns, but the first line has 4$|quotation mark"),
    ("a;b;y\n1,5;2;0\n2,5;3;1\n", {}, rf"line 2: '1,5' in the column 'a' {DECIMAL}"),
    ("1,5;2,5;0\n2,5;3,5;1\n", {}, r"'5;2' in column 1 has semicolons between numbers with a decimal comma: data\.dec"),
    ("a;y\n2,5;0\n1.234;1\n", {"decimal": ","}, r"'1\.234' .* reads it as 1\.234; data\.thousands = .* as 1234; for"),
    ("a;y\nno;0\n2,5;1\n", {"decimal": ","}, r"line 3: '2,5' in the column 'a' is a number, but the first entry is t"),
    ("day,y\n2020-01-03,0\n2020-01-04,1\n", {}, r"holds dates such as '2020-01-03': replace them by numbers, such as"),
    ("who,y\n" + "".join(f"p{k},{k}\n" for k in range(30)), {}, r"30 different texts in 30 rows.*ignore = \[\"who\"\]"),
    ("y\n0\n1\n", {}, r"X of .* has the shape \(2, 0\)"),
    ("age,y\n", {}, r"wrong\.csv has no rows: each is a sample$"),
    (GOOD, {"target": "ages"}, r'data\.target = "ages" is not a column .* site, y; did you mean \'age\'\?$'),
    (GOOD, {"ignore": ["sax"]}, r'data\.ignore = "sax" is not a column of .*; did you mean \'sex\'\?$'),
    (GOOD, {"ignore": ["y"]}, r"data\.ignore has the column 'y' of .*, which is that of the labels: data\.target must"),
    (GOOD, {"features": ["age", "y"]}, r"data\.features has the column 'y' of .*, which is that of the labels: take i"),
    (GOOD, {"features": ["age", "age"]}, r'data\.features names a column twice: "age", "age"$'),
    (GOOD, {"features": ["age"], "ignore": ["sex"]}, r"data\.ignore and data\.features contradict each other"),
    (GOOD, {"categories": ["y"]}, r"data\.categories has the column 'y' of .*, which is no feature"),
    (GOOD, {"target": "sex", "above": 0}, r"data\.above = 0\.0 needs labels that are numbers, but the column 'sex' ho"),
    (TIMES.replace("3,0", "-3,0"), SURVIVAL, r"the column 't' of .* has -3 in line 3: times are numbers that are not"),
    (TIMES.replace("9,1", "9,2"), SURVIVAL, r"the column 'e' of .* has 2 in line 4: an event is 1 where it came and 0"),
    (TIMES.replace(",1\n", ",dead\n").replace(",0", ",alive"), SURVIVAL, r"has 'dead' in line 2: an event is 1 where"),
    (TIMES.replace(",1\n", ",0\n"), SURVIVAL, r"'e' of .* is 0 in all 3 rows: without an event there is nothing"),
    (TIMES.replace("5,", "0,").replace("3,", "0,").replace("9,", "0,"), SURVIVAL, r"'t' .* 0 in all rows: there is"),
    (TIMES, {"time": "t"}, r"data\.time needs data\.event: the label of a person is a time, and whether"),
    (TIMES, {**SURVIVAL, "target": "age"}, r"data\.target does not go with data\.time and data\.event, which are the"),
    (TIMES, {"time": "t", "event": "t"}, r'data\.event = "t" is the column of the times of .*, too: they must be two$'),
    (TIMES.replace(",9,", ",,"), SURVIVAL, r"has 1 missing cell: 't' \(1\)"),
    (TIMES.replace(",9,", ",,"), {**SURVIVAL, "missing": "mean"}, r"cells in the column 't', .* in line 4: it"),
    ("a,b,y\n1,,0\n2,NA,1\n", {"missing": "mean"}, r"the column 'b' of .* has no known cell: data\.ignore = \[\"b\"\]"),
    (FOLDS, {"test": "fald"}, r'data\.test = "fald" is not a column of .*; did you mean \'fold\'\?$'),
    (
        FOLDS,
        {"test": "sex"},
        r"data\.test: the column 'sex' of .* has 'f': it must say train, validation or test, or 0 ",
    ),
    (FOLDS.replace("test", "train"), {"test": "fold"}, r"says 'train' in all rows: some must be for training, some fo"),
    (FOLDS.replace("test,b", "test,c"), {"test": "fold", "client": "site"}, r"\(c\) have no rows for training"),
    (GOOD, {"client": "site", "clients": 3}, r"data\.clients = 3 contradicts .*, which has a column of 2 clients: lea"),
    (GOOD.replace("m", "").replace("f", ""), {"missing": "drop"}, r"every row of .* has a missing cell: 'sex' \(4\)"),
]


@pytest.mark.parametrize(("text", "options", "sentence"), WRONG)
def test_a_wrong_table_is_told_in_one_sentence(tmp_path, text, options, sentence):
    (tmp_path / "wrong.csv").write_text(text, encoding="utf-8")
    refused(tmp_path / "wrong.csv", sentence, **({} if "client" in options else {"clients": 1}) | options)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ({"label": "y"}, r"^data\.label cannot be set: the column of the labels is data\.target"),
        ({"weights": "w"}, r"^data\.weights cannot be set: the column of the weights of samples is data\.weight, "),
        ({"target": ["y", "z"]}, r"^data\.target = \[\"y\", \"z\"\] is wrong: it must be a whole number or a text"),
        ({"levels": "none"}, r'^data\.levels = "none" is wrong: it must be "drop-first" or "all"$'),
        ({"standardise": "federal"}, r'^data\.standardise = "federal" is wrong: it must be "pooled" or "own" or "fede'),
        ({"tests": 0.2}, r"^unknown key 'data\.tests'; did you mean 'test'\?$"),
    ],
)
def test_an_option_that_tables_do_not_have_is_refused_with_what_they_have(key, sentence):
    with pytest.raises(UserError, match=sentence):
        Data.build({"name": "file", "path": "x.csv", **key}, "data")


SHARES = "price,share,site,name,y\n1,5%,u,n1,0\n2,7%,v,n2,1\n3,9%,v,n3,1\n"
SITES = {"client": "site", "ignore": ["name"]}
EMPTY = "s,y\n,0\nu,1\nv,0\n,1\n"
NAMES = '"sex" "age" "y"\n"r1" "f" 30 0\n"r2" "m" 40 1\n'  # R's write.table
ZIP = "zip,a,y\n01234,1,0\n1234,2,1\n1234.0,4,1\n77,8,0\n"
MANY = f"{','.join(f'g{k}' for k in range(900))},y\n{'1,' * 900}0\n{'2,' * 900}1\n"
GAPS = "a,site,y\n1,u,0\n,v,1\n2,u,1\n,v,0\n,w,1\n4,,1\n"
RIGHT = [  # a table -> names of its features and its rows, where they are not plain, and what is said of it
    (GOOD.replace("30", "40").replace("50", "40").replace("60", "40"), {}, "constant in the training samples: 'age'"),
    (GOOD.replace("f", "m"), {}, "one level in all rows: 'sex' ('m')"),
    (FOLDS.replace("60,f", "60,z"), {"test": "fold"}, "no training sample has sex=z, but others do"),
    (FOLDS.replace("m", "x"), {"test": "fold"}, "no training sample has sex=f, but others do"),
    (TIMES.replace(",3,", ",0,"), SURVIVAL, "1 times are 0: they are taken as 2.5, before all others"),
    (TIMES, SURVIVAL, "labels are times, negative where no event came: 2 events in 3 rows"),
    (GOOD.replace("40", "NA"), {"missing": "mean"}, "1 missing cell in 1 of 4 rows hold the mean of all training samp"),
    (GOOD, {"above": 0}, "labels above 0 are 1, the others 0"),
    ("id,y\n" + "".join(f"{k},{k % 2}\n" for k in range(9)), {}, "(counted from 0) numbers the rows"),
    (SHARES, SITES, "features 'price'; categories 'share' (reference 5%, 7%, 9%); labels 'y'; clients 'site'; left ou"),
    (
        SHARES,
        {**SITES, "levels": "all"},
        "categories 'share' (5%, 7%, 9%); labels 'y'; clients 'site'; left out 'name'",
    ),
    (MANY, {}, "columns: features 'g0', 'g1', 'g2', 'g3', …, 'g899' (900 in all); labels 'y'"),
    (EMPTY, {"missing_texts": ["NA"]}, "(reference '', u, v)", "s=u s=v", [[0, 0], [1, 0], [0, 1], [0, 0]]),
    *(
        (
            f"{top},a,y\n{first},4,0\n{second},5,1\n1,6,1\n",
            {},
            f"left out '{top}' (names of rows)",
            "a",
            [[4], [5], [6]],
        )
        for top, first, second in (("", 3, 5), ("", "r1", "r2"), ("Unnamed: 0", 3, 5), ("Unnamed: 0", "r1", "r2"))
    ),
    ('"",s,y\nr1,f,no\nr2,m,yes\n', {}, "left out '' (names of rows)", "s=m", [[0], [1]]),  # words in all cells
    (",a,y\n3,1,0\n5,2,1\n1,9,1\n", {"features": [0]}, "features ''; labels 'y'", "", [[3], [5], [1]]),
    *((NAMES.replace(" ", mark), {}, "(names of rows)", "sex=m age", [[0, 30], [1, 40]]) for mark in " ,\t"),
    (
        ZIP,
        {"categories": ["zip"]},
        "one level, for they are one number: '01234' and '1234' and '1234.0' of",
        "zip=1234 a",
    ),
    (GAPS, {"client": "site", "missing": "drop"}, "2 clients of the column 'site' have no row left, and no part in"),
]


@pytest.mark.parametrize(("text", "options", "note", "features", "rows"), [(*one, None, None)[:5] for one in RIGHT])
def test_a_strange_table_is_read_with_a_note(tmp_path, text, options, note, features, rows):
    (tmp_path / "strange.csv").write_text(text)
    divided = {} if "client" in options else {"clients": 1, "partition": "contiguous"}
    data = load(tmp_path / "strange.csv", **divided, **options)
    X = data.rows(0, data.m)[0]
    assert any(note in one for one in data.notes), data.notes
    assert features in (None, " ".join(data.features))
    assert rows in (None, X.tolist())


@pytest.mark.parametrize("cells", [[f"p{k}" for k in range(30)], [f"2020-01-{k + 1:02}" for k in range(30)]])
@pytest.mark.parametrize("header", ["who,a,y\n", ""])
def test_what_is_advised_for_a_column_of_texts_reads_the_table(tmp_path, cells, header):
    path = tmp_path / "x.csv"
    path.write_text(header + "".join(f"{cell},{k % 7},{k % 2}\n" for k, cell in enumerate(cells)))
    with pytest.raises(UserError) as caught:
        load(path, clients=1)
    advised = dict(re.findall(r"data\.(ignore|categories) = (\[[^]]*\])", str(caught.value)))
    widths = {key: load(path, clients=1, **{key: json.loads(value)}).n for key, value in advised.items()}
    assert widths == {"ignore": 1, "categories": 1 + 29}
