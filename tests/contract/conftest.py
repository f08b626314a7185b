import shutil
from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the file of a user in it, from which commands are run."""
    shutil.copy(Path(__file__).parent / "slips.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
