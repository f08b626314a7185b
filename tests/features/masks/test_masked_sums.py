"""Sums under masks: equal to the bit to those without, and nothing to be learned from a single upload."""

from itertools import pairwise

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.features.masks.feature import MaskedSums, add_masks, make_draw, sum_rows, unmask
from mpifed.features.masks.masks import Masks
from mpifed.federation.request import MASKED, Request
from mpifed.federation.setup import RunSpec

M, N = 9, 40
SETUP = RunSpec(None, None, 0, M, np.zeros(N))
FIXED = Masks().fixed_point


def request(to=None, peers=None, last=None):
    return Request("update", to=to, reduce=MASKED, last=last, key=(3, 1), transforms={MaskedSums.name: peers})


def uploads(seed=0, size=1.0):
    return size * np.random.default_rng(seed).standard_normal((M, N))


def hosted(asked, X, cuts, sums="masked", **options):
    """The sums of hosts with the clients between ``cuts``, added up."""
    masks, total = Masks(sums=sums, **options), np.zeros(N, np.uint64)
    for lo, hi in pairwise(cuts):
        ids = np.arange(lo, hi) if asked.to is None or asked.last else np.intersect1d(asked.to, np.arange(lo, hi))
        called = np.arange(M) if asked.to is None else asked.to
        total += sum_rows(MaskedSums(SETUP, masks), asked, X[ids], ids, called)[0]
    return unmask(MaskedSums(SETUP, masks), asked, total)


CALLS = {
    "all": request(),
    "some": request(np.array([1, 4, 5, 8])),
    "last uploads of all, some new": request(np.array([0, 2, 7]), last="z"),
    "some dropped out": request(np.array([1, 5, 8]), peers=np.array([0, 1, 4, 5, 8])),
    "of all asked, some dropped out": request(np.array([0, 3, 4]), peers=np.arange(M), last="z"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("options", [{}, {"bits": 32, "fraction": 20}, {"bits": 61, "fraction": 44}])
def test_the_masked_sum_is_the_unmasked_one_to_the_bit(name, options):
    """On one host and on several, and equal to the sum of the rounded uploads as Python's integers."""
    asked, X, fraction = CALLS[name], uploads(), Masks(**options).fraction
    summed = X if asked.to is None or asked.last else X[asked.to]
    exact = [sum(int(q) for q in column) * 2.0**-fraction for column in np.rint(np.ldexp(summed, fraction)).T]
    for cuts in ([0, M], [0, 1, 4, M], list(range(M + 1))):
        for sums in ("masked", "fixed-point"):
            assert hosted(asked, X, cuts, sums, **options).tolist() == exact


def masked(seed, X, key=(3, 1), client=2):
    """What one client sends."""
    sent = FIXED.encode(X[[client]])
    add_masks(sent, np.array([client]), np.arange(M), make_draw(SETUP._replace(seed=seed), key, X.shape[1]))
    return sent[0]


def test_a_single_upload_looks_uniform():
    """Every bit is one half of the time 1, and bytes are as frequent as those of a fair draw (chi-square, 6 σ).

    So is every bit of what is left of it less any other upload, whatever its size: no guess is better than another.
    """
    sent = masked(0, np.zeros((M, 20_000))).view(np.uint8)  # an upload that could not be plainer
    ones = np.unpackbits(sent.reshape(-1, 8), axis=1).sum(axis=0, dtype=int)
    assert np.abs(ones - 10_000).max() < 6 * np.sqrt(5_000)
    counts = np.bincount(sent, minlength=256)
    expected = counts.sum() / 256
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 6 * np.sqrt(2 * 255)
    for size in (1.0, 1e6):
        left = masked(0, uploads(1)) - FIXED.encode(uploads(2, size)[[2]])[0]
        assert np.abs(np.unpackbits(left.view(np.uint8)).mean() - 0.5) < 6 * np.sqrt(0.25 / (64 * N))


def test_no_mask_is_used_twice_and_without_those_of_clients_that_dropped_out_the_sum_is_lost():
    """Else the difference of two uploads would be that of two models."""
    X = uploads()
    sent = [masked(0, X, key=key).tobytes() for key in ((1, 0), (1, 1), (2, 0))]
    sent += [masked(0, X, client=5).tobytes(), masked(1, X).tobytes()]
    assert len(set(sent)) == len(sent)
    asked, masks = CALLS["some dropped out"], Masks(sums="masked")
    sent = sum_rows(MaskedSums(SETUP, masks), asked, uploads()[asked.to], asked.to, asked.to)[0]
    blind = unmask(MaskedSums(SETUP, masks), request(asked.to), sent)
    assert np.abs(blind - uploads()[asked.to].sum(axis=0)).min() > 1


def test_an_entry_that_is_too_large_is_refused_and_the_advice_works():
    X = uploads()
    X[4, 7] = -3e9
    refused = {
        r"masks.fraction = 32 is wrong: the upload of client 4 has an entry of size 3e\+09, and a sum of 9 clients in "
        r"64 bits takes entries up to 2.39e\+08; it must be at most 28": {},
        r"masks\.fraction = 29 is wrong": {"fraction": 29},
        r"diverge, or masks\.bits is too small": {"bits": 32},
    }
    for told, options in refused.items():
        with pytest.raises(UserError, match=told):
            hosted(request(), X, [0, M], **options)
    assert hosted(request(), X, [0, M], fraction=28) == pytest.approx(X.sum(axis=0), abs=1e-6)
