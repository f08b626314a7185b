"""The check by a mixed model: does it depend on a feature which method costs less?"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arena import decide
from benchmarks.arena.outcome import Case
from benchmarks.arena.results import FEW, by_workload
from mpifed.core.typing import Array

SCARCE = 3  # workloads with each value of a feature on which a method must run to be in the model


class Checked(NamedTuple):
    """Of a feature: its two values with the methods that the model has first, and the test of method × feature."""

    feature: str
    first: dict[str, str]
    methods: int
    statistic: float
    freedom: int
    p: float


def installed() -> bool:
    """Whether statsmodels is there."""
    try:
        import statsmodels  # noqa: F401
    except ImportError:
        return False
    return True


def checks(found: Sequence[Case], entries: decide.Entries, labels: Sequence[str], skew: float) -> list[Checked]:
    """The checks of all features under one score, those left out that too few workloads have."""
    costs = by_workload(found, labels, absolute)
    names = list(dict.fromkeys(one.workload for one in found))
    seen = [decide.features(entries[name], "", skew) for name in names]
    tried = [check(costs, [row[k] for row in seen], labels) for k in range(1, len(decide.FEATURES))]
    pairs = zip(decide.FEATURES[1:], tried, strict=True)
    return [one._replace(feature=feature) for feature, one in pairs if one is not None]


def absolute(one: Case, label: str) -> float:
    """The logarithm of a method's cost, at most that of MISS times the least."""
    return one.loss(label) + float(np.log(min(one.costs.values())))


def check(costs: Array, values: Sequence[str], labels: Sequence[str]) -> Checked | None:
    """The likelihood-ratio test of log cost ~ method × feature + (1 | workload) against method + feature."""
    from scipy.stats import chi2

    words = sorted(set(values))
    if len(words) != 2:
        return None
    second = np.array([value == words[1] for value in values])
    known = np.isfinite(costs)
    able = (known[second].sum(axis=0) >= SCARCE) & (known[~second].sum(axis=0) >= SCARCE)
    own = np.flatnonzero(able)
    if len(own) < 2 or len(values) < FEW:
        return None
    # Rows of those workloads and methods for which there is a cost.
    at, method = np.nonzero(known[:, own])
    y, feature = costs[:, own][at, method], second[at].astype(float)
    dummies = np.eye(len(own))[method]
    whole = np.column_stack([dummies, dummies * feature[:, None]])
    plain = np.column_stack([dummies, feature])
    more, less = (fitted(y, exog, at) for exog in (whole, plain))
    statistic = max(0.0, 2 * (float(more.llf) - float(less.llf)))
    freedom = len(own) - 1
    effects = np.asarray(more.fe_params)
    firsts = [effects[: len(own)], effects[: len(own)] + effects[len(own) :]]
    best = {word: labels[int(own[np.argmin(one)])] for word, one in zip(words, firsts, strict=True)}
    return Checked("", best, len(own), statistic, freedom, float(chi2.sf(statistic, freedom)))


def fitted(y: Array, exog: Array, groups: Array) -> Any:
    """The model by maximum likelihood, for the fixed effects differ."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    with warnings.catch_warnings():
        # Of a variance at its bound, 0, where workloads do not differ: the likelihood holds there too.
        warnings.simplefilter("ignore")
        return MixedLM(y, exog, groups).fit(reml=False)
