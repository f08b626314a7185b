import shutil
from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the files of users in it, from which commands are run."""
    for name in ("slips.py", "more_slips.py"):
        shutil.copy(Path(__file__).parent / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
