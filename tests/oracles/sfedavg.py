"""SFedAvg without noise: FedAvg with the step of FedEPM (38), averaged over a set of clients.

Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithm 3,
equations (34), (35), (37), (38): a local iteration is one gradient step, where SFedProx has several (36).
"""

from . import sfedprox


def run(clients, selections, **options):
    yield from sfedprox.run(clients, selections, mu=0.0, inner=1, **options)
