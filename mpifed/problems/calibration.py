"""Whether probabilities and means fit the labels: the expected calibration error, and observed over expected."""

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block

BINS = 15  # of probabilities, of one width, each with its upper end


def calibration_error(block: Block, P: Array, hit: Array) -> Array:
    """Σ_k (d_k/d_i)·|share of hits in bin k − mean of the probabilities p (c, D) in it|, for each client alone: (c,).

    ``hit`` (c, D): whether what has the probability p happened. With few samples in a bin it is above 0 for a perfect
    model too.  Source: M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using
    Bayesian binning", doi:10.1609/aaai.v29i1.9602 (2015); 15 bins, and the predicted class of several: C. Guo, G.
    Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", arXiv:1706.04599 (2017).
    """
    P = to_numpy(P)
    c = len(P)
    away = np.where(to_numpy(block.w) > 0, to_numpy(hit) - P.astype(float), 0)
    inner = np.linspace(0, 1, BINS + 1)[1:-1]
    bins = np.searchsorted(inner, P) + BINS * np.arange(c)[:, None]
    sums = np.bincount(bins.ravel(), weights=away.ravel(), minlength=BINS * c).reshape(c, BINS)
    return block.xp.asarray(np.abs(sums).sum(axis=1) / block.sizes)


def observed_expected(block: Block, M: Array) -> Array:
    """Σ_j b_j over Σ_j of the means m (c, D) that the model has for the labels: (c,); NaN where that is 0."""
    xp = block.xp
    expected = xp.vecdot(block.w, M)
    observed = xp.vecdot(block.w, block.b)
    return xp.where(expected > 0, observed / xp.where(expected > 0, expected, 1.0), xp.nan)


def area_under_roc(block: Block, Z: Array) -> Array:
    """The area at scores z (c, D), for each client alone: (c,); equal scores count 1/2, NaN where one class is absent.

    With P samples of label 1, N of label 0 and ranks r_j in the order of scores, those of equal ones their mean, it is
    (Σ_{b_j = 1} r_j − P(P + 1)/2)/(PN), from one sort.  Source: J. A. Hanley, B. J. McNeil, "The meaning and use of the
    area under a receiver operating characteristic (ROC) curve", doi:10.1148/radiology.143.1.7063747 (1982).
    """
    real = to_numpy(block.w) > 0
    positive = real & (to_numpy(block.b) > 0)
    scores = np.where(real, to_numpy(Z), np.nan)  # padding comes last, and is equal to nothing
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    ones = np.take_along_axis(positive, order, axis=1)
    P = positive.sum(axis=1)
    N = real.sum(axis=1) - P
    above = np.where(ones, twice_ranks(ranked), 0).sum(axis=1) - P * (P - 1)
    return block.xp.asarray(np.where(P * N, above / (2 * np.maximum(P * N, 1)), np.nan))


def twice_ranks(ranked: Array) -> Array:
    """Twice the ranks 0, 1 … of rising numbers (c, D), those of equal ones their mean: whole numbers."""
    places = np.arange(ranked.shape[1])
    begins = np.pad(ranked[:, 1:] != ranked[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    ends = np.pad(begins[:, 1:], ((0, 0), (0, 1)), constant_values=True)
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, places, len(places))[:, ::-1], axis=1)[:, ::-1]
    return first + last
