"""Labels as a problem needs them: what is mapped, what is said, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.cache import Cache
from mpifed.data.labels import fitted, numbers_of_texts
from mpifed.data.pool import Pool
from mpifed.problems.base import Problem
from tests.helpers.data_files import load, write
from tests.helpers.made_data import build


def pool(labels, names=(), test=None, dtype="float64"):
    y = np.array(labels)
    tests = None if test is None else (np.ones((len(test), 2)), np.array(test), None, np.array([len(test)]))
    data = Pool(np.arange(2.0 * len(y)).reshape(-1, 2), y, None, np.array([len(y)]), dtype, tests)
    data.names = names
    return data


def seen(data):
    return data.rows(0, data.m)[1].tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("kind", "labels", "wanted", "note"),
    [
        ("classes", [1, 3, 2, 1], [0, 2, 1, 0], "labels 1 … 3 are numbered 0 … 2"),
        ("classes", [2.0, 1.0], [1, 0], "labels 1 … 2 are numbered 0 … 1"),
        ("classes", [1, -1, 1], [1, 0, 1], "labels -1 and 1 become 0 and 1"),
        ("binary", [2, 1, 2], [1, 0, 1], "labels 1 and 2 become 0 and 1"),
        ("binary", [0, 2, 0], [0, 1, 0], "labels 0 and 2 become 0 and 1"),
        ("binary", [4, 2, 4], [1, 0, 1], "labels 2 and 4 become 0 and 1"),
    ],
)
def test_labels_that_do_not_count_from_zero_are_mapped_and_it_is_said(kind, labels, wanted, note, dtype):
    data = fitted(pool(labels, dtype=dtype), kind)
    assert data.notes == (note,)
    assert seen(data) == wanted
    assert data.rows(0, 1)[1].dtype == dtype
    assert data.classes == len(set(wanted))
    assert np.array_equal(data.values(), sorted(set(wanted)))
    assert np.array_equal(data.rows(0, 1)[0], pool(labels).rows(0, 1)[0])


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("classes", [0, 1, 2, 1]),
        ("classes", [True, False]),
        ("binary", [0, 1]),
        ("binary", [-1, 1]),
        ("numbers", [1, 2, 3]),
        ("numbers", [0, 3]),
        ("numbers", [0.5]),
        ("numbers", [1, 1]),
    ],
)
def test_labels_that_fit_stay_as_they_are_and_nothing_is_said(kind, labels):
    data = pool(labels)
    assert fitted(data, kind) is data


@pytest.mark.parametrize(
    ("kind", "labels", "note"),
    [
        ("classes", [0, 1, 3], "class 2 is empty: no sample has such a label"),
        ("classes", [0, 5], "4 of 6 classes are empty (1, 2, 3, 4): no sample has such a label"),
        ("classes", [0, 50], "49 of 51 classes are empty (1, 2, 3, 4, …, 49): no sample has such a label"),
        ("classes", [2, 3, 4], "2 of 5 classes are empty (0, 1): no sample has such a label"),
        ("classes", [1, 1], "all labels are 1: with one class there is nothing to tell apart"),
        ("binary", [0, 0], "all labels are 0: with one class there is nothing to tell apart"),
        ("binary", [-1], "all labels are -1: with one class there is nothing to tell apart"),
    ],
)
def test_empty_classes_and_data_of_one_class_are_said_and_not_changed(kind, labels, note):
    data = fitted(pool(labels), kind)
    assert data.notes == (note,)
    assert seen(data) == labels
    assert data.classes == pool(labels).classes


@pytest.mark.parametrize(
    ("kind", "labels", "sentence"),
    [
        (
            "classes",
            [0, 1, 0.5],
            r"labels must be whole numbers 0, 1 … C−1, but there is 0\.5; problem=least-squares takes any numbers$",
        ),
        ("classes", [-3, 0, 1], r"labels must be whole numbers 0, 1 … C−1, but there is -3; number them from 0$"),
        ("classes", [-1, 0, 1], r"labels must be whole numbers 0, 1 … C−1, but there is -1; number them from 0$"),
        ("classes", [0, 1e8], r"labels must be whole numbers 0, 1 … C−1, but there is 100000000; number them from 0$"),
        ("classes", [0, 0, 0], r"all labels are 0, and it needs at least 2 classes$"),
        (
            "binary",
            range(10),
            r"it needs two classes, but there are 10: 0, 1, 2, 3, …, 9; problem=softmax takes them$",
        ),
        ("binary", [-1, 0, 1], r"it needs two classes, but there are 3: -1, 0, 1; problem=softmax "),
    ],
)
def test_labels_that_cannot_be_meant_are_refused(kind, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(pool(list(labels)), kind)


def test_text_labels_are_not_numbers():
    with pytest.raises(ValueError, match=r"labels are text \(cat, dog\), and it needs numbers; problem=logistic takes"):
        fitted(pool([0, 1], ("cat", "dog")), "numbers")
    long = tuple(letter * 30 for letter in "abc")
    with pytest.raises(ValueError, match=r"text \(a{19}…, b{19}…, c{19}…\), .*; problem=softmax takes them$"):
        fitted(pool([0, 1, 2], long), "numbers")
    with pytest.raises(
        ValueError, match=r"it needs two classes, but there are 3: a{19}…, b{19}…, c{19}…; problem=soft"
    ):
        fitted(pool([0, 1, 2], long), "binary")
    data = pool([0, 1], ("cat", "dog"))
    assert fitted(data, "binary") is data


def test_labels_of_test_samples_count():
    data = fitted(pool([1, 2], test=[3]), "classes")
    assert data.notes == ("labels 1 … 3 are numbered 0 … 2",)
    assert data.rows_test(0, 1)[1].tolist() == [2]
    assert fitted(pool([0, 2], test=[1]), "classes").notes == ()


@pytest.mark.parametrize("labels", [[0, 3, 3, 1], [-1, 1, 1], [0.5, 0.25, 0.5], [0, 1 << 21]])
def test_values_are_the_distinct_labels(labels):
    assert pool(labels).values().tolist() == sorted(set(labels))


@pytest.mark.parametrize("name", ["synthetic", "gaussian", "images", "linreg-noniid", "quadratic", "lower-bound"])
def test_generated_data_are_left_alone(name):
    data = build({"name": name, "clients": 4})
    problem = Problem.build(Data.member(name, "data").objective, "problem")
    assert problem.fitted(data) is data


def test_problems_say_which_labels_they_take():
    kinds = {name: Problem.build(name, "problem").takes() for name in Problem.choices if name not in ("cnn", "torch")}
    assert kinds == {
        "least-squares": "numbers",
        "logistic": "binary",
        "nonconvex-logistic": "binary",
        "softmax": "classes",
        "svm": "classes",
        "mlp": "classes",
        "quadratic": "numbers",
    }
    with pytest.raises(UserError, match=r"^problem 'logistic' cannot use these data: it needs two classes"):
        Problem.build("logistic", "problem").fitted(pool([0, 1, 2]))


def test_a_classifier_from_outside_maps_labels_itself():
    class Own(Problem, tag="own"):
        def value_grad(self, block, X):
            raise NotImplementedError

        def predict(self, block, X):
            raise NotImplementedError

    data = pool([1, 2], ("cat", "dog"))
    assert Own().fitted(data) is data


def test_cached_data_keep_names_notes_and_values(tmp_path):
    path = write(tmp_path / "x.npz", {"X": np.ones((3, 2)), "y": np.array(["b", "a", "c"])})
    source = Data.build({"name": "file", "path": str(path), "clients": 2}, "data")
    cached, plain = Cache().load(source, 0, "float64"), load(path, clients=2)
    assert (cached.names, cached.notes) == (plain.names, plain.notes) == (("a", "b", "c"), plain.notes)
    assert np.array_equal(cached.values(), plain.values())


def test_texts_are_sorted_by_their_letters_not_by_their_bytes():
    (codes,), names = numbers_of_texts([np.array(["é".encode(), b"e", b" z ", b"Z"])], "x")
    assert names == ("Z", "e", "z", "é")
    assert codes.tolist() == [3, 1, 2, 0]
