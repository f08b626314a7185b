"""The numbers from which random gradients of local steps follow: of a client, a round, a call and a step alone."""

import numpy as np
import pytest

from mpifed.features.client_weights import WeightedObjectives
from mpifed.features.network_training import Dropout
from mpifed.federation.local import Local
from mpifed.federation.setup import RunSpec
from mpifed.problems.least_squares import LeastSquares
from tests.federation.test_local import numbers_of

SIZES = [5, 6, 7, 8]


class Drawing(LeastSquares):
    """Its gradients are the numbers, as they are."""

    def seeded_grad(self, block, X, seeds):
        return seeds[:, None]


def clients(further=(), key=(3, 1), ids=range(4), seed=0):
    whole = numbers_of(SIZES)
    study = RunSpec(Drawing(), None, seed, 4, np.zeros(2))
    rows = np.array(ids)
    return Local(whole.block.take(rows), study, rows, key, [Dropout(seed), *further])


def numbers(f, x=0):
    return f.grad(np.full(2, x))[:, 0].tolist()


def of_steps(f, *how):
    return [numbers(batch) for _, batch, _ in f.steps(*how)]


def test_every_client_run_round_and_call_has_a_number_of_its_own():
    found = [numbers(f) for f in (clients(), clients(key=(3, 2)), clients(key=(4, 1)), clients(seed=1))]
    assert len(set(np.ravel(found))) == 16
    assert numbers(clients()) == found[0]
    assert numbers(clients(), x=9) == found[0]
    each = clients(key=(np.array([3, 4, 3, 4]), np.array([1, 1, 2, 1])))  # asynchronous runs
    assert numbers(each) == [found[0][0], found[2][1], found[1][2], found[2][3]]


@pytest.mark.parametrize("how", [(3, 0, 0), (0, 2, 0), (3, 0, 2), (0, 2, 2)], ids=str)
def test_every_local_step_has_a_number_of_its_own_and_it_is_the_same_again(how):
    f = clients()
    first, second = of_steps(f, *how), of_steps(f, *how)
    assert len(set(np.ravel([numbers(f), *first, *second]))) == 4 * (1 + 2 * len(first))
    again = clients()
    assert [of_steps(again, *how), of_steps(again, *how)] == [first, second]


@pytest.mark.parametrize("how", [(3, 0, 0), (0, 2, 0), (3, 0, 2), (0, 2, 2)], ids=str)
def test_the_numbers_of_a_client_do_not_depend_on_the_others(how):
    """Nor on how many mini-batches these have in an epoch."""
    together, alone = of_steps(clients(), *how), of_steps(clients(ids=[0]), *how)
    width = len(together) // (how[1] or 1)
    own = len(alone) // (how[1] or 1)
    kept = [row[0] for k, row in enumerate(together) if k % width < own]
    assert kept == np.ravel(alone).tolist()


def test_some_of_the_clients_keep_their_numbers_and_those_with_weights_have_the_same():
    f = clients()
    for _, batch, _ in f.steps(2, 0, 2):
        assert numbers(batch.take(np.array([2, 0]))) == [numbers(batch)[2], numbers(batch)[0]]
    rows = np.array([1, 3])
    assert of_steps(f.take(rows), 2, 0, 2) == np.array(of_steps(f, 2, 0, 2))[:, rows].tolist()
    found = clients([WeightedObjectives(np.arange(1.0, 5.0), 0.0)])
    assert numbers(found) == (np.arange(1.0, 5.0) * numbers(clients())).tolist()
