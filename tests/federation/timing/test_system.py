"""The table [system]: what it says of itself, and what it refuses by a sentence before round one."""

from __future__ import annotations

import pytest

import mpifed as package
from mpifed.experiment.config import experiment
from mpifed.federation.timing.system import System
from tests.helpers.commands import mpifed

RATE = 'system.speed = {name = "constant", value = 0.0} is wrong: it must be above 0 and finite for every client'
WRONG = {
    "dropuot=0.1": "unknown key 'system.dropuot'; did you mean 'dropout'?",
    "dropout=1": "system.dropout = 1 is wrong: it must be a number < 1.0",
    "dropout=-0.1": "system.dropout = -0.1 is wrong: it must be a number >= 0.0",
    "deadline=0": "system.deadline = 0 is wrong: it must be a number > 0.0",
    "least=0": "system.least = 0 is wrong: it must be a whole number >= 1",
    "least=5": "system.least = 5 is wrong: it must be at most the 3 clients that a round selects",
    "jitter=much": 'system.jitter = "much" is wrong: it must be a number, not a text',
    "speed=lognorml": "unknown speed 'lognorml'; did you mean 'lognormal'?",
    "speed=lognormal": "system.speed.median is missing: it has no default",
    "speed={name='pareto',mean=3}": "unknown key 'system.speed.mean'; the choices are scale, shape",
    "latency=inf": "system.latency.value = inf is wrong: it must be a finite number",
    "speed=true": "system.speed = true is wrong: it must be a number, or a table that names a distribution",
    "speed={name='uniform',low=2,high=1}": "system.speed: low = 2.0 is wrong: it must be at most high = 1.0",
    "speed=0": RATE,
}


def refused(word, folder):
    """The sentence of a refusal, before anything is written."""
    done = mpifed("run", "algorithm=fedavg", "data.clients=6", "rounds=2", word, cwd=folder)
    assert (done.code, done.out, list(folder.iterdir())) == (2, "", [])
    return done.err


@pytest.mark.parametrize("word", WRONG)
def test_wrong_values_are_refused_by_a_sentence(word, tmp_path):
    assert refused(f"system.{word}", tmp_path) == f"mpifed: {WRONG[word]}\n"


def test_a_number_in_the_place_of_the_table_is_refused(tmp_path):
    told = "mpifed: system = 3 is wrong: system is a table, so write system.KEY = VALUE\n"
    assert refused("system=3", tmp_path) == told


def test_the_table_describes_itself():
    told = mpifed("describe", "system").out
    assert all(key in told for key in (*System.__struct_fields__, "simulated_seconds", "lognormal"))


def test_the_complete_file_describes_the_same_system():
    table = {"speed": {"name": "lognormal", "median": 3}, "latency": 0.1, "bandwidth_up": 50, "dropout": 0.1}
    small = {"data": {"clients": 9, "features": 5}, "algorithm": "fedavg", "rounds": 1}
    config = package.run(small | {"system": table}).config
    assert experiment(config).system == System.build(table, "system")
