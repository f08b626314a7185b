"""What the README shows is so."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from mpifed.experiment import config
from mpifed.experiment import run as launch
from tests.helpers.commands import ROOT, mpifed

README = (ROOT / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = (block for block in PYTHON if "mpifed.run" in block)
    exec(example, {})
    assert re.match(r"\d\.\d+ \(100,\)\n", capsys.readouterr().out)
    assert (tmp_path / "out.h5").exists()


def test_the_algorithm_of_the_readme_is_one():
    (example,) = (block for block in PYTHON if "class GradientDescent" in block)
    space: dict = {"__name__": "readme"}
    exec(example, space)
    setup = config.experiment({"data": {"clients": 6, "features": 5}, "rounds": 200, "evaluate": {"every": 50}})
    result = launch.run_config(msgspec.structs.replace(setup, algorithm=space["GradientDescent"](gamma=0.1)))
    assert result.rounds["grad_norm_sq"][-1] < 1e-12
    assert np.isfinite(result.x).all()


def test_the_experiment_file_of_the_readme_is_read(tmp_path):
    study, system = re.findall(r"```toml\n(.*?)```", README, re.S)
    (tmp_path / "study.toml").write_text(study + system)
    setup = config.experiment(config.read(tmp_path / "study.toml"))
    assert (setup.algorithm.label(), setup.problem.label(), setup.data.label()) == ("fedgia", "logistic", "qot")
    assert setup.system.speed.median == 1e4


def test_the_mistake_of_the_readme_is_answered_as_it_says():
    command, answer = re.search(r"\$ mpirun -n 5 python -m mpifed (run .*)\n(mpifed: .*)\n", README).groups()
    done = mpifed(*command.split(), ranks=5)
    assert (done.code, done.err.strip()) == (2, answer)


def test_every_algorithm_is_in_its_table():
    for name in config.FAMILIES["algorithm"].choices:
        assert f"`{name}`" in README
