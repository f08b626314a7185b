"""Short recorded runs."""

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.h5"
