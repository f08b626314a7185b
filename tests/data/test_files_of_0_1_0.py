"""Files that version 0.1.0 wrote are read as they were: results, an experiment file and a checkpoint.

Version 0.1.0 made files.tar.xz, and numbers.json has what h5py found in them: never write them anew.
"""

import csv
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

import mpifed
from mpifed.cli import main as cli
from mpifed.experiment.config import experiment, read_experiment

HERE = Path(__file__).with_name("files_of_0_1_0")
NUMBERS = json.loads((HERE / "numbers.json").read_text("utf-8"))


@pytest.fixture
def folder(tmp_path):
    with tarfile.open(HERE / "files.tar.xz") as archive:
        # Python 3.11.2, which Debian has, knows no filters; 3.12 warns without one
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return tmp_path


@pytest.mark.parametrize("name", NUMBERS)
def test_a_result_has_the_numbers_that_the_file_has(name, folder):
    result, stored = mpifed.load(folder / f"{name}.h5"), NUMBERS[name]
    for key, value in stored["attrs"].items():
        assert result.attrs[key] == value, key
    tables = {"rounds": result.rounds, "ranks": result.ranks, "clients": result.clients | result.by_client}
    tables |= {"models": result.models, "unseen": result.unseen, "model": {"x": result.x, "personal": result.personal}}
    compared = set()
    for path, values in stored["arrays"].items():
        group, _, column = path.rpartition("/")
        if group in tables and column not in ("rank", "client", "parameter"):
            found = tables[group][column]
            np.testing.assert_array_equal(found, np.array(values, found.dtype), path)
            compared.add(path)
    assert {"rounds/objective", "rounds/elapsed_seconds", "ranks/hostname", "clients/samples", "model/x"} <= compared
    np.testing.assert_array_equal(result.selection, stored["arrays"]["selection"])
    assert result.config["rounds"] == result.cr == len(stored["arrays"]["round"]) - 1
    assert (result.certificate is None) == (name != "certified")


@pytest.mark.parametrize("name", NUMBERS)
def test_it_is_shown_with_its_last_objective(name, folder, capsys):
    assert cli.main(["show", str(folder / f"{name}.h5")]) == 0
    assert f"→ {NUMBERS[name]['arrays']['rounds/objective'][-1]:.4g} " in capsys.readouterr().out


def test_all_are_compared_in_one_table(folder, capsys):
    assert cli.main(["compare", *(str(folder / f"{name}.h5") for name in NUMBERS), "--format", "csv"]) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    last = [one["arrays"]["rounds/objective"][-1] for one in NUMBERS.values()]
    assert sorted(float(row["objective"]) for row in rows) == sorted(last)


def test_a_run_goes_on_from_its_checkpoint(folder):
    """The same numbers, but for the last bits: those of the file are of another processor."""
    result, stored = mpifed.resume(folder / "begun.h5", rounds=6), NUMBERS["begun"]["longer"]
    assert result.cr == 6
    np.testing.assert_allclose(result.rounds["objective"], stored["objective"], rtol=1e-12)
    np.testing.assert_allclose(result.x, stored["x"], rtol=1e-10)


def test_an_experiment_file_means_what_it_meant(folder):
    """With every key that 0.1.0 had: none is refused, and what is run has the same values."""
    table = read_experiment(folder / "study.toml")
    found = experiment(table)
    assert found.rounds == table["rounds"] == 3
    assert found.algorithm.k0 == table["algorithm"]["k0"]
    mpifed.run(folder / "study.toml", path=folder / "again.h5")
    again = mpifed.load(folder / "again.h5")
    np.testing.assert_allclose(again.x, NUMBERS["begun"]["arrays"]["model/x"], rtol=1e-10)
