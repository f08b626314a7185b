"""Studies of what has no row of its own: selection laws, budgets, losses, networks, sparse data, resumed runs."""

from typing import Any
from zlib import crc32

from tests.bits import studies
from tests.bits.studies import (
    ABSENT,
    BASE,
    BATCHES,
    FEATURES,
    GD,
    KERNELS,
    PROBLEMS,
    SEEDED,
    Study,
    Table,
    held,
    merged,
)


def by(method: str, **options: Any) -> Table:
    """A method with these options."""
    return {"algorithm": {"name": method, **options}}


def chosen(name: str, **options: Any) -> Table:
    """A selection."""
    return {"selection": {"name": name, **options}}


LEAST, LOGISTIC, CLASSES = (PROBLEMS[name] for name in ("least-squares", "logistic", "softmax"))
AVG, IN_BATCHES = by("fedavg"), by("fedavg", **BATCHES)
TIMES = {"bandwidth_up": {"name": "pareto", "scale": 1e3, "shape": 1.5}, "latency": {"name": "constant", "value": 0.01}}
POSITIVE = {"data": {"name": "gaussian", "clients": 8, "samples": 7, "features": 4, "task": "positive"}}
IMAGES = {"data": {"name": "images", "clients": 4, "samples": 5, "size": 32, "channels": 1, "classes": 3}}
QUADRATIC = {"data": {"name": "quadratic", "clients": 8, "features": 5}}
SPARSE = {"data": held("logistic", sparse=True)}
MLP = {"data": CLASSES["data"], "problem": {"name": "mlp", "hidden": [4]}}
MODULE = {"data": CLASSES["data"], "problem": {"name": "torch", "module": "tests.bits.network:small"}}
PRIVATE = {"privacy": FEATURES["private"]["privacy"]}
HEADS = {"personal": ["head.*"], "record": {"personal": True}}
DISCRETE = "distributed-discrete-gaussian"
TOP = {"up": {"name": "topk", "k": 2}, "feedback": "error"}
VECTORS = {"kind": "vectors", "sums": "masked", "bits": 40, "fraction": 20}
SCORES = {"space": "samples"}
MANY = {
    "problem": "least-squares",
    "data": {"name": "linreg-noniid", "clients": 8, "least": 9, "most": 30, "features": 6},
}
TABLES: dict[str, tuple[Table, ...]] = {
    "numpy/importance": (LOGISTIC, by("feddcd", scaling="own"), chosen("importance", count=4)),
    "numpy/odds": (LOGISTIC, AVG, chosen("importance", power=0.5)),
    "numpy/biased": (LOGISTIC, AVG, chosen("biased", count=3, candidates=6, batch_size=3)),
    "numpy/power-of-choice": (LOGISTIC, by("scaffold"), chosen("power-of-choice", count=3, candidates=6)),
    "numpy/greedy": (LOGISTIC, by("feddcd", solver=GD), chosen("greedy", count=3, candidates=6)),
    "numpy/cyclic": (LOGISTIC, by("feddcd"), chosen("cyclic", count=4, overlap=1, shuffled=True)),
    "numpy/distant": (LOGISTIC, by("fedadmm"), {"system": {**ABSENT, **TIMES, "dropout": 0.5, "least": 3}}),
    "numpy/partial": (LOGISTIC, by("fednova", **BATCHES), {"system": {**ABSENT, "partial": True}}),
    "numpy/budget": (LOGISTIC, by("fedepm", **SEEDED), {"compress": {"up": "natural"}}),
    "numpy/budget-of-sums": (LOGISTIC, by("flame-dp", noise_seed=3, seen="sum", colluding=2), {"masks": {"bits": 48}}),
    "numpy/private-bound": (LOGISTIC, AVG, PRIVATE, {"privacy": {"quantile": 0.5, "count_noise": 2.0}}),
    "numpy/private-poisson": (LOGISTIC, AVG, PRIVATE, {"selection": {"name": "poisson", "share": 0.4}}),
    "numpy/private-integers": (
        LOGISTIC,
        AVG,
        PRIVATE,
        {"privacy": {"mechanism": DISCRETE}, "masks": {"sums": "masked", "bits": 16}},
    ),
    "numpy/private-heads": (MLP, by("scaffold"), PRIVATE, HEADS, {"privacy": {"per": "layer"}}),
    "numpy/scores": (LOGISTIC, by("fedadmm", inner_max=4), SCORES),
    "numpy/scores-float32": (LOGISTIC, by("scaffold"), SCORES, {"dtype": "float32"}),
    "numpy/scores-momentum": (LOGISTIC, by("fedavg", optimizer="momentum"), SCORES, FEATURES["weights"]),
    "numpy/scores-classes": (CLASSES, by("apfl"), SCORES),
    "numpy/scores-batches": (LOGISTIC, by("scaffold", **BATCHES), SCORES, {"dtype": "float32"}),
    "numpy/hessians": (MANY, by("fedadmm", inner_max=4)),
    "compiled/scores": (LEAST, by("fedpd"), SCORES),
    "numpy/certify": (LEAST, by("fedgia", certify=True)),
    "numpy/certify-dual": (LOGISTIC, by("feddcd", certify=True)),
    "numpy/error-feedback": (LOGISTIC, AVG, {"compress": TOP}),
    "numpy/mask-vectors": (LOGISTIC, AVG, {"masks": VECTORS}),
    "numpy/seldom": (LOGISTIC, by("fedgia"), {"evaluate": {"every": 2}, "record": {"models": 2}, "rounds": 5}),
    "numpy/one-block": (LOGISTIC, AVG, {"block_bytes": 1_000_000}),
    "numpy/tree": (LOGISTIC, by("fedgia"), {"reduction": "tree"}),
    "numpy/slices": (LOGISTIC, by("fedgia"), {"reduction": "slices", "dtype": "float32"}),
    "numpy/sparse": (AVG, SPARSE),
    "numpy/sparse-gram": (by("fedgia", H="gram"), SPARSE),
    "numpy/sparse-hessians": (by("fednl"), SPARSE),
    "compiled/sparse-hessians": (by("newton"), SPARSE),
    "tensors/sparse": (IN_BATCHES, SPARSE),
    "numpy/nonconvex": ({"data": LOGISTIC["data"], "problem": "nonconvex-logistic"}, AVG),
    "numpy/svm": ({"data": LOGISTIC["data"], "problem": "svm"}, AVG),
    "numpy/huber": ({"data": LEAST["data"], "problem": "huber"}, by("fedgia", H="gram")),
    "numpy/quadratic": (QUADRATIC, by("accfeddcd")),
    "numpy/cox": (POSITIVE, by("newton"), {"problem": {"name": "cox", "lam": 0.1}}),
    "numpy/poisson": (POSITIVE, by("fednl", line_search=True), {"problem": "poisson"}),
    "numpy/gamma": (POSITIVE, by("newton"), {"problem": {"name": "gamma", "lam": 0.1}}),
    "numpy/mlp": (MLP, IN_BATCHES),
    "network/module": (MODULE, IN_BATCHES),
    "network/module-alone": (MODULE, by("flame", batch_size=3), {"problem": {"batched": False}}),
    "network/module-on-tensors": (MODULE, IN_BATCHES, {"kernels": "torch", "dtype": "float32"}),
    "network/module-unseen": (
        MODULE,
        by("ditto"),
        FEATURES["personal"],
        {"evaluate": {"unseen": 2, "unseen_step": 0.1}},
    ),
    "network/cnn": (IMAGES, IN_BATCHES, {"problem": "cnn", "dtype": "float32"}),
}
RESUMED = [("fedadmm", "plain"), ("scaffold", "compress"), ("fedavg", "asynchronous"), ("gradient-tracking", "graph")]
RESUMED += [("fedadmm", "masks"), ("flame", "absent"), ("ditto", "personal"), ("fednl", "plain"), ("fedepm", "weights")]
RESUMED += [("scaffold", "private"), ("fedrep", "at-home")]


def special() -> dict[str, Study]:
    """These studies by name; ``network`` stands for networks of torch with any kernels."""
    found = {}
    for name, tables in TABLES.items():
        own = KERNELS.get(name.partition("/")[0], "numpy")
        found[f"special/{name}"] = Study(merged(BASE, {"kernels": own}, *tables))
    for method, feature in RESUMED:
        problem = "least-squares" if feature == "plain" and method == "fedadmm" else "logistic"
        table = studies.made(method, feature, studies.OPTIONS.get(method, [{}])[0], problem)
        whole = f"special/numpy/{method}-{feature}-whole"
        found[whole] = Study(merged(table, {"kernels": "numpy", "rounds": 4}))
        found[whole.replace("whole", "resumed")] = found[whole]._replace(until=2, twin=whole)
    first, second = (merged(BASE, LOGISTIC, by(name), {"kernels": "numpy"}) for name in ("fedadmm", "scaffold"))
    found["special/numpy/start"] = Study(second, first=first)
    return found


def on_ranks(name: str) -> bool:
    """Whether a study runs on three ranks too: all of numpy, all special and plain ones, a fifth of the others."""
    return "/numpy/" in name or name.endswith("/plain") or name.startswith("special") or crc32(name.encode()) % 5 == 0


def every() -> dict[str, Study]:
    """All studies, by name."""
    found = studies.pairs() | studies.crossed() | special()
    return dict(sorted(found.items()))
