"""Logistic regression on two classes, for methods with second derivatives."""

import numpy as np

from mpifed.data.pool import Pool
from mpifed.problems.logistic import Logistic
from tests.helpers.algorithm_runs import Run
from tests.oracles import problems as written_out

COMPRESSORS = ["identity", *({"name": name, "k": "2n"} for name in ("topk", "randk", "randseqk")), "natural"]
COMPRESSORS.append({"name": "rank", "r": 1})


def classes(scale=1.0, wrong=5, m=8, n=6):
    """Two classes at the sides of a plane; every ``wrong``-th sample is at the other side."""
    X = scale * np.random.default_rng(1).standard_normal((12 * m, n))
    y = (X[:, 0] > 0).astype(float)
    y[::wrong] = 1 - y[::wrong]
    return Pool(X, y, None, np.full(m, 12))


def curved(algorithm, selection=None, mu=0.1):
    """The algorithm at work on them."""
    return Run(algorithm, Logistic(mu=mu, regulariser="whole"), data=classes(), selection=selection)


def derivatives(run, x, mu=0.1):
    """∇f(x), and ∇²f_i(x) of every client."""
    clients = [written_out.Logistic(A, b, mu, "whole") for A, b in run.samples()]
    return written_out.gradients(clients, [x] * run.m).mean(axis=0), [client.hessian(x) for client in clients]
