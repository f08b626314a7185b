"""What tests of networks share."""

import pytest


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)
