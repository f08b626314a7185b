"""What is no result, or a damaged one, is refused in one sentence."""

import h5py
import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report.summary import show
from mpifed.results.result import load
from tests.helpers.recorded_runs import detailed as run


def cut(path, share):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])


def edit(path, **attrs):
    with h5py.File(path, "r+") as file:
        file.attrs.update(attrs)


def endless(path):
    """A heap of texts of which one reaches into the free space: the HDF5 library would read there without end."""
    content = bytearray(path.read_bytes())
    place = content.index(b"GCOL") + 24
    content[place : place + 8] = (3000).to_bytes(8, "little")
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (endless, "cannot be read: it is damaged or truncated"),
        (lambda path: path.write_bytes(path.read_bytes().partition(b"GCOL")[0] + b"GCOL" + bytes(6)), "damaged or"),
        (lambda path: path.unlink(), "cannot be read: no such file or directory"),
        (lambda path: (path.unlink(), path.mkdir()), "is a folder: name the result files in it"),
        (lambda path: path.write_bytes(b""), "is not a result file: it is empty"),
        (lambda path: path.write_text("objective, round"), "is not a result file: it is not HDF5"),
        (lambda path: cut(path, 0.5), "cannot be read: it is damaged or truncated"),
        (lambda path: cut(path, 0.001), "cannot be read: it is damaged or truncated"),
        (lambda path: path.write_bytes(path.read_bytes()[:1000] + bytes(100_000)), "damaged or truncated"),
        (lambda path: edit(path, format="other"), "is an HDF5 file but not a result of mpifed"),
        (lambda path: edit(path, format_version=3), "has result format 3, which a newer mpifed wrote"),
    ],
    ids=["heap", "head of a heap", "absent", "folder", "empty", "text", "half", "start", "zeros", "other", "newer"],
)
def test_what_is_no_result_is_told_in_one_sentence(path, spoil, told):
    run(path)
    spoil(path)
    with pytest.raises(UserError, match=told) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("ranks/mpi_calls", np.zeros(5, int), "the columns of ranks differ in length"),
        ("clients/times_selected", np.full(8, -1), "clients/times_selected has numbers below 0"),
        ("clients/samples", np.ones((8, 1), int), "clients/samples has type int64 and shape \\(8, 1\\), but must be a"),
        ("rounds/round", np.array([0, 1, 1, 2, 3]), "rounds/round must count 0, 1, 2 …"),
        ("selection", np.full((5, 2), 8), "selection names clients that are not among its 8"),
        ("selection", np.zeros((5, 0), int), "selection has no columns"),
    ],
)
def test_a_column_that_cannot_be_is_named(path, name, values, told):
    run(path)
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = values
    with pytest.raises(UserError, match=f"out.h5 is not a valid result: {told}"):
        load(path)


def test_a_configuration_that_is_no_toml_is_told():
    with pytest.raises(UserError, match="attribute config of the result is not valid TOML"):
        run(config="a = = 1", rounds=0).config  # noqa: B018


def test_a_run_that_was_killed_is_read_up_to_its_last_whole_row(path):
    run(path)
    with h5py.File(path, "r+") as file:
        file["rounds/objective"].resize((3,))
        file.attrs["status"] = "running"
        del file["selection"], file["model/x"]
    result = load(path)
    assert {len(values) for values in result.rounds.values()} == {3}
    assert result.selection.shape == (3, 1)
    assert result.x is None
    assert "running, or killed" in show(result)
