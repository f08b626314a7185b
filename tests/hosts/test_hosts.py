"""Runs on two emulated hosts: their bits, a cable that is out, a host that ends, and going on elsewhere.

    python -m pytest -m hosts

As root, where network namespaces can be made; the hosts are those of ``tests/hosts/emulated.py``.
"""

import os
import signal
import time
from pathlib import Path

import h5py
import pytest

from mpifed.results.result import load
from tests.helpers.commands import mpifed
from tests.helpers.killed_runs import STUDY, content

from .emulated import OPEN_MPI, running

pytestmark = pytest.mark.hosts
MORE = "rounds=160"
WAYS = ("star", "tree", "nodes", "slices")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with running(tmp_path_factory.mktemp("hosts")) as found:
        yield found


@pytest.fixture(autouse=True)
def cables(request):
    """Every test begins and ends with both cables in and no process on either host."""
    yield
    found = request.getfixturevalue("hosts")
    for name in found.names:
        found.kill(name)
    found.up()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run in one process."""
    return alone(tmp_path_factory, *STUDY)


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A run of more rounds, in one process: there is time to disturb it after its first checkpoint."""
    return alone(tmp_path_factory, *STUDY, MORE)


def alone(folders, *words):
    path = folders.mktemp("alone") / "a.h5"
    assert mpifed("run", *words, "-q", "-o", path).code == 0
    return content(path)


@pytest.fixture
def both(hosts):
    return dict.fromkeys(hosts.names, 3)


def under_way(hosts, path: Path, where, *words, **options):
    """A run that has written its first checkpoint."""
    process = hosts.launched(where, "run", *STUDY, MORE, *words, "-q", "-o", path, **options)
    deadline = time.monotonic() + 60
    while not Path(f"{path}.checkpoint/state.json").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no checkpoint"
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("way", WAYS)
def test_two_hosts_have_the_bits_of_one_process(way, hosts, both, whole, tmp_path):
    before = hosts.carried()
    done = hosts.run(both, "run", *STUDY, f"reduction={way}", "-q", "-o", tmp_path / "a.h5")
    assert hosts.carried() - before > 2 * 80 * 60 * 8  # a model each way in every round
    assert (done.code, done.err) == (0, "")
    assert content(tmp_path / "a.h5") == whole
    with h5py.File(tmp_path / "a.h5") as file:
        assert [name.decode() for name in file["ranks/hostname"]] == [n for n in hosts.names for _ in range(3)]
        assert file.attrs["reduction"].startswith(way)


@pytest.mark.parametrize("patience", [300, 0])
def test_a_cable_that_is_out_for_a_while_costs_nothing_but_time(patience, hosts, both, longer, tmp_path):
    process = under_way(hosts, tmp_path / "a.h5", both, f"patience={patience}")
    hosts.down(hosts.names[1])
    time.sleep(5)
    assert process.poll() is None
    hosts.up()
    assert hosts.over(process).code == 0
    assert content(tmp_path / "a.h5") == longer


@pytest.mark.parametrize("cut", [0, 1], ids=["of the server", "of the other host"])
def test_a_cable_that_stays_out_ends_the_run_with_one_sentence_and_the_other_host_goes_on(
    cut, hosts, both, longer, tmp_path
):
    path = tmp_path / "a.h5"
    process = under_way(hosts, path, both, "patience=5")
    hosts.down(hosts.names[cut])
    begun = time.monotonic()
    done = hosts.over(process, 30)
    assert 4 < time.monotonic() - begun < 20
    silent = f"{hosts.names[1]} (ranks 3 to 5) has given no sign of life for 5 s (patience): the run ends, and resume"
    assert done.code != 0
    assert done.err.count("mpifed: ") == 1
    assert f"mpifed: {silent}" in done.err
    for name in hosts.names:
        hosts.quiet(name, 15)
    result = load(path)
    assert result.status == "failed"
    assert result.stop_reason.startswith(silent)
    assert hosts.run({hosts.names[1]: 3}, "resume", path, "-q").code == 0
    assert content(path) == longer


def test_a_host_that_loses_its_power_ends_the_run(hosts, both, longer, tmp_path):
    path = tmp_path / "a.h5"
    process = under_way(hosts, path, both, "patience=5")
    hosts.down(hosts.names[1])
    hosts.kill(hosts.names[1])
    done = hosts.over(process, 30)
    assert f"{hosts.names[1]} (ranks 3 to 5) has given no sign of life for 5 s" in done.err
    assert hosts.run({hosts.names[0]: 2}, "resume", path, "-q").code == 0
    assert content(path) == longer


def test_a_host_whose_processes_are_killed_ends_the_run_at_once(hosts, both, longer, tmp_path):
    path = tmp_path / "a.h5"
    process = under_way(hosts, path, both)
    hosts.kill(hosts.names[1])
    done = hosts.over(process, 30)
    # Open MPI's mpirun says what has happened, in one of two ways, and returns 0 where a daemon of its own has died
    assert done.code != 0 or (OPEN_MPI and ("abort" in done.err or "will terminate the job" in done.err))
    hosts.quiet(hosts.names[0], 15)
    assert load(path).status != "finished"
    assert hosts.run({hosts.names[1]: 4}, "resume", path, "-q").code == 0
    assert content(path) == longer


@pytest.mark.skipif(not OPEN_MPI, reason="MPICH ends all ranks when one dies")
def test_ranks_of_one_host_go_on_when_those_of_the_other_are_killed(hosts, both, longer, tmp_path):
    process = under_way(hosts, tmp_path / "a.h5", both, "--survive", survive=True)
    for pid in hosts.ranks(hosts.names[1]):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while hosts.ranks(hosts.names[0]):
        assert time.monotonic() < deadline, "the ranks hang"
        time.sleep(0.1)
    for name in hosts.names:
        hosts.kill(name)  # now and then Open MPI's mpirun stays when all its ranks are gone
    process.communicate()
    assert content(tmp_path / "a.h5") == longer
