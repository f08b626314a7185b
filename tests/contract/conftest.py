import shutil
from pathlib import Path

import pytest


def some(cases, share=3):
    """Cases of a test, of which by default every third runs: those beside each other are alike."""
    return [pytest.param(*case, marks=[pytest.mark.slow] * bool(k % share)) for k, case in enumerate(cases)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the file of a user in it, from which commands are run."""
    shutil.copy(Path(__file__).parent / "slips.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
