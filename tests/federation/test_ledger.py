"""What server and clients exchange is charged to the ledger."""

import numpy as np

from mpifed.federation.ledger import Ledger
from mpifed.federation.request import Request
from mpifed.federation.wire.stage import Postage


def test_real_arrays_are_charged_and_numbers_and_selections_are_not():
    ledger = Ledger()
    ledger.charge(Request("update", (np.zeros(5), 3, 0.1, np.arange(4))), 6, 40, Postage())
    assert (ledger.downloads, ledger.bytes_down, ledger.uploads, ledger.bytes_up) == (6, 6 * 40, 6, 6 * 40)
    assert ledger.exchanges == 1
    ledger.charge(Request("step", (0.5,)), 6, 0, Postage())
    assert ledger.exchanges == 1
    ledger.charge(Request("own", each=np.zeros((6, 3), np.float32)), 6, 0, Postage())
    assert (ledger.downloads, ledger.bytes_down) == (12, 6 * 40 + 6 * 3 * 4)
    assert ledger.exchanges == 2


def test_bits_are_those_of_the_bytes_and_of_a_compressed_reply_exact():
    ledger = Ledger()
    ledger.charge(Request("update", (np.zeros(5),), each=np.zeros((6, 3))), 6, 40, Postage())
    assert (ledger.bits_up, ledger.bits_down) == (8 * ledger.bytes_up, 8 * ledger.bytes_down) == (8 * 240, 8 * 384)
    ledger.charge(Request("update"), 6, 40, Postage(masked=(1000, 70)))
    assert (ledger.bits_up, ledger.bits_down) == (8 * 1240, 8 * 454)
    ledger.charge(Request("update"), 6, 400, Postage(bits=33))
    assert (ledger.bits_up, ledger.bytes_up, ledger.uploads) == (8 * 1240 + 6 * 33, 1240 + 6 * 5, 18)
    ledger.charge(Request("update", (np.zeros(5),)), 2, 0, Postage(down=(17, 6)))  # sent to all six
    assert (ledger.bits_down, ledger.bytes_down, ledger.downloads) == (8 * 454 + 6 * 17, 454 + 6 * 3, 12)
