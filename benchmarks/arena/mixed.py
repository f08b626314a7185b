"""The check by a mixed model: does it depend on a feature which method costs less?"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import f

from benchmarks.arena import decide
from benchmarks.arena.outcome import Case
from benchmarks.arena.results import by_workload
from mpifed.core.typing import Array

SCARCE = 3  # workloads with each value of a feature on which a method must run to be in the model


class Checked(NamedTuple):
    """Of a feature: its two values with the methods that the model has first, and the test of method × feature."""

    feature: str
    first: dict[str, str]
    statistic: float
    freedom: tuple[int, int]
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
    """Wald's F test of the interaction in log cost ~ method × feature + (1 | workload), fitted by REML.

    Degrees of freedom: observations less workloads and what methods take of the rest. Where all methods run on all
    workloads, the test is exact: it is that of analysis of variance.
    """
    words = sorted(set(values))
    if len(words) != 2:
        return None
    second = np.array([value == words[1] for value in values])
    known = np.isfinite(costs)
    able = np.minimum(known[second].sum(axis=0), known[~second].sum(axis=0)) >= SCARCE
    own = np.flatnonzero(able)
    if len(own) < 2:
        return None
    # Rows of those workloads and methods for which there is a cost.
    at, method = np.nonzero(known[:, own])
    dummies = np.eye(len(own))[method]
    exog = np.column_stack([dummies, dummies * second[at, None]])
    effects, spread = fitted(costs[:, own][at, method], exog, at)
    # Differences between the methods' effects of the feature.
    contrast = np.column_stack([np.zeros((len(own) - 1, len(own) + 1)), np.eye(len(own) - 1)])
    contrast[:, len(own)] = -1
    apart = contrast @ effects
    freedom = len(own) - 1, len(at) - int(np.linalg.matrix_rank(np.column_stack([exog, np.eye(len(costs))[at]])))
    statistic = float(apart @ np.linalg.solve(contrast @ spread @ contrast.T, apart)) / freedom[0]
    firsts = [effects[: len(own)], effects[: len(own)] + effects[len(own) :]]
    best = {word: labels[int(own[np.argmin(one)])] for word, one in zip(words, firsts, strict=True)}
    return Checked("", best, statistic, freedom, float(f.sf(statistic, *freedom)))


def fitted(y: Array, exog: Array, groups: Array) -> tuple[Array, Array]:
    """The effects, and their covariance."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    with warnings.catch_warnings():
        # Of a variance at its bound, 0, where workloads do not differ: the model holds there too.
        warnings.simplefilter("ignore")
        found: Any = MixedLM(y, exog, groups).fit()
    fixed = exog.shape[1]
    return np.asarray(found.fe_params), np.asarray(found.cov_params())[:fixed, :fixed]
