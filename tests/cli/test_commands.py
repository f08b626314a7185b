"""The command compare."""

import os
import pty
import subprocess
import sys

import pytest

from tests.helpers.commands import ROOT, mpifed
from tests.helpers.compared_runs import BOLD, cells
from tests.helpers.recorded_runs import recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for seed in range(3):
        for name in ("fedgia", "fedadmm"):
            recorded(folder / f"{name}-{seed}.h5", seed, (8.0, 4.0 + seed + (name == "fedgia")), name=name)
    return folder


def test_the_command_prints_a_table(folder):
    done = mpifed("compare", *sorted(folder.glob("*.h5")), "--columns", "objective,rounds", "--sort", "objective")
    assert (done.code, done.err) == (0, "")
    assert cells(done.out) == (
        ["algorithm", "n", "objective", "CR"],
        [["FedADMM", "3", "5.0 ± 1.0", "1 ± 0"], ["FedGiA", "3", "6.0 ± 1.0", "1 ± 0"]],
    )
    done = mpifed("compare", *sorted(folder.glob("*.h5")), "--by", "none", "--format", "csv", "--columns", "objective")
    assert done.out.split("\n")[0] == "algorithm,seed,n,objective,objective_sd"
    assert len(done.out.split("\n")) == 8


def test_bold_is_for_terminals(folder):
    command = [sys.executable, "-m", "mpifed", "compare", *sorted(folder.glob("*.h5")), "--columns", "objective"]
    assert "\033" not in mpifed(*command[3:]).out
    leader, follower = pty.openpty()
    try:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(list(map(str, command)), stdout=follower, check=True, timeout=60, env=environment)
        assert os.read(leader, 4096).decode().count(BOLD) == 1
    finally:
        os.close(leader)
        os.close(follower)


def test_mistakes_are_sentences(folder):
    for words, told in {
        "nowhere.h5": "nowhere.h5 cannot be read: no such file or directory",
        "fedgia-0.h5 --format html": "unknown format 'html'; the choices are terminal, markdown, latex, csv",
        "fedgia-0.h5 --sort objectve": "unknown column 'objectve'; did you mean 'objective'?",
        "": "the following arguments are required: result",
    }.items():
        assert mpifed("compare", *words.split(), cwd=folder) == (2, "", f"mpifed: {told}\n")


def test_settings_cannot_send_commands_to_the_terminal(folder, tmp_path):
    recorded(tmp_path / "evil.h5", name="\033[2Jfed")
    done = mpifed("compare", tmp_path / "evil.h5", folder / "fedgia-0.h5")
    assert "\033" not in done.out
    assert r"\x1b[2Jfed" in done.out
