"""How to run a command that must end with a code, the status that it recorded, and which cases run by default."""

import h5py
import pytest

from tests.helpers.commands import mpifed
from tests.helpers.killed_runs import content


def run(*words, ranks=None, code=0, **more):
    done = mpifed(*words, ranks=ranks, **more)
    assert done.code == code, done.err
    return done


def goes_on(folder, study, first=3, last=6, more=()):
    """A run of ``first`` rounds is resumed up to ``last`` with the bits of one that had all of them; its path."""
    whole, part = folder / "whole.h5", folder / "part.h5"
    run("run", *study, f"rounds={last}", *more, "-q", "-o", whole, "--force")
    run("run", *study, f"rounds={first}", "-q", "-o", part, "--force")
    run("resume", part, f"rounds={last}", *more, "-q")
    assert content(part) == content(whole)
    return part


def status(path):
    with h5py.File(path) as file:
        return file.attrs["status"], file.attrs["stop_reason"]


def chosen(names, *default):
    """The names as cases, all but the default ones slow."""
    assert set(default) <= set(names)
    return [name if name in default else pytest.param(name, marks=pytest.mark.slow) for name in names]
