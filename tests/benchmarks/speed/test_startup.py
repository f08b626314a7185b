"""The benchmark of start-up times: what it runs, when a goal is met, and that a failure is told."""

from __future__ import annotations

import sys

import pytest

from benchmarks.speed.startup import Goal, commands, timed, verdict
from tests.helpers.commands import ROOT, execute


def test_the_time_of_a_command_is_wall_time_and_the_cpu_time_of_its_processes():
    sleeping = timed([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert sleeping.wall > 0.3
    code = "import time\nwhile time.process_time() < 0.3: pass"
    both = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert timed([sys.executable, "-c", both]).cpu > 0.3


def test_a_command_that_fails_ends_it_with_what_it_said():
    with pytest.raises(SystemExit, match=r"ended with code 3\nno disk$"):
        timed([sys.executable, "-c", "import sys; sys.stderr.write('no disk'); sys.exit(3)"])


def test_a_goal_is_met_by_the_median():
    walls = {"python": [0.1, 0.2, 0.3], "import": [0.14, 0.29, 0.34], "run": [1.0, 2.0, 9.0]}
    assert verdict(None, "run", walls) == ""
    assert verdict(Goal(2.0), "run", walls) == "≤ 2.0: yes"
    assert verdict(Goal(1.9), "run", walls) == "≤ 1.9: no"
    assert verdict(Goal(0.05, "python"), "import", walls) == "0.040 ≤ 0.05 beyond python: yes"
    assert verdict(Goal(0.03, "python"), "import", walls) == "0.040 ≤ 0.03 beyond python: no"


def test_the_study_needs_a_launcher(tmp_path):
    assert list(commands("", tmp_path)) == ["python", "import mpifed", "--version"]
    assert commands("srun -n {ranks}", tmp_path)["study, 5 ranks"][:4] == ["srun", "-n", "5", sys.executable]


@pytest.mark.slow
def test_a_table_is_printed():
    words = ["--repeat", "1", "--launcher", ""]
    done = execute([sys.executable, "-m", "benchmarks.speed.startup", *words], cwd=ROOT)
    assert [line.split()[0] for line in done.out.splitlines()] == ["command", "python", "import", "--version"]
