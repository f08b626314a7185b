"""The table [system]: what it refuses by a sentence before round one."""

import pytest

from tests.helpers.commands import mpifed

RATE = 'system.speed = {name = "constant", value = 0.0} is wrong: it must be above 0 and finite for every client'
WRONG = {
    ".least=5": "system.least = 5 is wrong: it must be at most the 3 clients that a round selects",
    ".speed=lognorml": "unknown speed 'lognorml'; did you mean 'lognormal'?",
    ".speed=lognormal": "system.speed.median is missing: it has no default",
    ".speed={name='pareto',mean=3}": "unknown key 'system.speed.mean'; the choices are scale, shape; "
    'with system.speed.name = "exponential" there is mean',
    ".latency=inf": "system.latency.value = inf is wrong: it must be a finite number",
    ".speed=true": "system.speed = true is wrong: it must be a number, or a table that names a distribution",
    ".speed={name='uniform',low=2,high=1}": "system.speed: low = 2.0 is wrong: it must be at most high = 1.0",
    ".speed=0": RATE,
    "=3": "system = 3 is wrong: system is a table, so write system.KEY = VALUE",
}


@pytest.mark.parametrize("word", WRONG)
def test_wrong_values_are_refused_by_a_sentence(word, tmp_path):
    done = mpifed("run", "algorithm=fedavg", "data.clients=6", "rounds=2", f"system{word}", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (2, "", f"mpifed: {WRONG[word]}\n")
    assert not list(tmp_path.iterdir())
