"""Measures of how probabilities and means fit the labels: calibration error, observed over expected, ROC area."""

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block

BINS = 15  # of probabilities, of equal width, each with its upper end


def calibration_error(block: Block, P: Array, hit: Array) -> Array:
    """Compute Σ_k (d_k/d_i)·|fraction of hits in bin k − mean of the probabilities p (c, D) there|, by client: (c,).

    ``hit`` (c, D): whether the event of probability p happened. With few samples in a bin it is above 0 even for a
    perfect model.  Source: M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using
    Bayesian binning", doi:10.1609/aaai.v29i1.9602 (2015); 15 bins, and the predicted class of several: C. Guo, G.
    Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", arXiv:1706.04599 (2017).
    """
    P = to_numpy(P)
    c = len(P)
    differences = np.where(to_numpy(block.w) > 0, to_numpy(hit) - P.astype(float), 0)
    inner = np.linspace(0, 1, BINS + 1)[1:-1]
    bins = np.searchsorted(inner, P) + BINS * np.arange(c)[:, None]
    sums = np.bincount(bins.ravel(), weights=differences.ravel(), minlength=BINS * c).reshape(c, BINS)
    return block.xp.asarray(np.abs(sums).sum(axis=1) / block.sizes)


def observed_expected(block: Block, M: Array) -> Array:
    """Compute Σ_j b_j over the sum of the means m (c, D) that the model expects: (c,); NaN if that sum is 0."""
    xp = block.xp
    expected = xp.vecdot(block.w, M)
    observed = xp.vecdot(block.w, block.b)
    return xp.where(expected > 0, observed / xp.where(expected > 0, expected, 1.0), xp.nan)


def area_under_roc(block: Block, Z: Array) -> Array:
    """Compute the area under the ROC curve of scores z (c, D) for each client: (c,); NaN where one class is absent.

    Equal scores count 1/2. With P samples of label 1, N of label 0 and ranks r_j of scores, averaged over ties, it is
    (Σ_{b_j = 1} r_j − P(P + 1)/2)/(PN), from one sort.  Source: J. A. Hanley, B. J. McNeil, "The meaning and use of the
    area under a receiver operating characteristic (ROC) curve", doi:10.1148/radiology.143.1.7063747 (1982).
    """
    is_sample = to_numpy(block.w) > 0
    positive = is_sample & (to_numpy(block.b) > 0)
    scores = np.where(is_sample, to_numpy(Z), np.nan)  # NaN: padding is sorted last and is equal to nothing
    order = np.argsort(scores, axis=1, kind="stable")
    rising = np.take_along_axis(scores, order, axis=1)
    ones = np.take_along_axis(positive, order, axis=1)
    P = positive.sum(axis=1)
    N = is_sample.sum(axis=1) - P
    above = np.where(ones, twice_ranks(rising), 0).sum(axis=1) - P * (P - 1)
    return block.xp.asarray(np.where(P * N, above / (2 * np.maximum(P * N, 1)), np.nan))


def twice_ranks(rising: Array) -> Array:
    """Return twice the ranks 0, 1 … of rising numbers (c, D), averaged over ties: whole numbers."""
    positions = np.arange(rising.shape[1])
    begins = np.pad(rising[:, 1:] != rising[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    ends = np.pad(begins[:, 1:], ((0, 0), (0, 1)), constant_values=True)
    first = np.maximum.accumulate(np.where(begins, positions, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, positions, len(positions))[:, ::-1], axis=1)[:, ::-1]
    return first + last
