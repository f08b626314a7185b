"""Clients on simulated devices."""

import numpy as np

from mpifed.algorithms.fedavg import FedAvg
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.features.simulated_time.system import System
from mpifed.federation.setup import RunSpec


def devices(sizes, seed=0, algorithm=None, **table):
    """The devices of ``table`` for clients of these sizes, for FedAvg with one local step and 10 parameters."""
    setup = RunSpec(None, algorithm or FedAvg(k0=1), seed, len(sizes), np.zeros(10))
    return SimulatedDevices(System.build(table, "system"), setup, np.array(sizes))
