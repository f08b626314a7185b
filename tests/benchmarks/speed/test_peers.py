"""Other simulators beside ours: what is not installed is said, and networks are the same in both frameworks."""

import json
import sys

import numpy as np
import pytest

from benchmarks.speed.peers import __main__ as peers
from benchmarks.speed.peers import common

TINY = ["--tiny", "--repeat", "1", "--rounds", "2", "--cases", "MLP"]


def test_a_peer_that_is_not_installed_is_said_in_a_sentence(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'pfl'\" >&2\nexit 1\n")
    python.chmod(0o755)
    assert peers.missing("pfl", str(python)) == (
        f"pfl-research is not installed for {python} (ModuleNotFoundError: No module named 'pfl'): "
        "pip install pfl torch"
    )
    python.write_text("#!/bin/sh\n")
    assert peers.missing("fedjax", str(python)) == ""


@pytest.mark.slow
@pytest.mark.torch
def test_peers_that_are_there_are_measured_beside_ours(printed):
    pytest.importorskip("torch")
    there = [name for peer, (name, _) in peers.PEERS.items() if not peers.missing(peer, sys.executable)]
    table = printed("peers.__main__", *TINY)
    lines = [line.split() for line in table if line.startswith("MLP")]
    assert [line[1] for line in lines] == ["mpifed", *there]
    assert lines[0][3] == "1.00"
    assert sum("is not installed" in line for line in table) == len(peers.PEERS) - len(there)


def test_a_peer_is_asked_with_a_file_and_answers_in_json(tmp_path, monkeypatch, capsys):
    arrays = {"X": np.zeros((2, 3, 1, 4, 4)), "y": np.zeros((2, 3), int), "x": np.zeros(5)}
    np.savez(tmp_path / "clients.npz", **arrays, clients=2, batch=10, lr=0.05)
    monkeypatch.setattr(sys, "argv", ["peer", str(tmp_path / "clients.npz"), "MLP", "3", "cuda"])
    given = common.task()
    assert (given.clients, given.batch, given.lr, given.network, given.rounds) == (2, 10, 0.05, "MLP", 3)
    marks = common.Marks()
    for _ in range(3):
        marks.mark()
    marks.tell(0.5)
    told = json.loads(capsys.readouterr().out)
    assert (len(told["cpu"]), len(told["wall"]), told["f"]) == (2, 2, 0.5)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["MLP", "LeNet", "CNN"])
def test_the_networks_of_fedjax_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("fedjax")
    from benchmarks.speed.models import CASES, parameters
    from benchmarks.speed.peers.with_fedjax import parameters as weights
    from benchmarks.speed.peers.with_fedjax import scores

    module, samples = CASES[name].make(), torch.randn(2, *CASES[name].shape)
    found = scores(name, weights(name, parameters(module).numpy()), samples.permute(0, 2, 3, 1).numpy())
    assert np.allclose(found, module(samples).detach(), atol=1e-5)
