"""All methods: generated from the files in mpifed/algorithms by `python docs/build.py`."""

from typing import NamedTuple


class Method(NamedTuple):
    """Where in mpifed/algorithms the class of a method is, its title, and its colour, marker and line in pictures."""

    place: str
    title: str
    colour: str
    marker: int
    line: int


METHODS = {
    "accfeddcd": Method("accfeddcd:AccFedDCD", "AccFedDCD", "wine", 0, 1),
    "ad-admm": Method("ad_admm:ADADMM", "AD-ADMM", "vermilion", 4, 3),
    "apfl": Method("apfl:APFL", "APFL", "brown", 4, 4),
    "aug-dgm": Method("aug_dgm:AugDGM", "Aug-DGM", "sky", 2, 6),
    "beer": Method("beer:BEER", "BEER", "wine", 5, 6),
    "choco": Method("choco:Choco", "CHOCO-SGD", "wine", 4, 5),
    "dgd": Method("dgd:DGD", "DGD", "orange", 4, 2),
    "diana": Method("diana:Diana", "DIANA", "purple", 1, 2),
    "ditto": Method("ditto:Ditto", "Ditto", "brown", 6, 3),
    "ef21": Method("ef21:EF21", "EF21", "purple", 0, 1),
    "ef21-bc": Method("ef21_bc:EF21BC", "EF21-BC", "purple", 5, 5),
    "ef21-hb": Method("ef21_hb:EF21HB", "EF21-HB", "purple", 3, 6),
    "ef21-page": Method("ef21_page:EF21Page", "EF21-PAGE", "orange", 5, 5),
    "ef21-sgd": Method("ef21_sgd:EF21SGD", "EF21-SGD", "orange", 6, 6),
    "extra": Method("extra:Extra", "EXTRA", "orange", 0, 3),
    "fedadmm": Method("fedadmm:FedADMM", "FedADMM", "vermilion", 1, 0),
    "fedadmm-deep": Method("fedadmm_deep:FedADMMDeep", "FedADMM (deep)", "vermilion", 6, 1),
    "fedadmm-insa": Method("fedadmm_insa:FedADMMInSa", "FedADMM-InSa", "vermilion", 3, 4),
    "fedavg": Method("fedavg:FedAvg", "FedAvg", "black", 5, 0),
    "fedbuff": Method("fedbuff:FedBuff", "FedBuff", "sky", 4, 2),
    "feddcd": Method("feddcd:FedDCD", "FedDCD", "wine", 7, 0),
    "feddyn": Method("feddyn:FedDyn", "FedDyn", "green", 0, 1),
    "fedepm": Method("fedepm:FedEPM", "FedEPM", "purple", 6, 0),
    "fedepm-graph": Method("fedepm_graph:FedEPMGraph", "FedEPM, graph", "purple", 4, 4),
    "fedgia": Method("fedgia:FedGiA", "FedGiA", "blue", 0, 0),
    "fedgia-async": Method("fedgia_async:AsynchronousFedGiA", "FedGiA (async)", "blue", 2, 1),
    "fedgia-graph": Method("fedgia_graph:FedGiAGraph", "FedGiA, graph", "blue", 1, 2),
    "fednew": Method("fednew:FedNew", "FedNew", "green", 1, 5),
    "fednl": Method("fednl:FedNL", "FedNL", "green", 7, 3),
    "fednl-pp": Method("fednl_pp:FedNLPP", "FedNL-PP", "green", 3, 4),
    "fednova": Method("fednova:FedNova", "FedNova", "sky", 5, 3),
    "fedns": Method("fedns:FedNS", "FedNS", "green", 6, 6),
    "fedopt": Method("fedopt:FedOpt", "FedOpt", "black", 3, 2),
    "fedpd": Method("fedpd:FedPD", "FedPD", "green", 2, 0),
    "fedprox": Method("fedprox:FedProx", "FedProx", "sky", 4, 0),
    "flame": Method("flame:Flame", "FLAME", "brown", 1, 0),
    "flame-dp": Method("flame_dp:FlameDP", "FLAME-DP", "brown", 5, 2),
    "gd": Method("gd:GD", "GD", "black", 0, 3),
    "gradient-tracking": Method("gradient_tracking:GradientTracking", "Gradient tracking", "orange", 2, 4),
    "k-gt": Method("k_gt:KGT", "K-GT", "vermilion", 5, 5),
    "lbfgs": Method("lbfgs:LBFGS", "L-BFGS", "black", 4, 5),
    "led": Method("led:LED", "LED", "blue", 5, 4),
    "local-gd": Method("local_gd:LocalGD", "Local GD", "black", 2, 4),
    "lt-admm": Method("lt_admm:LTADMM", "LT-ADMM", "wine", 3, 2),
    "malenia": Method("malenia:Malenia", "Malenia", "blue", 3, 5),
    "marina": Method("marina:Marina", "MARINA", "purple", 2, 3),
    "motef": Method("motef:MoTEF", "MoTEF", "brown", 7, 5),
    "nesterov": Method("nesterov:Nesterov", "Nesterov", "black", 1, 6),
    "newton": Method("newton:Newton", "Newton", "green", 5, 2),
    "nids": Method("nids:NIDS", "NIDS", "blue", 4, 3),
    "pfedme": Method("pfedme:PFedMe", "pFedMe", "brown", 2, 1),
    "proxskip": Method("proxskip:ProxSkip", "ProxSkip", "orange", 1, 1),
    "q-fedavg": Method("q_fedavg:QFedAvg", "q-FedAvg", "sky", 1, 4),
    "rennala": Method("rennala:Rennala", "Rennala", "sky", 0, 5),
    "ringleader": Method("ringleader:Ringleader", "Ringleader", "blue", 6, 6),
    "ringmaster": Method("ringmaster:Ringmaster", "Ringmaster", "vermilion", 0, 6),
    "scaffold": Method("scaffold:Scaffold", "SCAFFOLD", "orange", 3, 0),
    "sfedavg": Method("sfedavg:SFedAvg", "SFedAvg", "black", 7, 1),
    "sfedprox": Method("sfedprox:SFedProx", "SFedProx", "sky", 3, 1),
    "sisa": Method("sisa:SISA", "SISA", "vermilion", 2, 2),
}
CHOICES = {name: f"mpifed.algorithms.{method.place}" for name, method in METHODS.items()}
