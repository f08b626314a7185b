"""Solvers by their classes: ``mpifed.solvers.Newton(tol=1e-6)``."""

from mpifed.algorithms.parts.local_solvers import GradientDescent, Newton
from mpifed.algorithms.parts.stochastic_solvers import SGD, SVRG, Adam

__all__ = ["SGD", "SVRG", "Adam", "GradientDescent", "Newton"]
