"""Gradient descent with the mean gradient of the clients that take part.

Source: A. Khaled, K. Mishchenko, P. Richtárik, "First analysis of local GD on heterogeneous data", 2019, arXiv
1909.04715, Algorithm 1 with a communication after every step. By default the step is 1/L with L = max L_i.
"""

from functools import partial

from . import local_gd

run = partial(local_gd.run, k0=1)
