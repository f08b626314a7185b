"""All programs in one sitting: what is kept of each, and of the machine."""

import argparse
import io
import os
import sys

import pytest

from benchmarks.speed import __main__ as programs
from benchmarks.speed import busy, machine, sitting
from benchmarks.speed.studies import __main__ as studies
from mpifed.core.processor import block_size
from tests.helpers.commands import ROOT, execute

SHARED = {  # options that a function adds, as programs call it
    "--busy": "busy.add_option(",
    "--kernels": "busy.add_kernels(",
    **dict.fromkeys(("--launcher", "--case", "--rounds", "--repeat", "--timeout"), "add_options("),
}


def test_the_file_of_a_program_has_its_command_what_it_printed_and_how_it_ended(capsys):
    file = io.StringIO()
    assert sitting.shown([sys.executable, "-c", "print('a table')"], file) == 0
    assert sitting.shown([sys.executable, "-c", "import sys; sys.exit('no data')"], file) == 1
    text = file.getvalue()
    assert text == capsys.readouterr().out
    assert "$ python -c 'print('\"'\"'a table'\"'\"')'\n" in text
    assert "\na table\n(" in text
    assert "\nno data\n(failed with code 1, " in text


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("steps", [programs.STEPS, studies.STEPS])
def test_every_step_has_programs_that_are_there_and_know_their_options(steps, quick, tmp_path):
    args = argparse.Namespace(to=tmp_path, quick=quick, launcher="echo -n {ranks}")
    for name, commands in steps.items():
        for command in commands:
            words = sitting.words(name, command, args)
            program = (ROOT / "benchmarks/speed" / f"{command.program.replace('.', '/')}.py").read_text("utf-8")
            for option in [word for word in words if word.startswith("--")]:
                shared = SHARED.get(option, "")
                assert f'"{option}"' in program or (shared and shared in program), words


@pytest.mark.slow
def test_a_sitting_tells_what_failed_and_goes_on(tmp_path):
    words = ["--quick", "--only", "scaling-B,memory", "--launcher", "false", "--to", tmp_path]
    done = execute([sys.executable, "-m", "benchmarks.speed", *words], 200, cwd=ROOT)
    assert done.code == 1
    assert done.err.strip() == "failed: scaling-B"
    assert "ended with code 1" in (tmp_path / "scaling-B.txt").read_text("utf-8")
    assert "FedGiA, all" in (tmp_path / "memory.txt").read_text("utf-8")
    assert (tmp_path / "machine.txt").read_text("utf-8") in done.out


def test_a_step_that_is_not_there_is_refused_with_those_that_are(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["speed", "--only", "kernel", "--to", str(tmp_path / "new")])
    with pytest.raises(SystemExit, match="2"):
        sitting.sit(programs.STEPS, "")
    assert "there is no 'kernel'; --only takes rounds, kernels, " in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_machine_is_described_with_what_a_table_needs():
    facts = dict(line.split(": ", 1) for line in machine.describe().splitlines())
    assert facts["cores"].startswith(str(len(busy.cores())))
    assert facts["blocks"].startswith(f"{block_size().bytes:,} bytes")
    assert {"date", "processor", "caches", "memory", "BLAS", "MPI", "mpifed", "numpy", "numba", "commit"} <= set(facts)
    assert 0 <= machine.used(0.1) <= 1.1 * (os.cpu_count() or 1) + 1  # 0 where the system does not tell
