"""The covering set has every pair that is possible, and far fewer rows than the product."""

from itertools import combinations, product

import pytest

from tests.helpers.covering import covering, every_row, pairs
from tests.helpers.settings import ON_GRAPHS, WITH_SERVER, forbidden


@pytest.mark.parametrize("factors", [WITH_SERVER, ON_GRAPHS], ids=["with a server", "on graphs"])
@pytest.mark.parametrize("excluded", [forbidden, lambda one, other: False], ids=["forbidden pairs", "every pair"])
def test_every_pair_occurs_that_is_not_forbidden_and_no_other(factors, excluded):
    found = covering(factors, excluded)
    values = [[(name, value) for value in factors[name]] for name in factors]
    every = {pair for one, other in combinations(values, 2) for pair in product(one, other)}
    assert {pair for row in found for pair in pairs(row)} == {pair for pair in every if not excluded(*pair)}
    assert all(list(row) == list(factors) for row in found)
    assert found == covering(factors, excluded)
    everything = list(every_row(factors, excluded))
    assert len(found) < len(everything) / 3
    assert all(row in everything for row in found)


def test_a_factor_of_which_nothing_goes_with_the_others_is_an_error():
    with pytest.raises(ValueError, match="no b goes with"):
        covering({"a": ["1"], "b": ["1"], "c": ["1"]}, lambda one, other: "b" in (one[0], other[0]) and one[0] == "a")
