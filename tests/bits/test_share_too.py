"""The other half of a share of the recorded bits, see test_share.py: a file is run by one process."""

from tests.bits.share import chosen, differing
from tests.bits.test_share import ALIKE


@ALIKE
def test_no_bit_of_other_studies_differs_from_those_recorded():
    assert differing(chosen()[1::2]) == []
