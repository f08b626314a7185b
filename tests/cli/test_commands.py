"""The commands compare, list, describe, schema and completion, and --version."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys

import pytest

from tests.helpers.commands import ROOT, mpifed
from tests.helpers.compared_runs import BOLD, cells
from tests.helpers.recorded_runs import recorded

PROBE = """
source ./completion
complete() {{ COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_mpifed; echo "${{COMPREPLY[@]}}"; }}
complete
"""


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


def test_settings_cannot_send_commands_to_the_terminal(folder, tmp_path):
    recorded(tmp_path / "evil.h5", name="\033[2Jfed")
    done = mpifed("compare", tmp_path / "evil.h5", folder / "fedgia-0.h5")
    assert "\033" not in done.out
    assert r"\x1b[2Jfed" in done.out


def test_a_table_is_described_with_the_meaning_and_bounds_of_each_key():
    told = mpifed("describe", "privacy").out
    assert re.search(r"\n  clip +1\.0 +bound C of ‖Δ_i‖₂, .*  \[> 0, <= 1e\+60\]\n", told)
    assert re.search(r'\n  per +"model" .*  \["model" \| "layer"\]\n', told)
    assert "N_Z(0, z²C²/(u γ²))" in mpifed("describe", "distributed-discrete-gaussian").out


def test_list_describe_and_version_and_the_matrix_fits_on_a_screen():
    assert "fedgia" in mpifed("list", "algorithms").out
    told = mpifed("describe", "fedadmm").out
    for word in ("k0", "r0", "nu", "eps0", "inner_max", "0.95", "(3.3)"):
        assert word in told
    for word in ("mpifed", "Python", "numpy", "mpi4py", "MPI", "HDF5"):
        assert word in mpifed("--version").out
    lines = mpifed("list", "matrix").out.splitlines()
    assert max(map(len, lines)) <= 100
    problems = [name for line in lines if line.startswith(" " * 17) for name in line.split()]
    row = [cell for line in lines if line.startswith("fedgia ") for cell in line.split()[1:]]
    found = {name: cell.rstrip("¹²³⁴⁵⁶⁷⁸⁹") for name, cell in zip(problems, row, strict=True)}
    assert [found[name] for name in ("least-squares", "torch", "poisson", "cox")] == ["yes", "no", "no", "yes"]
    assert any(" the algorithm needs lipschitz (an upper bound" in line for line in lines)
    assert mpifed("list", "matrx").err == "mpifed: unknown kind 'matrx'; did you mean 'matrix'?\n"


def test_the_schema_is_printed_or_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = mpifed("schema")
    assert mpifed("schema", "-o", "mpifed.schema.json").out.endswith("written to mpifed.schema.json\n")
    assert json.loads((tmp_path / "mpifed.schema.json").read_text("utf-8")) == json.loads(printed.out)
    again = mpifed("schema", "-o", "mpifed.schema.json")
    assert again.code == 2
    assert "mpifed.schema.json exists" in again.err
    assert mpifed("schema", "-o", "mpifed.schema.json", "--force").code == 0


def test_there_is_a_script_for_every_shell_that_completes_commands_and_options(tmp_path):
    pytest.importorskip("shtab")
    for shell in ("tcsh", "zsh", "bash"):
        done = mpifed("completion", shell)
        assert done.code == 0
        assert "mpifed" in done.out
        assert "resume" in done.out
    (tmp_path / "completion").write_text(done.out, "utf-8")
    for words, found in (("mpifed res", "resume"), ("mpifed plot --tit", "--title")) if shutil.which("bash") else ():
        done = subprocess.run(["bash", "-c", PROBE.format(words=words)], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.split() == [found]


def test_completion_without_shtab_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = mpifed("completion", "bash")
    assert done.code == 2
    assert done.err == 'mpifed: completion needs shtab: pip install "mpifed[completion]"\n'
