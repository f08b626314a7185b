"""A checkpoint is removed as a whole."""

import os
import shutil

import pytest

from mpifed.experiment.checkpoint import Checkpoint, CheckpointWriter, find
from tests.experiment.conftest import run


def test_a_kill_while_a_checkpoint_is_removed_leaves_none_or_all_of_it(tmp_path, monkeypatch):
    path = tmp_path / "out.h5"
    run("run", "data.clients=13", "rounds=2", "-q", "-o", path)
    keeper, remove = CheckpointWriter(Checkpoint(), path, find(path), [0, 13]), shutil.rmtree

    def killed(place, ignore_errors=False):
        if os.path.isdir(place):
            os.unlink(os.path.join(place, os.listdir(place)[0]))
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        keeper.drop()
    assert "is finished" in run("resume", path, code=2).err
    monkeypatch.setattr(shutil, "rmtree", remove)
    keeper.drop()
    assert os.listdir(tmp_path) == ["out.h5"]
