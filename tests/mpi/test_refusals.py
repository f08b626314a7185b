"""Wrong and hostile input ends every rank of a run with exit code 2; rank 0 alone says why, in one sentence."""

from __future__ import annotations

import re
import time

import pytest

from tests.helpers.commands import mpifed
from tests.hostile.test_refusals import CASES, filled, listing
from tests.hostile.test_wrong_input import WRONG, contents, faulty, one_sentence

pytestmark = pytest.mark.mpi(min_size=3)
SECONDS = 20
HOSTILE = [
    "key 7",
    "command 37",
    "command 43",
    "command 45",
    "command 48",
    "study braces.toml",
    "run endless.h5",
    "run external.h5",
    "run pickle.npz",
    "run bomb.npz",
    "replay objects.npz",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of hostile files, the same one on every rank."""
    from mpifed.mpi.communicator import Communicator

    world = Communicator()
    return world.share(filled(tmp_path_factory.mktemp("hostile")) if world.rank == 0 else None)


def silent(done):
    return (done.code, done.out, done.err) == (2, "", "")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input(name, world, mpi_tmp_path):
    before = contents(faulty(mpi_tmp_path)) if world.rank == 0 else None
    world.meet()
    words = [word.replace("data.clients=1", f"data.clients={world.size - 2}") for word in WRONG[name][0]]
    begun = time.monotonic()
    done = mpifed("run", *words, cwd=mpi_tmp_path)
    assert time.monotonic() - begun < SECONDS
    if world.rank:
        assert silent(done), done
    else:
        assert done.code == 2, done.err
        one_sentence(name, done)
        assert contents(mpi_tmp_path) == before


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input(name, world, folder):
    words, told = CASES[name]
    world.meet()  # until rank 0 has removed the file that claimed a name
    before = listing(folder)
    world.meet()
    done = mpifed(*words, cwd=folder)
    world.meet()
    if world.rank:
        assert silent(done), done
    else:
        assert done.code == 2, done.err
        assert not done.out
        assert re.fullmatch(r"mpifed: [^\n]*\n", done.err), done.err
        assert re.search(told, done.err), done.err
    world.meet()  # rank 0 may still give back the name that it had claimed
    assert listing(folder) == before
