"""A small study in Python and in a file, and what is silent."""

import pytest

from mpifed.core.toml import to_toml

TABLE = {"data": {"clients": 6, "features": 5}, "algorithm": {"name": "fedavg", "k0": 2}, "rounds": 4}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(to_toml(TABLE), "utf-8")
    return path
