"""Every method in settings of all kinds, with a server and without: promises about bits, types and arguments."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from tests.helpers.algorithm_cases import GRAPHED, SERVED
from tests.helpers.algorithm_runs import Run, same
from tests.helpers.covering import covering, every_row
from tests.helpers.settings import ON_GRAPHS, WITH_SERVER, rows, started
from tests.helpers.watching import Watch

ROUNDS = 4
COVER = [*rows(covering, WITH_SERVER), *rows(covering, ON_GRAPHS)]
covered = pytest.mark.parametrize("place", range(len(COVER)), ids=["-".join(row.values()) for _, row in COVER])


class Both(NamedTuple):
    """The same run on one host, whose client methods cannot write to their arguments, and on several."""

    alone: Run
    together: Run
    watch: Watch
    models: list[np.ndarray]  # of either, (rounds, n)
    dtype: str


def both(algorithm, row):
    alone, together = started(algorithm, row), started(algorithm, row, together=True)
    alone.hosts[0].algorithm = watch = Watch(algorithm)
    return Both(alone, together, watch, [run.rounds(ROUNDS) for run in (alone, together)], row["dtype"])


@cache
def of_the_cover(place):
    return both(*COVER[place])


def same_bits(runs):
    one, other = runs.alone, runs.together
    return (
        runs.models[0].tobytes() == runs.models[1].tobytes()
        and same(one.states(), other.states())
        and same(*(run.fed.evaluate(run.server.x).values() for run in (one, other)))
        and vars(one.fed.ledger) == vars(other.fed.ledger)
        and np.array_equal(one.fed.times_selected, other.fed.times_selected)
    )


def same_types(runs):
    models = runs.watch.models == {np.dtype(runs.dtype)} and runs.alone.server.x.dtype == runs.dtype
    return models and runs.watch.kept and all(v.dtype == runs.dtype for v in runs.alone.states() if v.ndim > 1)


@covered
def test_the_bits_do_not_depend_on_hosts_nor_on_blocks_nor_on_arguments_that_can_be_written_to(place):
    assert same_bits(of_the_cover(place))


@covered
def test_models_and_states_keep_their_type(place):
    assert same_types(of_the_cover(place))


@pytest.mark.slow
@pytest.mark.parametrize("method", [*SERVED, *GRAPHED])
def test_so_it_is_in_every_setting(method):
    factors = (ON_GRAPHS if method in GRAPHED else WITH_SERVER) | {"method": [method]}
    for algorithm, row in rows(every_row, factors):
        runs = both(algorithm, row)
        assert same_bits(runs), row
        assert same_types(runs), row
