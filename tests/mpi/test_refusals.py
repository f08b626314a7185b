"""Wrong and hostile input ends every rank of a run with exit code 2; rank 0 alone says why, in one sentence."""

import re
import time

import pytest

from tests.helpers.commands import mpifed
from tests.hostile.test_refusals import CASES, QUIET, filled, listing

pytestmark = pytest.mark.mpi(min_size=3)
SECONDS = 20
HOSTILE = [name for name in CASES if name.startswith("wrong ")] + [
    *("key 7", "command 33", "command 39", "command 41", "command 44", "study braces.toml", "replay objects.npz"),
    *("run endless.h5", "run external.h5", "run pickle.npz", "run bomb.npz"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of hostile files, the same one on every rank."""
    from mpifed.mpi.communicator import Communicator

    world = Communicator()
    return world.share(filled(tmp_path_factory.mktemp("hostile")) if world.rank == 0 else None)


@pytest.mark.parametrize("name", [*HOSTILE, "more ranks than clients"])
def test_wrong_and_hostile_input(name, world, folder):
    few = [*QUIET, f"data.clients={world.size - 2}"], "ranks are too many for .*start at most"
    words, told = few if name == "more ranks than clients" else CASES[name]
    world.meet()  # until rank 0 has removed the file that claimed a name
    before = listing(folder)
    world.meet()
    begun = time.monotonic()
    done = mpifed(*words, cwd=folder)
    assert time.monotonic() - begun < SECONDS
    world.meet()
    if world.rank:
        assert (done.code, done.out, done.err) == (2, "", "")
    else:
        assert done.code == 2, done.err
        assert not done.out
        assert re.fullmatch(r"mpifed: [^\n]*\n", done.err), done.err
        assert re.search(told, done.err), done.err
    world.meet()  # rank 0 may still give back the name that it had claimed
    assert listing(folder) == before
