"""Training, validation and test samples of a client: disjoint, complete, from its own stream, by class if asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpifed
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.data.split import apportion, count_samples_held_out
from mpifed.experiment.config import experiment
from tests.helpers.data_files import load, write

RNG = np.random.default_rng(3)
SIZES = [40, 7, 1, 25, 2]
D = sum(SIZES)
X = np.arange(D)[:, None] * np.array([1.0, 0.5])  # the first feature is the number of the row
Y = RNG.integers(0, 3, D)
ROLES = ("training", "validation", "test")


def rows_of(data):
    """The numbers of the rows of each role and client: role -> m lists."""
    return {role: [data.read(role, i, i + 1)[0][:, 0].astype(int).tolist() for i in range(data.m)] for role in ROLES}


def arrays(**options):
    return mpifed.arrays(X, Y, SIZES, **options).load(5, "float64")


@pytest.mark.parametrize("stratify", [False, True])
@pytest.mark.parametrize(("test", "validation"), [(0.2, 0.3), (3, 0.25), (0.25, 2), (1, 1)])
def test_roles_of_a_client_are_disjoint_and_complete_and_the_same_wherever_they_are_read(test, validation, stratify):
    data = arrays(test=test, validation=validation, stratify=stratify)
    rows = rows_of(data)
    starts = np.cumsum([0, *SIZES])
    for i in range(data.m):
        own = [row for role in ROLES for row in rows[role][i]]
        assert sorted(own) == list(range(starts[i], starts[i + 1]))
        assert rows["training"][i]
        assert [len(rows[role][i]) for role in ROLES] == [data.sizes_of(role)[i] for role in ROLES]
    for role in ROLES:
        assert data.read(role, 0, data.m)[0][:, 0].astype(int).tolist() == [row for own in rows[role] for row in own]


def test_samples_are_those_of_a_loop_over_clients_each_with_its_own_stream():
    rows = rows_of(arrays(test=0.2, validation=0.3))
    for i, (d, start) in enumerate(zip(SIZES, np.cumsum([0, *SIZES]), strict=False)):
        rng = stream(5, "split", i + 1)
        left = list(range(d))
        for role, share in (("test", 0.2), ("validation", 0.3)):
            count = min(int(share * d + 0.5), len(left) - 1)
            drawn = [rng.integers(len(left))] if count == 1 else rng.choice(len(left), count, False, shuffle=False)
            picked = sorted(left[k] for k in drawn) if count else []
            left = [k for k in left if k not in picked]
            assert rows[role][i] == [start + k for k in picked]


def test_validation_samples_change_no_test_sample():
    with_both, alone = (
        rows_of(arrays(test=0.2, validation=share)) if share else arrays(test=0.2) for share in (0.3, 0)
    )
    assert with_both["test"] == [alone.read("test", i, i + 1)[0][:, 0].astype(int).tolist() for i in range(5)]


@given(
    members=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    count=st.integers(0, 20),
    used=st.lists(st.integers(0, 3), min_size=5, max_size=5),
)
def test_shares_of_classes_are_those_of_the_largest_remainder_and_leave_one_of_each(members, count, used):
    members = np.array(members)
    most = np.maximum(members - 1 - np.array(used[: len(members)]), 0)
    parts = apportion(count, members, most)
    assert (parts <= most).all()
    assert parts.sum() == min(count, most.sum())
    exact = count * members / members.sum()
    free = parts < most
    if free.any() and (exact <= most).all():  # no class is full: each has its exact share, rounded down or up
        assert (np.abs(parts - exact) < 1).all()


def test_a_stratified_client_keeps_its_proportions_and_classes_of_one_sample_stay_in_training():
    y = np.repeat([0, 1, 2], [60, 30, 1])
    data = mpifed.arrays(X[:91] if len(X) > 90 else np.ones((91, 2)), y, [91], test=0.2, validation=0.1, stratify=True)
    data = data.load(0, "float64")
    counts = {role: np.bincount(data.read(role, 0, 1)[1].astype(int), minlength=3).tolist() for role in ROLES}
    assert counts == {"test": [12, 6, 0], "validation": [6, 3, 0], "training": [42, 21, 1]}


@pytest.mark.parametrize("source", ["synthetic", "images", "gaussian", "digits"])
def test_sources_that_generate_or_divide_samples_hold_out_validation_samples_too(source):
    dealt = {"partition": "iid"} if source == "digits" else {}
    config = experiment({"data": {"name": source, "clients": 4, "test": 0.2, "validation": 5} | dealt})
    data = config.data.load(1, "float64")
    assert data.sizes_validation.tolist() == [5] * 4
    whole = data.sizes + data.sizes_test + data.sizes_validation
    assert np.array_equal(data.sizes_test, np.floor(0.2 * whole + 0.5))
    drawn = [np.unique(np.concatenate([data.read(role, i, i + 1)[0] for role in ROLES]), axis=0) for i in range(4)]
    assert source == "digits" or [len(rows) for rows in drawn] == whole.tolist()


def test_arrays_of_a_file_and_a_column_of_a_table_may_bring_validation_samples(tmp_path):
    parts = {"X": X, "y": Y, "sizes": np.array(SIZES), "X_validation": X[:3] + 1000, "y_validation": Y[:3]}
    write(tmp_path / "own.npz", parts | {"sizes_validation": np.array([0, 1, 0, 2, 0])})
    data = load(tmp_path / "own.npz")
    assert data.sizes_validation.tolist() == [0, 1, 0, 2, 0]
    assert data.rows_validation(3, 4)[0][:, 0].tolist() == [1001, 1002]
    assert (data.validation.name, data.validation.missing, data.sizes_test) == ("validation", 3, None)
    split = ["train", "val", "test", "validation", "train", "train"]
    table = "a,site,split,y\n" + "".join(f"{k},{'pq'[k % 2]},{split[k]},{k % 2}\n" for k in range(6))
    (tmp_path / "table.csv").write_text(table)
    data = load(tmp_path / "table.csv", test="split", client="site")
    rows = [data.read(role, 0, 2)[0].ravel().tolist() for role in ROLES]
    assert rows == [[0, 4, 5], [1, 3], [2]]


def test_a_file_with_a_group_for_each_client_may_have_validation_samples_in_some(tmp_path):
    groups = {
        "a": {"X": X[:4], "y": Y[:4], "X_validation": X[4:6], "y_validation": Y[4:6]},
        "b": {"X": X[6:9], "y": Y[6:9]},
    }
    write(
        tmp_path / "groups.h5", {f"{name}/{key}": array for name, own in groups.items() for key, array in own.items()}
    )
    data = load(tmp_path / "groups.h5")
    assert (data.sizes.tolist(), data.sizes_validation.tolist()) == ([4, 3], [2, 0])
    assert data.rows_validation(0, 2)[0][:, 0].tolist() == [4, 5]


def test_arrays_and_three_sets_of_torch_bring_their_own():
    data = arrays(test=(X[:5], Y[:5], [1] * 5), validation=(X[5:9], Y[5:9], [0, 2, 0, 1, 1]))
    assert (data.sizes.tolist(), data.sizes_validation.tolist()) == (SIZES, [0, 2, 0, 1, 1])
    items = [[(X[k], int(Y[k])) for k in part] for part in ((0, 1, 2), (3, 4), (5,), (6,))]
    data = mpifed.datasets(items[:2], test=[items[2], []], validation=[[], items[3]]).load(0, "float64")
    rows = [data.read(role, 0, 2)[0][:, 0].tolist() for role in ROLES]
    assert rows == [[0, 1, 2, 3, 4], [6], [5]]


def test_what_is_fitted_is_fitted_on_training_samples_alone(tmp_path):
    rows = [("train", 1.0), ("train", 3.0), ("test", 100.0), ("val", ""), ("train", "")]
    text = "a,b,split,y\n" + "".join(f"{value},{k},{role},{k % 2}\n" for k, (role, value) in enumerate(rows))
    (tmp_path / "table.csv").write_text(text)
    options = {"clients": 1, "test": "split", "missing": "mean", "partition": "contiguous"}
    data = load(tmp_path / "table.csv", **options)
    assert data.rows_validation(0, 1)[0][0, 0] == 2.0  # the mean of 1 and 3
    scaled = load(tmp_path / "table.csv", **options, standardise="pooled")
    assert np.allclose(scaled.rows(0, 1)[0].mean(axis=0), 0)
    assert scaled.rows_validation(0, 1)[0][0, 0] == 0.0


@pytest.mark.parametrize(
    ("amounts", "sentence"),
    [
        ({"test": 0.6, "validation": 0.5}, "data.test = 0.6 and data.validation = 0.5 leave no client a training"),
        ({"validation": 40}, "data.validation = 40 leaves no client a training sample, because no client has more"),
        ({"test": 20, "validation": 30}, "data.test = 20 and data.validation = 30 leave no client a training sample"),
        ({"validation": 0.001}, "data.validation = 0.001 leaves no client a validation sample, because no client has"),
    ],
)
def test_amounts_that_leave_a_role_without_samples_are_refused(amounts, sentence):
    with pytest.raises(UserError, match=f"^{sentence}"):
        count_samples_held_out(np.array(SIZES), amounts)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"validation": 1.5}, "data.validation = 1.5"),
        ({"validation": -1}, "data.validation"),
        ({"validation": (X, Y)}, "validation has 2 parts: it must be a share, or \\(X_validation, y_validation"),
        ({"validation": (X[:2], Y[:2], [2, 1])}, "clients_validation must be the sizes of the 5 clients, 2 in all"),
    ],
)
def test_wrong_validation_samples_of_arrays_are_told_in_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        mpifed.arrays(X, Y, SIZES, **options)
