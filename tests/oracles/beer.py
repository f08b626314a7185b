"""BEER with full gradients.

Source: H. Zhao, B. Li, Z. Li, P. Richtárik, Y. Chi, "BEER: Fast O(1/T) rate for decentralized nonconvex optimization
with communication compression", 2022, arXiv 2201.13320, Algorithm 1.
"""

from . import motef


def run(clients, rounds, graph, *, compressor, gamma, eta=None):
    yield from motef.run(clients, rounds, graph, compressor=compressor, gamma=gamma, eta=eta, lam=1.0)
