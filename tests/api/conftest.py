"""A small study in Python and in a file, and what is silent."""

import pytest

TABLE = {"data": {"clients": 6, "features": 5}, "algorithm": {"name": "fedavg", "k0": 2}, "rounds": 4}
TOML = """
rounds = 4
data = {clients = 6, features = 5}
algorithm = {name = "fedavg", k0 = 2}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TOML, "utf-8")
    return path
