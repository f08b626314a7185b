"""What is inferred from the samples of all clients: under a guarantee it is stated in the study, or the run says so.

Each row changes one sample of client 0. Without the key this changes the length of the model, or samples of others, and
a note says so; with the key nothing of others changes, and no note is there.
"""

import numpy as np
import pytest

import mpifed
from mpifed.api.study import build_table as study_of
from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.engine.listed import list_callbacks
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.new_result import study_notes as notes_of
from mpifed.experiment.prepare import prepare
from mpifed.problems.problem import Problem
from mpifed.report.summary import show

pytest.importorskip("dp_accounting")

EPM = {"name": "fedepm", "noise": "clipped", "epsilon": 0.5, "k0": 2}
FLAME = {"name": "flame-dp", "batch_size": 0, "epochs": 1, "noise_multiplier": 2.0}
AFTER = ", so one sample changes others too: privacy is guaranteed for the data after that, not before"
ROWS = 12
SVM = [f"{k % 2} 1:{k + 1} 2:0.5" for k in range(ROWS)]


def numbered(labels):
    return [f"{label} 1:{k + 1} 2:0.5" for k, label in enumerate(labels)]


HEADLESS = [f"{k},{2 + k % 3},yes" if k % 2 else f"{k},{3 + k % 2},no" for k in range(ROWS)]
GRADES = ["a,b,y", *(f"{k % 3},{k % 5},{k % 2}" for k in range(ROWS))]

# what, suffix, lines, line 0 or 1 that is changed and what it becomes, the note, keys that state it, problem
INFERRED = {
    "features": ("svm", SVM, {0: "0 1:1 9:0.5"}, "the number of features", {"columns": 9}, "logistic"),
    "base": ("svm", SVM, {0: "0 0:1"}, "indices count from 0 if", {"zero_based": True, "columns": 9}, "logistic"),
    "classes": ("svm", numbered([0, 1, 2] * 4), {0: "4 1:1"}, "the classes of the labels", {"classes": 5}, "softmax"),
    "classes from 1": ("svm", numbered([1, 2, 3] * 4), {0: "0 1:1"}, "the classes", {"classes": 4}, "softmax"),
    "two classes": ("svm", numbered([2] + [1] * 11), {0: "1 1:1"}, "the classes", {"classes": [1, 2]}, "logistic"),
    "words": (
        *("svm", numbered(["b", "c"] * 6), {0: "a 1:1"}, "the classes of the labels"),
        *({"classes": ["a", "b", "c"]}, "softmax"),
    ),
    "header": ("csv", HEADLESS, {0: "0,1,no"}, "the first line is a header", {"header": False}, "logistic"),
    "levels": ("csv", GRADES, {1: "7,0,0"}, "the levels of 'a'", None, "logistic"),
    "texts": ("csv", GRADES, {1: "0,0,0"}, "which columns hold texts", None, "logistic"),
}
OPTIONS = {"levels": {"categories": ["a"]}}


@pytest.fixture
def study(tmp_path):
    """The table of a run on a file with these lines; ``options`` are of [data]."""

    def study(suffix, lines, problem, **options):
        path = tmp_path / f"samples.{suffix}"
        path.write_text("\n".join(lines) + "\n")
        data = {"name": "file", "path": str(path), "clients": 4, "partition": "contiguous"} | options
        table = {"data": data, "problem": problem, "selection": "all", "rounds": 1, "stop": {"diverged": 0}}
        return table | {"algorithm": EPM if problem == "logistic" else FLAME}

    return study


def outside(table):
    """What others than client 0 have and see: the length of the model, and their samples."""
    config = experiment(table)
    data = config.problem.fit_labels(config.data.load(0, "float64"))
    X, y = data.rows(1, data.m)
    return len(config.problem.initial(data, 0)), np.asarray(X.toarray() if data.sparse else X).tolist(), y.tolist()


def notes(table):
    """What a run says before its first round."""
    config = experiment(study_of(table, None, {}))
    parts = prepare(Job(config), 1)
    return "\n".join(notes_of(config, parts.setup.m, list_callbacks(parts.features)))


@pytest.mark.parametrize("what", INFERRED)
def test_what_samples_say_of_all_others_is_stated_or_said(what, study):
    suffix, lines, changes, note, keys, problem = INFERRED[what]
    options = OPTIONS.get(what, {})
    changed = [changes.get(k, line) for k, line in enumerate(lines)]
    seen = [outside(study(suffix, those, problem, **options)) for those in (lines, changed)]
    assert what == "texts" or seen[0] != seen[1]
    for those in (lines, changed):
        told = notes(study(suffix, those, problem, **options))
        assert any(line.startswith(note) or (note in line and AFTER in line) for line in told.splitlines())
        if keys:
            key = next(iter(keys))
            assert f"{AFTER}; data.{key} states it instead" in told
            assert note not in notes(study(suffix, those, problem, **options, **keys))
    if keys:
        one, other = (outside(study(suffix, those, problem, **options, **keys)) for those in (lines, changed))
        assert one == other
    plain = study(suffix, lines, problem, **options) | {"algorithm": "fedavg"}
    assert AFTER not in notes(plain)


def test_a_study_that_states_all_of_it_has_no_such_note_and_refuses_samples_of_another_form(study):
    stated = {"columns": 5, "zero_based": False, "classes": 2}
    assert AFTER not in notes(study("svm", SVM, "logistic", **stated))
    for line, sentence in (
        ("1 1:1 6:2", r"line 3 has the index 6: indices count from 1, and data.columns = 5 says that there are 5 feat"),
        ("1 0:1", "has the index 0: indices count from 1, or from 0 with data.zero_based = true"),
        ("2 1:1", "has the label 2, which is none of data.classes = 2: name all classes"),
    ):
        with pytest.raises(UserError, match=sentence):
            mpifed.run(study("svm", [*SVM[:2], line, *SVM[2:]], "logistic", **stated), progress=None)


def test_texts_in_a_column_of_numbers_make_levels_of_it(study):
    """The effect of the row "texts": the first cell of a column of a CSV file says what it holds."""
    words = ["x", *"yzx" * 3, "y", "z"]
    rows = ["a,b,y", *(f"{word},{k % 5},{k % 2}" for k, word in enumerate(words))]
    assert outside(study("csv", rows, "logistic"))[0] > outside(study("csv", GRADES, "logistic"))[0]


def test_the_mark_between_cells_is_a_samples_where_there_is_no_header(study):
    told = notes(study("csv", HEADLESS, "logistic", header=False))
    assert f"the mark between cells is found from the first line, which is a sample{AFTER}" in told
    assert "the mark between" not in notes(study("csv", GRADES, "logistic", header=True))


@pytest.mark.parametrize("partition", ["shards", "classes", {"name": "dirichlet", "alpha": 5.0}])
def test_partitions_by_label_say_that_labels_of_all_divide_the_samples(partition, study):
    table = study("svm", SVM, "logistic", partition=partition)
    assert f"the labels of all samples say which client each belongs to{AFTER}" in notes(table)
    before = outside(table)
    study("svm", ["1 1:1 2:0.5", *SVM[1:]], "logistic")
    assert outside(table) != before


def test_arrays_frames_and_data_of_ones_own_say_it_too(tmp_path):
    X, y = np.arange(24.0).reshape(12, 2), np.arange(12) % 3
    table = {"problem": "softmax", "selection": "all", "rounds": 1, "algorithm": FLAME, "stop": {"diverged": 0}}
    told = f"the classes of the labels are those that occur in the samples of all clients{AFTER}"
    assert f"{told}; data.classes states it instead" in notes(table | {"data": mpifed.arrays(X, y, 4)})
    stated = mpifed.run(table | {"data": mpifed.arrays(X, y, 4, classes=5)}, progress=None)
    assert told not in stated.attrs["notes"]
    assert len(stated.x) == 5 * 3

    class Own(Data):
        supports = mpifed.extend.Supports.EVERYTHING

        def load(self, seed, dtype):
            return mpifed.extend.Pool(X, y, None, np.full(4, 3), dtype)

    assert told in notes(table | {"data": Own(clients=4)})
    assert "states it instead" not in notes(table | {"data": Own(clients=4)})
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "y": y})
    assert "which columns hold texts" not in notes(table | {"data": mpifed.table(frame, target="y", clients=4)})
    held = frame.assign(a=frame.a.astype(object))
    assert "which columns hold texts" in notes(table | {"data": mpifed.table(held, target="y", clients=4)})


def test_public_tables_say_that_their_features_are_those_that_occur(tmp_path, monkeypatch):
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm/a9a").write_text("\n".join(SVM).replace("0 1:", "-1 1:"))
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    table = {"data": {"name": "a9a", "clients": 4}, "selection": "all", "rounds": 1, "algorithm": EPM}
    told = notes(table | {"stop": {"diverged": 0}})
    for what in ("the number of features", "indices count from 0", "the classes of the labels"):
        assert what in told
    assert "states it" not in told


def test_times_of_zero_are_said_to_follow_from_those_of_all(study):
    """Client 3 has the time 0, and client 0 the least other one."""
    lines = ["t,e,a", *(f"{(k + 1) % ROWS},{k % 2},{k % 5}" for k in range(ROWS))]
    table = study("csv", lines, "cox", time="t", event="e")
    assert f"times of 0 become half of the least time in the samples of all clients{AFTER}" in notes(table)
    before = outside(table)
    study("csv", [lines[0], "0.5,0,0", *lines[2:]], "cox")
    assert outside(table) != before


LABELS = {"numbers": [1, 2], "classes": [0, 1], "binary": [0, 1], "survival": [1, -2]}


@pytest.mark.parametrize("name", sorted(set(Problem.choices) - {"torch", "cnn", "quadratic"}))
def test_no_first_model_depends_on_samples(name):
    problem = experiment({"problem": name}).problem
    y = np.array(LABELS[problem.takes()] * 6, float)
    found = []
    for seed in (0, 1):
        X = np.random.default_rng(seed).standard_normal((12, 3))
        found.append(problem.initial(problem.fit_labels(mpifed.arrays(X, np.roll(y, seed), 4).load(0, "float64")), 0))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("problem", ["logistic", "least-squares", "huber"])
def test_a_sample_with_which_f_is_not_finite_neither_ends_a_run_nor_is_seen(problem):
    """Without a guarantee it ends the run, whose message names the client."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[0] *= 5e307
    y = np.arange(20) % 2
    table = {"data": mpifed.arrays(X, y, np.full(5, 4)), "problem": problem, "selection": "all", "rounds": 3}
    table |= {"stop": {"diverged": 0}} | ({"evaluate": {"clients": True}} if problem == "logistic" else {})
    with np.errstate(all="ignore"):
        result = mpifed.run(table | {"algorithm": EPM}, progress=None)
        with pytest.raises(mpifed.RunError, match="of client 0 is not finite"):
            mpifed.run(table | {"algorithm": {"name": "fedavg", "step": "constant"}}, progress=None)
    assert result.cr == 3
    assert not np.isfinite(result.rounds["objective"]).all()
    assert np.abs(result.x).max() < 1e6  # an upload without clipping is beyond 1e16
    assert "clients" in show(result)


def test_rules_that_fail_a_run_by_its_true_data_are_said(study):
    table = study("svm", SVM, "logistic")
    assert "whether the run fails" not in notes(table)
    told = notes(table | {"stop": {}})
    assert "stop.diverged looks at the true data: whether the run fails is then not private" in told
    told = notes(table | {"stop": {"optimum": 0.0, "objective_gap": 1e-9}})
    assert "stop.objective_gap looks at the true data: the number of rounds is then not private" in told
    assert "stop.optimum and stop.diverged look at the true data: whether the run fails" in told
