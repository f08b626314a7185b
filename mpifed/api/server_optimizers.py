"""Optimisers of FedOpt's server by their classes: ``mpifed.server_optimizers.Yogi(lr=0.03)``."""

from mpifed.algorithms.parts.server_optimizers import Adagrad, FedExP, ServerAdam, ServerMomentum, Yogi

__all__ = ["Adagrad", "FedExP", "ServerAdam", "ServerMomentum", "Yogi"]
