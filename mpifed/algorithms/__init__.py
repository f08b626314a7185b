"""Algorithms by their classes: ``mpifed.algorithms.FedGiA(k0=5)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpifed.core.members import members

if TYPE_CHECKING:
    from mpifed.algorithms.accfeddcd import AccFedDCD as AccFedDCD
    from mpifed.algorithms.ad_admm import ADADMM as ADADMM
    from mpifed.algorithms.apfl import APFL as APFL
    from mpifed.algorithms.dgd import DGD as DGD
    from mpifed.algorithms.diana import Diana as Diana
    from mpifed.algorithms.ditto import Ditto as Ditto
    from mpifed.algorithms.ef21 import EF21 as EF21
    from mpifed.algorithms.extra import Extra as Extra
    from mpifed.algorithms.fedadmm import FedADMM as FedADMM
    from mpifed.algorithms.fedadmm_deep import FedADMMDeep as FedADMMDeep
    from mpifed.algorithms.fedadmm_insa import FedADMMInSa as FedADMMInSa
    from mpifed.algorithms.fedavg import FedAvg as FedAvg
    from mpifed.algorithms.fedbuff import FedBuff as FedBuff
    from mpifed.algorithms.feddcd import FedDCD as FedDCD
    from mpifed.algorithms.feddyn import FedDyn as FedDyn
    from mpifed.algorithms.fedepm import FedEPM as FedEPM
    from mpifed.algorithms.fedepm_graph import FedEPMGraph as FedEPMGraph
    from mpifed.algorithms.fedgia import FedGiA as FedGiA
    from mpifed.algorithms.fedgia_async import AsynchronousFedGiA as AsynchronousFedGiA
    from mpifed.algorithms.fedgia_graph import FedGiAGraph as FedGiAGraph
    from mpifed.algorithms.fednl import FedNL as FedNL
    from mpifed.algorithms.fednl_pp import FedNLPP as FedNLPP
    from mpifed.algorithms.fednova import FedNova as FedNova
    from mpifed.algorithms.fedopt import FedOpt as FedOpt
    from mpifed.algorithms.fedpd import FedPD as FedPD
    from mpifed.algorithms.fedprox import FedProx as FedProx
    from mpifed.algorithms.flame import Flame as Flame
    from mpifed.algorithms.flame_dp import FlameDP as FlameDP
    from mpifed.algorithms.gd import GD as GD
    from mpifed.algorithms.gradient_tracking import GradientTracking as GradientTracking
    from mpifed.algorithms.local_gd import LocalGD as LocalGD
    from mpifed.algorithms.lt_admm import LTADMM as LTADMM
    from mpifed.algorithms.marina import Marina as Marina
    from mpifed.algorithms.newton import Newton as Newton
    from mpifed.algorithms.pfedme import PFedMe as PFedMe
    from mpifed.algorithms.proxskip import ProxSkip as ProxSkip
    from mpifed.algorithms.scaffold import Scaffold as Scaffold
    from mpifed.algorithms.sfedavg import SFedAvg as SFedAvg
    from mpifed.algorithms.sfedprox import SFedProx as SFedProx
    from mpifed.algorithms.sisa import SISA as SISA
else:
    __getattr__, __dir__ = members("mpifed.algorithms", "mpifed.algorithms.base:Algorithm")
