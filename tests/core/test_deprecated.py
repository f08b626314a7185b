"""Old names: each is accepted with one warning that has the new name and the version in which it goes."""

import re
import warnings

import h5py
import pytest

import mpifed
from mpifed.cli import main as cli
from mpifed.core import deprecated
from mpifed.core.deprecated import COLUMNS, KEYS, NAMES, Old, OldName

GONE = Old("every", "0.3")
SAID = "evaluate.interval is now called evaluate.every: write that, for mpifed 0.3 refuses the old name"
STUDY = {"data": {"clients": 4, "features": 3}, "rounds": 2}


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    """A name, a key, one of a component, a column and an attribute that were called otherwise."""
    monkeypatch.setattr(deprecated, "told", set())
    monkeypatch.setitem(NAMES, "execute", Old("run", "0.3"))
    monkeypatch.setitem(KEYS, ("Evaluate", "interval"), GONE)
    monkeypatch.setitem(KEYS, ("FedAvg", "local_steps"), Old("k0", "0.4"))
    monkeypatch.setitem(COLUMNS, "rounds/loss", "objective")
    monkeypatch.setitem(COLUMNS, "/why", "stop_reason")


def test_an_old_public_name_is_the_new_one_and_warns_once():
    told = "mpifed.execute is now called mpifed.run: write that, for mpifed 0.3 refuses the old name"
    with pytest.warns(FutureWarning, match=f"^{re.escape(told)}$"):
        assert mpifed.execute is mpifed.run
    with warnings.catch_warnings(action="error"):
        assert mpifed.execute is mpifed.run
    assert "execute" not in dir(mpifed)
    with pytest.raises(AttributeError, match=r"^module .mpifed. has no attribute .executes.$"):
        _ = mpifed.executes


def test_old_keys_run_the_same_study():
    new = mpifed.run(STUDY, {"algorithm": {"name": "fedavg", "k0": 3}, "evaluate.every": 2})
    with pytest.warns(OldName) as said:
        old = mpifed.run(STUDY, {"algorithm": {"name": "fedavg", "local_steps": 3}, "evaluate.interval": 2})
    assert {str(one.message).partition(":")[0] for one in said} == {
        "algorithm.local_steps is now called algorithm.k0",
        "evaluate.interval is now called evaluate.every",
    }
    assert old.config == new.config
    assert old.x.tobytes() == new.x.tobytes()


def test_a_key_under_both_names_is_refused():
    told = "^evaluate.interval is the old name of evaluate.every, and both are there: write one of them$"
    with pytest.warns(OldName), pytest.raises(mpifed.UserError, match=told):
        mpifed.run(STUDY, {"evaluate": {"every": 1, "interval": 2}})


@pytest.mark.filterwarnings("default")
def test_a_command_says_it_in_a_sentence(tmp_path, capsys):
    study = ["run", "rounds=1", "data.clients=4", "evaluate.interval=2", "-q", "-o", str(tmp_path / "out.h5")]
    assert cli.main(study) == 0
    assert capsys.readouterr().err == f"mpifed: {SAID}\n"


def test_a_result_file_with_old_columns_is_read_without_a_word(tmp_path):
    path = tmp_path / "out.h5"
    before = mpifed.run(STUDY, path=path)
    with h5py.File(path, "r+") as file:
        file.move("rounds/objective", "rounds/loss")
        file.attrs["why"] = file.attrs.pop("stop_reason")
    after = mpifed.load(path)
    assert after.rounds["objective"].tolist() == before.rounds["objective"].tolist()
    assert after.about == before.about
    assert after.stop_reason == before.stop_reason
    assert "loss" not in after.rounds


def test_what_replaces_an_old_name_is_there():
    """Of the names of this version, which the made-up ones join."""
    assert {old.new for old in NAMES.values()} <= set(mpifed.__all__)
    assert not NAMES.keys() & set(mpifed.__all__)
