"""All methods: generated from the files in mpifed/algorithms by `python docs/build.py`."""

from typing import NamedTuple


class MethodEntry(NamedTuple):
    """The class of a method, "module:Class" in mpifed/algorithms, its title, and its look in pictures."""

    path: str
    title: str
    colour: str
    marker: int
    line: int


METHODS = {
    "accfeddcd": MethodEntry("accfeddcd:AccFedDCD", "AccFedDCD", "wine", 0, 1),
    "ad-admm": MethodEntry("ad_admm:ADADMM", "AD-ADMM", "vermilion", 4, 3),
    "aggregated-lbfgs": MethodEntry("aggregated_lbfgs:AggregatedLBFGS", "Aggregated L-BFGS", "black", 6, 7),
    "apfl": MethodEntry("apfl:APFL", "APFL", "brown", 4, 4),
    "aug-dgm": MethodEntry("aug_dgm:AugDGM", "Aug-DGM", "sky", 2, 6),
    "beer": MethodEntry("beer:BEER", "BEER", "wine", 5, 6),
    "choco": MethodEntry("choco:Choco", "CHOCO-SGD", "wine", 4, 5),
    "dgd": MethodEntry("dgd:DGD", "DGD", "orange", 4, 2),
    "diana": MethodEntry("diana:Diana", "DIANA", "purple", 1, 2),
    "ditto": MethodEntry("ditto:Ditto", "Ditto", "brown", 6, 3),
    "ef21": MethodEntry("ef21:EF21", "EF21", "purple", 0, 1),
    "ef21-bc": MethodEntry("ef21_bc:EF21BC", "EF21-BC", "purple", 5, 5),
    "ef21-hb": MethodEntry("ef21_hb:EF21HB", "EF21-HB", "purple", 3, 6),
    "ef21-page": MethodEntry("ef21_page:EF21Page", "EF21-PAGE", "orange", 5, 5),
    "ef21-sgd": MethodEntry("ef21_sgd:EF21SGD", "EF21-SGD", "orange", 6, 6),
    "extra": MethodEntry("extra:Extra", "EXTRA", "orange", 0, 3),
    "fedadmm": MethodEntry("fedadmm:FedADMM", "FedADMM", "vermilion", 1, 0),
    "fedadmm-deep": MethodEntry("fedadmm_deep:FedADMMDeep", "FedADMM (deep)", "vermilion", 6, 1),
    "fedadmm-insa": MethodEntry("fedadmm_insa:FedADMMInSa", "FedADMM-InSa", "vermilion", 3, 4),
    "fedavg": MethodEntry("fedavg:FedAvg", "FedAvg", "black", 5, 0),
    "fedbuff": MethodEntry("fedbuff:FedBuff", "FedBuff", "sky", 4, 2),
    "feddcd": MethodEntry("feddcd:FedDCD", "FedDCD", "wine", 7, 0),
    "feddyn": MethodEntry("feddyn:FedDyn", "FedDyn", "green", 0, 1),
    "fedepm": MethodEntry("fedepm:FedEPM", "FedEPM", "purple", 6, 0),
    "fedepm-graph": MethodEntry("fedepm_graph:FedEPMGraph", "FedEPM, graph", "purple", 4, 4),
    "fedgia": MethodEntry("fedgia:FedGiA", "FedGiA", "blue", 0, 0),
    "fedgia-async": MethodEntry("fedgia_async:AsynchronousFedGiA", "FedGiA (async)", "blue", 2, 1),
    "fedgia-graph": MethodEntry("fedgia_graph:FedGiAGraph", "FedGiA, graph", "blue", 1, 2),
    "fednew": MethodEntry("fednew:FedNew", "FedNew", "green", 1, 5),
    "fednl": MethodEntry("fednl:FedNL", "FedNL", "green", 7, 3),
    "fednl-pp": MethodEntry("fednl_pp:FedNLPP", "FedNL-PP", "green", 3, 4),
    "fednova": MethodEntry("fednova:FedNova", "FedNova", "sky", 5, 3),
    "fedns": MethodEntry("fedns:FedNS", "FedNS", "green", 6, 6),
    "fedopt": MethodEntry("fedopt:FedOpt", "FedOpt", "black", 3, 2),
    "fedpd": MethodEntry("fedpd:FedPD", "FedPD", "green", 2, 0),
    "fedprox": MethodEntry("fedprox:FedProx", "FedProx", "sky", 4, 0),
    "fedrep": MethodEntry("fedrep:FedRep", "FedRep", "wine", 2, 4),
    "fedvarp": MethodEntry("fedvarp:FedVARP", "FedVARP", "brown", 7, 6),
    "flame": MethodEntry("flame:Flame", "FLAME", "brown", 1, 0),
    "flame-dp": MethodEntry("flame_dp:FlameDP", "FLAME-DP", "brown", 5, 2),
    "gd": MethodEntry("gd:GD", "GD", "black", 0, 3),
    "gradient-tracking": MethodEntry("gradient_tracking:GradientTracking", "Gradient tracking", "orange", 2, 4),
    "k-gt": MethodEntry("k_gt:KGT", "K-GT", "vermilion", 5, 5),
    "lbfgs": MethodEntry("lbfgs:LBFGS", "L-BFGS", "black", 4, 5),
    "led": MethodEntry("led:LED", "LED", "blue", 5, 4),
    "local-gd": MethodEntry("local_gd:LocalGD", "Local GD", "black", 2, 4),
    "lt-admm": MethodEntry("lt_admm:LTADMM", "LT-ADMM", "wine", 3, 2),
    "malenia": MethodEntry("malenia:Malenia", "Malenia", "blue", 3, 5),
    "marina": MethodEntry("marina:Marina", "MARINA", "purple", 2, 3),
    "mifa": MethodEntry("mifa:MIFA", "MIFA", "wine", 2, 3),
    "motef": MethodEntry("motef:MoTEF", "MoTEF", "brown", 7, 5),
    "nesterov": MethodEntry("nesterov:Nesterov", "Nesterov", "black", 1, 6),
    "newton": MethodEntry("newton:Newton", "Newton", "green", 5, 2),
    "nids": MethodEntry("nids:NIDS", "NIDS", "blue", 4, 3),
    "pfedme": MethodEntry("pfedme:PFedMe", "pFedMe", "brown", 2, 1),
    "proxskip": MethodEntry("proxskip:ProxSkip", "ProxSkip", "orange", 1, 1),
    "q-fedavg": MethodEntry("q_fedavg:QFedAvg", "q-FedAvg", "sky", 1, 4),
    "rennala": MethodEntry("rennala:Rennala", "Rennala", "sky", 0, 5),
    "ringleader": MethodEntry("ringleader:Ringleader", "Ringleader", "blue", 6, 6),
    "ringmaster": MethodEntry("ringmaster:Ringmaster", "Ringmaster", "vermilion", 0, 6),
    "scaffold": MethodEntry("scaffold:Scaffold", "SCAFFOLD", "orange", 3, 0),
    "sfedavg": MethodEntry("sfedavg:SFedAvg", "SFedAvg", "black", 7, 1),
    "sfedprox": MethodEntry("sfedprox:SFedProx", "SFedProx", "sky", 3, 1),
    "sisa": MethodEntry("sisa:SISA", "SISA", "vermilion", 2, 2),
}
CHOICES = {name: f"mpifed.algorithms.{method.path}" for name, method in METHODS.items()}
