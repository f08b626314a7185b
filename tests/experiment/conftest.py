"""How to run a command that must end with a code, and the status that it recorded."""

from __future__ import annotations

import h5py

from tests.helpers.commands import mpifed


def run(*words, ranks=None, code=0, **more):
    done = mpifed(*words, ranks=ranks, **more)
    assert done.code == code, done.err
    return done


def status(path):
    with h5py.File(path) as file:
        return file.attrs["status"], file.attrs["stop_reason"]
