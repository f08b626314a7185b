"""How to run a command that must end with a code, the status that it recorded, and which cases run by default."""

import h5py
import pytest

from tests.helpers.commands import mpifed


def run(*words, ranks=None, code=0, **more):
    done = mpifed(*words, ranks=ranks, **more)
    assert done.code == code, done.err
    return done


def status(path):
    with h5py.File(path) as file:
        return file.attrs["status"], file.attrs["stop_reason"]


def chosen(names, *default):
    """The names as cases, all but the default ones slow."""
    assert set(default) <= set(names)
    return [name if name in default else pytest.param(name, marks=pytest.mark.slow) for name in names]
