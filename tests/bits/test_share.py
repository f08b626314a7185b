"""Half of a share of the recorded bits, on one rank; another process takes the other half, see test_share_too.py."""

import pytest

from tests.bits.record import others
from tests.bits.share import chosen, differing
from tests.bits.special import RESUMED, TABLES
from tests.bits.studies import FEATURES, methods

ALIKE = pytest.mark.skipif(bool(others("numpy")), reason=f"bits hold elsewhere: {others('numpy')}")


@ALIKE
def test_no_bit_of_some_studies_differs_from_those_recorded():
    assert differing(chosen()[::2]) == []


def test_they_have_every_method_and_every_feature_alone():
    parts = [name.split("/") for name in chosen()]
    assert {method for method, *_ in parts} == {*methods(), "special"}
    assert {feature for *_, feature in parts} >= FEATURES.keys()
    own = {name.removeprefix("numpy/") for name in TABLES if name.startswith("numpy/")}
    own |= {f"{method}-{feature}-resumed" for method, feature in RESUMED} | {"start"}
    assert own <= {feature for method, _, feature in parts if method == "special"}
