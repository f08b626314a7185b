"""The folder MPIFED_DATA of a test."""

import pytest


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder, which MPIFED_DATA names."""
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    return tmp_path
