"""Whether probabilities and means fit the labels: the expected calibration error, and observed over expected."""

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.data.blocks import Block

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
