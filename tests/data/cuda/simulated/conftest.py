"""Tests that run in numba's simulator of a GPU; tests/data/cuda/test_simulated.py starts them."""

import importlib.util
import os

import pytest

collect_ignore_glob = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["test_*.py"]
collect_ignore = [] if importlib.util.find_spec("torch") else ["test_runs.py"]


@pytest.fixture(autouse=True)
def few_threads(monkeypatch):
    """A thread of the simulator is one of Python: eight of them in a block show what hundreds would."""
    from mpifed.data.cuda import layout, tree

    monkeypatch.setattr(layout, "WARP", 8)
    monkeypatch.setattr(layout, "THREADS", 8)
    monkeypatch.setattr(tree, "THREADS", 8)
    monkeypatch.setattr(tree, "COLUMNS", 4)
    monkeypatch.setattr(tree, "LEVELS", 3)
