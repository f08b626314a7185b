"""Solvers by their classes: ``mpifed.solvers.Newton(tol=1e-6)``."""

from mpifed.algorithms.local_solvers import GradientDescent, Newton
from mpifed.algorithms.stochastic_solvers import SGD, SVRG, Adam

__all__ = ["SGD", "SVRG", "Adam", "GradientDescent", "Newton"]
