"""Tests that run in numba's simulator of a GPU; tests/data/cuda/test_simulated.py starts them."""

import importlib.util
import os

import pytest

collect_ignore_glob = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["test_*.py"]
collect_ignore = [] if importlib.util.find_spec("torch") else ["test_launched.py", "test_runs.py"]


@pytest.fixture(autouse=True)
def few_threads(monkeypatch):
    """A thread of the simulator is one of Python: eight of them in a block show what hundreds would."""
    from mpifed.data.cuda import layout, tree

    monkeypatch.setattr(layout, "WARP", 8)
    monkeypatch.setattr(layout, "THREADS", 8)
    monkeypatch.setattr(tree, "THREADS", 8)
    monkeypatch.setattr(tree, "COLUMNS", 4)
    monkeypatch.setattr(tree, "LEVELS", 3)


@pytest.fixture
def fewest_threads(few_threads, monkeypatch):
    """Whole runs launch often: two threads in a block."""
    from mpifed.data.cuda import layout

    monkeypatch.setattr(layout, "WARP", 2)
    monkeypatch.setattr(layout, "THREADS", 2)


@pytest.fixture
def no_gpu(fewest_threads, monkeypatch):
    """A GPU that is not one: tensors on the CPU, and the simulator."""
    import torch

    from mpifed.federation import device_host
    from mpifed.problems import torch_device

    monkeypatch.setattr(device_host, "FEW", 2)
    monkeypatch.setattr(torch_device, "device_of", lambda *words: torch.device("cpu"))
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "none")
