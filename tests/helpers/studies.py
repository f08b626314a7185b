"""Small studies, at least one a method, on which runs are compared to the bit."""

from tests.helpers import traits
from tests.helpers.algorithm_cases import GRAPHED, SERVED

PLAIN = ["data.clients=13", "data.features=23", "rounds=6", "stop.diverged=0"]
LOGISTIC = ["data=gaussian", "data.clients=13", "data.samples=11", "data.features=7", "rounds=5"]
CURVED = [*LOGISTIC, "stop.gradient=0.0"]
DIGITS = ["data=digits", "data.clients=13", "rounds=4", "stop.gradient=0.0"]
LONG = ["data=gaussian", "data.clients=13", "data.samples=3", "data.features=20011", "rounds=3"]  # reduced in slices
FLAKY = [
    *LOGISTIC,
    "rounds=8",
    "system.dropout=0.2",
    "system.deadline=0.25",
    "system.jitter=0.5",
    "system.latency={name='exponential',mean=0.05}",
    "system.speed={name='lognormal',median=1e3,sigma=1.0}",
    "system.bandwidth_up={name='pareto',scale=1e3,shape=1.5}",
]
AWAY = [
    *LOGISTIC,
    "rounds=9",
    "stop.gradient=0.0",
    "system.jitter=0.5",
    "system.latency={name='exponential',mean=0.05}",
    "system.speed={name='lognormal',median=1e3,sigma=1.0}",
    "system.passes=5",
    "asynchronous.arrivals=3",
    "asynchronous.staleness=4",
]
ABLE = [name for name in SERVED if traits.can_be_asynchronous(name)]
GRAPHS = {"dgd": "ring", "extra": "star", "gradient-tracking": "exponential"}  # the others run on a random graph
CHANGING = ["graph={name='erdos-renyi',redraw=true,loss=0.2}", *PLAIN]
STUDIES = {name: [f"algorithm={name}", *PLAIN] for name in SERVED} | {
    **{name: [f"algorithm={name}", f"graph={GRAPHS.get(name, 'erdos-renyi')}", *PLAIN] for name in GRAPHED},
    **{f"{name}, redrawn": [f"algorithm={name}", *CHANGING] for name in ("lt-admm", "fedgia-graph")},
    "dgd, redrawn": ["algorithm=dgd", "algorithm.order=adapt-combine", "dtype=float32", *CHANGING],
    "fedgia-graph, gram": ["algorithm=fedgia-graph", "algorithm.H=gram", "graph=exponential", *PLAIN],
    "fedepm-graph, clipped": [
        "algorithm=fedepm-graph",
        "algorithm.noise=clipped",
        "algorithm.noise_seed=5",
        "algorithm.clip=30",
        "system.speed={name='lognormal',median=1e3,sigma=1.0}",
        *CHANGING,
    ],
    "gradient-tracking, lossy": [
        "algorithm=gradient-tracking",
        "graph={name='complete',loss=0.5}",
        "system.jitter=0.5",
        "system.latency={name='exponential',mean=0.05}",
        "system.speed={name='lognormal',median=1e3,sigma=1.0}",
        "system.bandwidth_up={name='pareto',scale=1e3,shape=1.5}",
        *LOGISTIC,
    ],
    "fedgia, gram": ["algorithm.H=gram", "selection=cover", *PLAIN],
    "fedgia, adaptive": ["algorithm.adaptive=true", "algorithm.t=0.002", "algorithm.k0=2", *PLAIN],
    "fedgia, adaptive, compressed": [
        "algorithm.adaptive=true",
        "algorithm.t=9",
        "compress.down={name='topk',k=3}",
        "dtype=float32",
        *LOGISTIC,
    ],
    "feddcd": ["algorithm=feddcd", *LOGISTIC],
    "accfeddcd": ["algorithm=accfeddcd", *LOGISTIC],
    "feddcd, sgd": [
        "algorithm=feddcd",
        "algorithm.scaling=own",
        "algorithm.solver={name='sgd',batch_size=4}",
        *LOGISTIC,
    ],
    "feddcd, random": [
        "algorithm=feddcd",
        "algorithm.model=random",
        "algorithm.solver={name='newton',steps=2}",
        *LOGISTIC,
    ],
    "accfeddcd, svrg": [
        "algorithm=accfeddcd",
        "algorithm.model=random",
        "algorithm.scaling=own",
        "algorithm.schedule={name='log2',a=0.9}",
        "algorithm.solver={name='svrg',batch_size=4,epochs=2}",
        *LOGISTIC,
    ],
    "accfeddcd, adam": ["algorithm=accfeddcd", "algorithm.solver={name='adam',steps=5,batch_size=3}", *LOGISTIC],
    "newton": ["algorithm=newton", "stop.gradient=0.0", *PLAIN],
    "proxskip": ["algorithm=proxskip", *LOGISTIC],
    "proxskip, flaky": ["algorithm=proxskip", "algorithm.batch_size=4", *FLAKY],
    "fednova, partial": [
        "algorithm=fednova",
        "algorithm.epochs=2",
        "algorithm.batch_size=3",
        "system.partial=true",
        *FLAKY,
    ],
    "fedavg, partial": ["algorithm=fedavg", "algorithm.batch_size=3", "system.partial=true", *FLAKY],
    "fedepm": ["algorithm=fedepm", *LOGISTIC],
    "fedepm, clipped": ["algorithm=fedepm", "algorithm.noise=clipped", "algorithm.noise_seed=5", *LOGISTIC],
    "fednl": ["algorithm=fednl", "algorithm.compressor={name='topk',k='1n'}", *CURVED],
    "fednl, search": [
        "algorithm=fednl",
        "algorithm.compressor={name='randk',k='1n'}",
        "algorithm.option=A",
        "algorithm.line_search=true",
        *CURVED,
    ],
    "fednl-pp": ["algorithm=fednl-pp", "algorithm.compressor=natural", *CURVED],
    "sfedavg": ["algorithm=sfedavg", *LOGISTIC],
    "sfedprox": ["algorithm=sfedprox", *LOGISTIC],
    "fedavg, mini-batches": ["algorithm=fedavg", "algorithm.batch_size=5", "algorithm.epochs=2", *PLAIN],
    "fedopt, fedexp": [
        "algorithm=fedopt",
        "algorithm.server=fedexp",
        "algorithm.batch_size=4",
        "dtype=float32",
        *PLAIN,
    ],
    "flame": ["algorithm=flame", *DIGITS],
    "flame-dp": ["algorithm=flame-dp", "algorithm.noise_seed=2", *DIGITS],
    "flame, biased": ["algorithm=flame", "selection=biased", "selection.share=0.3", "selection.candidates=7", *DIGITS],
    "feddcd, greedy": [
        "algorithm=feddcd",
        "selection={name='greedy',count=4,candidates=8}",
        "algorithm.solver={name='gd',steps=3}",
        *LOGISTIC,
    ],
    "feddcd, importance": [
        "algorithm=feddcd",
        "algorithm.scaling=own",
        "selection={name='importance',count=4}",
        *LOGISTIC,
    ],
    "feddcd, by turns": [
        "algorithm=feddcd",
        "selection={name='cyclic',count=4,overlap=1,shuffled=true}",
        *LOGISTIC,
    ],
    "fedopt, importance": [
        "algorithm=fedopt",
        "algorithm.server=fedexp",
        "algorithm.batch_size=4",
        "selection={name='importance',share=0.4,power=0.5}",
        *FLAKY,
    ],
    "fedavg, power-of-choice": [
        "algorithm=fedavg",
        "selection={name='power-of-choice',count=3,candidates=7,batch_size=4}",
        *PLAIN,
    ],
    "fedadmm-deep, network": ["algorithm=fedadmm-deep", "problem=mlp", "problem.hidden=[9]", *DIGITS],
    "fedgia, long": ["algorithm=fedgia", *LONG],
    "fedepm, long": ["algorithm=fedepm", *LONG],
    "sfedprox, long": ["algorithm=sfedprox", *LONG, "dtype=float32"],
    "scaffold, float32": ["algorithm=scaffold", "algorithm.batch_size=4", "dtype=float32", *PLAIN],
    "fedavg, flaky": ["algorithm=fedavg", *FLAKY],
    "fedadmm, flaky": ["algorithm=fedadmm", *FLAKY],
    "fedepm, flaky": ["algorithm=fedepm", *FLAKY],
    "scaffold, flaky": ["algorithm=scaffold", *FLAKY],
    "fedadmm, masked": ["algorithm=fedadmm", "masks.sums=masked", "system.least=5", *FLAKY],
    "fedgia, masked": ["algorithm=fedgia", "masks.sums=masked", "masks.kind=vectors", "dtype=float32", *LONG],
    "fedavg, compressed": [
        "algorithm=fedavg",
        "compress.up={name='randk',k='0.3n'}",
        "compress.feedback=error",
        *FLAKY,
    ],
    "fedgia, compressed": [
        "algorithm=fedgia",
        "compress.up={name='topk',k=3}",
        "compress.down={name='dither',s=8}",
        *LOGISTIC,
    ],
    "feddcd, compressed": [
        "algorithm=feddcd",
        "algorithm.solver={name='gd',steps=3}",
        "compress.up={name='randseqk',k=2}",
        *FLAKY,
    ],
    "fedadmm, compressed": ["algorithm=fedadmm", "compress.up=natural", "dtype=float32", *PLAIN],
    "scaffold, compressed": ["algorithm=scaffold", "compress.down={name='topk',k=3}", "compress.up=natural", *PLAIN],
    "accfeddcd, flaky": ["algorithm=accfeddcd", "algorithm.solver={name='gd',steps=3}", *FLAKY],
    **{f"{name}, asynchronous": [f"algorithm={name}", *AWAY] for name in ABLE},
    "fedavg, asynchronous, last": [
        "algorithm=fedavg",
        "algorithm.aggregate=all",
        "algorithm.batch_size=4",
        "dtype=float32",
        *AWAY,
    ],
    "fedavg, asynchronous, compressed": ["algorithm=fedavg", "compress.up={name='randk',k='0.5n'}", *AWAY],
    "feddcd, asynchronous, random": [
        "algorithm=feddcd",
        "algorithm.scaling=own",
        "algorithm.model=random",
        "algorithm.solver={name='sgd',batch_size=4}",
        *AWAY,
    ],
}


def endless(name: str) -> list[str]:
    """The study without its number of rounds."""
    return [word for word in STUDIES[name] if not word.startswith("rounds=")]
