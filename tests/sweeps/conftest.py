"""A folder of its own for a sweep, and how to run one."""

import pytest

from mpifed.cli.main import main
from mpifed.core import signals

SMALL = ["data.clients=6", "data.features=5", "rounds=4", "algorithm=fedavg"]
GRIDS = ["--grid", "algorithm.k0=1,2", "--grid", "seed=0:2"]
FILES = [f"k0={k0},seed={seed}.h5" for k0 in (1, 2) for seed in (0, 1)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signals, "stop_signal", "")
    return tmp_path


def sweep(*words, code=0):
    assert main(["sweep", *SMALL, *map(str, words)]) == code


def listed(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".checkpoint")
