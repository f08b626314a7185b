"""Labels as a problem needs them: what is mapped, what is said, and what is refused."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.data.labels import fit_labels, number_texts
from mpifed.data.pool import Pool
from mpifed.problems.problem import Problem
from tests.helpers.image_files import build


def pool(labels, names=(), test=None, dtype="float64"):
    y = np.array(list(labels))
    tests = None if test is None else (np.ones((len(test), 2)), np.array(test), None, np.array([len(test)]))
    data = Pool(np.arange(2.0 * len(y)).reshape(-1, 2), y, None, np.array([len(y)]), dtype, tests)
    data.names = names
    return data


ALONE = "with one class there is nothing to tell apart"
EMPTY = ": no sample has such a label"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("kind", "labels", "wanted", "note"),  # wanted: None where labels stay as they are
    [
        ("classes", [1, 3, 2, 1], [0, 2, 1, 0], "labels 1 … 3 are numbered 0 … 2"),
        ("classes", [1, -1, 1], [1, 0, 1], "labels -1 and 1 become 0 and 1"),
        ("binary", [2, 1, 2], [1, 0, 1], "labels 1 and 2 become 0 and 1"),
        ("binary", [0, 2, 0], [0, 1, 0], "labels 0 and 2 become 0 and 1"),
        ("classes", [0, 1, 3], None, "class 2 is empty: no sample has such a label"),
        ("classes", [0, 5], None, "4 of 6 classes are empty (1, 2, 3, 4): no sample has such a label"),
        ("classes", [0, 1 << 24], None, f"16777215 of 16777217 classes are empty (1, 2, 3, 4, …, 16777215){EMPTY}"),
        ("classes", [2, 3, 4], None, "2 of 5 classes are empty (0, 1): no sample has such a label"),
        ("classes", [1, 1], None, f"all labels are 1: {ALONE}"),
        ("binary", [0, 0], None, f"all labels are 0: {ALONE}"),
        ("binary", [-1], None, f"all labels are -1: {ALONE}"),
        *(("classes", labels, None, "") for labels in ([0, 1, 2, 1], [True, False])),
        *(("binary", labels, None, "") for labels in ([0, 1], [-1, 1])),
        *(("numbers", labels, None, "") for labels in ([1, 2, 3], [0, 3, 3, 1], [0.5, 0.25], [1, 1], [0, 1 << 21])),
    ],
)
def test_what_becomes_of_labels_is_said_and_without_a_note_the_data_stay_as_they_are(kind, labels, wanted, note, dtype):
    plain = pool(labels, dtype=dtype)
    data = fit_labels(plain, kind)
    X, y = data.rows(0, 1)
    assert (data is plain) == (note == "")
    assert data.notes == ((note,) if note else ())
    assert data.classes == (plain.classes if wanted is None else len(set(wanted)))
    assert (y.tolist(), y.dtype) == (labels if wanted is None else wanted, dtype)
    assert data.values().tolist() == sorted(set(y))
    assert np.array_equal(X, plain.rows(0, 1)[0])


WHOLE = "labels must be whole numbers 0, 1 … C−1, but there is"
TWO = "it needs two classes, but there are"
LONG = tuple(letter * 30 for letter in "abc")


@pytest.mark.parametrize(
    ("kind", "labels", "names", "sentence"),
    [
        ("classes", [0, 1, 0.5], (), rf"{WHOLE} 0\.5; problem=least-squares takes any numbers$"),
        ("classes", [-3, 0, 1], (), f"{WHOLE} -3; number them from 0$"),
        ("classes", [-1, 0, 1], (), f"{WHOLE} -1; number them from 0$"),
        ("classes", [0, 1e8], (), f"{WHOLE} 100000000; number them from 0$"),
        ("classes", [0, 0, 0], (), "all labels are 0, and it needs at least 2 classes$"),
        ("binary", range(10), (), f"{TWO} 10: 0, 1, 2, 3, …, 9; problem=softmax takes them$"),
        ("binary", [-1, 0, 1], (), f"{TWO} 3: -1, 0, 1; problem=softmax "),
        ("binary", range(3), LONG, f"{TWO} 3: a{{19}}…, b{{19}}…, c{{19}}…; problem=soft"),
        ("numbers", range(3), LONG, r"text \(a{19}…, b{19}…, c{19}…\), .*; problem=softmax takes them$"),
        ("numbers", [0, 1], ("cat", "dog"), r"labels are text \(cat, dog\), and it needs numbers; problem=logistic"),
    ],
)
def test_labels_that_cannot_be_meant_are_refused(kind, labels, names, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_labels(pool(labels, names), kind)


def test_labels_that_a_study_states_stay_as_they_are_whichever_occur():
    for labels, kind in (([1, 1, 1], "binary"), ([1, 2, 3], "classes"), ([0, 3], "classes")):
        data = pool(labels)
        data.stated, data.classes = True, 2 if kind == "binary" else 4
        assert fit_labels(data, kind).rows(0, 1)[1].tolist() == labels
        assert all(note.endswith(EMPTY) for note in fit_labels(data, kind).notes)
    for kind, sentence in (("binary", "two classes, and data.classes says 4"), ("survival", "leave it out")):
        with pytest.raises(ValueError, match=sentence):
            fit_labels(data, kind)


def test_labels_of_test_samples_count_and_texts_are_classes_sorted_by_their_letters_not_by_their_bytes():
    data = fit_labels(pool([1, 2], test=[3]), "classes")
    assert data.notes == ("labels 1 … 3 are numbered 0 … 2",)
    assert data.rows_test(0, 1)[1].tolist() == [2]
    assert fit_labels(pool([0, 2], test=[1]), "classes").notes == ()
    data = pool([0, 1], ("cat", "dog"))
    assert fit_labels(data, "binary") is data
    (codes,), names = number_texts([np.array(["é".encode(), b"e", b" z ", b"Z"])], "x")
    assert (names, codes.tolist()) == (("Z", "e", "z", "é"), [3, 1, 2, 0])
    with pytest.raises(UserError, match=r"^a label of x is no text in UTF-8: b'\\xe9'$"):
        number_texts([np.array(["é".encode("latin-1"), b"e"])], "x")


@pytest.mark.parametrize(
    "name", ["synthetic", "gaussian", "images", "linreg-noniid", "quadratic", "lower-bound", "tridiagonal"]
)
def test_generated_data_are_left_alone(name):
    data = build({"name": name, "clients": 4})
    assert Problem.build(Data.member(name, "data").objective, "problem").fit_labels(data) is data


def test_a_problem_refuses_labels_that_it_cannot_use_and_one_from_outside_maps_them_itself():
    with pytest.raises(UserError, match=r"^problem 'logistic' cannot use these data: it needs two classes"):
        Problem.build("logistic", "problem").fit_labels(pool([0, 1, 2]))

    class Own(Problem, tag="own"):
        def value_grad(self, block, X):
            raise NotImplementedError

        def predict(self, block, X):
            raise NotImplementedError

    data = pool([1, 2], ("cat", "dog"))
    assert Own().fit_labels(data) is data
