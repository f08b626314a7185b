"""The bits of all studies are those recorded, and the file of them is whole."""

import importlib.util

import h5py
import numpy as np
import pytest

import mpifed
from tests.bits.parts import parts
from tests.bits.pinned import PACKAGES, kernels
from tests.bits.record import main, others, read
from tests.bits.special import every, on_ranks
from tests.bits.studies import FEATURES, KERNELS, methods, recorded_options

GROUPS = [
    pytest.param("numpy", marks=pytest.mark.slow),
    pytest.param("tensors", marks=[pytest.mark.slow, pytest.mark.torch]),
    pytest.param("network", marks=[pytest.mark.slow, pytest.mark.torch]),
    pytest.param("compiled", marks=[pytest.mark.slow, pytest.mark.fast]),
]


@pytest.mark.parametrize("group", GROUPS)
def test_no_bit_differs_from_those_recorded_nor_between_one_rank_and_three(group, capsys):
    for package in PACKAGES[group]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not there")
    code = main(["--check", "--only", f"*/{group}/*"])
    said = capsys.readouterr().out
    assert code == 0, said
    if reason := others(group):
        pytest.skip(f"one rank and three alone were compared, for {reason}")


def test_every_method_is_recorded_with_every_feature_that_it_may_have_and_all_kernels():
    recorded = read()[1]
    able = [(method, feature) for method in methods() for feature in FEATURES if recorded_options(method, feature)]
    expected = {f"{method}/{of}/{feature}" for method, feature in able for of in KERNELS}
    assert expected <= every().keys()
    assert list(recorded) == list(every()), "python -m tests.bits.record --only 'NAME/*' writes the lines of a method"
    runs = {name for name, row in recorded.items() if "refused" not in row}
    assert {name.split("/")[0] for name in runs if kernels(name) == "numpy"} == {*methods(), "special"}
    assert all({"model", "state", "ledger", "columns", "wire1"} <= recorded[name].keys() for name in runs)
    assert all({"wire3", "bytes3"} <= recorded[name].keys() for name in runs if on_ranks(name))


def test_a_bit_in_any_part_changes_its_hash_and_a_clock_changes_none(tmp_path):
    path = tmp_path / "run.h5"
    study = {"data": "gaussian", "data.clients": 4, "data.samples": 3, "algorithm": "fedavg", "rounds": 2}
    mpifed.run(study, path=path, progress=False)
    before = parts(path)
    changes = {"model/x": {"model"}, "rounds/objective": {"columns", "rounds/objective"}, "rounds/uploads": {"ledger"}}
    changes |= {"ranks/mpi_calls": {"wire"}, "rounds/compute_seconds": set()}
    for name, expected in changes.items():
        with h5py.File(path, "r+") as file:
            array = file[name][()]
            file[name][-1] = np.nextafter(array[-1], np.inf) if array.dtype.kind == "f" else array[-1] + 1
        after = parts(path)
        assert {part for part in before if after[part] != before[part]} == expected
        before = after
