"""FedADMM, FedAvg and FedProx as the authors' programs and section 5.3 of FedADMM have them."""

import math
from typing import Any, ClassVar

from mpifed.algorithms import fedadmm, fedavg, fedprox
from mpifed.extend import Array, Local
from mpifed.problems import logistic


class FedADMM(fedadmm.FedADMM):
    """FedADMM with σ_i = r0 r_i/(m log10(9 + k0)), as in the authors' program of 20 July 2022."""

    def sigma(self, f: Local) -> Array:
        return super().sigma(f) / math.log10(9 + self.k0)


class Fifth(logistic.Logistic):
    """Logistic regression with λ_max/5 in r_i, as in the program of 2023; with λ_max/4, r_i is a Lipschitz constant."""

    curvature: ClassVar[float] = 0.2


class FedAvg(fedavg.FedAvg):
    """FedAvg with γ_k = a/(m log2(k + 2)); a = 0.5 d gives 0.5 d/m for every m.  Source: fedadmm, section 5.3."""

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        """(3.16) with γ/m in place of γ."""
        return super().iterate(f, w, x, gamma / f.m, memory)


class FedProx(fedprox.FedProx):
    """FedProx with γ_k = a/(m log2(k + 2)); a = 0.5 d gives 0.5 d/m for every m.  Source: fedadmm, section 5.3."""

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        """(3.17) with γ/m in place of γ."""
        return super().iterate(f, w, x, gamma / f.m, memory)
