"""Fixtures for the tests of benchmarks."""

from __future__ import annotations

import pytest

from benchmarks import bench, report
from tests.benchmarks.tiny import TINY


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder of benchmarks with one quick benchmark, fedgia/tiny."""
    (tmp_path / "benchmarks" / "fedgia").mkdir(parents=True)
    (tmp_path / "benchmarks" / "fedgia" / "tiny.toml").write_text(TINY)
    for module in (bench, report):
        monkeypatch.setattr(module, "HERE", tmp_path / "benchmarks")
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    return tmp_path
