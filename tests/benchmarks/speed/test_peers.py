"""Other simulators beside ours: what is not installed is said, and networks are the same in both frameworks."""

import json
import re
import sys

import numpy as np
import pytest

from benchmarks.speed.peers import __main__ as peers
from benchmarks.speed.peers import common, flute
from tests.helpers.commands import ROOT, execute

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


def test_the_samples_of_flute_have_log_normal_sizes(tmp_path):
    samples = flute.write(tmp_path / "clients.npz", 300)
    with np.load(tmp_path / "clients.npz") as file:
        sizes = file["sizes"]
        assert (len(sizes), sizes.sum(), file["X"].shape) == (300, samples, (samples, flute.FEATURES))
    assert sizes.min() >= flute.LEAST
    assert abs(sizes.mean() - flute.MEAN) < 7
    assert sizes.max() > 3 * flute.MEAN


@pytest.mark.slow
def test_the_command_of_flute_is_timed():
    words = ["--repeat", "1", "--rounds", "3", "--clients", "20"]
    done = execute([sys.executable, "-m", "benchmarks.speed.peers.flute", *words], cwd=ROOT)
    assert done.code == 0, done.err
    first, wall, cpu = done.out.splitlines()
    assert re.fullmatch(r"20 clients, \d+ samples, 3 rounds", first)
    assert re.fullmatch(r"wall s [\d.]+ \([\d.]+\)", wall)
    assert re.fullmatch(r"CPU s [\d.]+ \([\d.]+\), goal ≤ 3.0", cpu)
