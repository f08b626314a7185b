"""Solvers by their classes: ``mpifed.solvers.NewtonSolver(tol=1e-6)``."""

from mpifed.algorithms.parts.local_solvers import GradientDescent, NewtonSolver
from mpifed.algorithms.parts.stochastic_solvers import SVRG, AdamSolver, SGDSolver

__all__ = ["SVRG", "AdamSolver", "GradientDescent", "NewtonSolver", "SGDSolver"]
