"""Small studies, at least one a method, on which runs are compared to the bit."""

from tests.helpers import traits
from tests.helpers.algorithm_cases import GRAPHED, SERVED

SPEED = "system.speed={name='lognormal',median=1e3,sigma=1.0}"
LATE = "system.jitter=0.5 system.latency={name='exponential',mean=0.05} " + SPEED
SLOW = f"{LATE} system.bandwidth_up={{name='pareto',scale=1e3,shape=1.5}}"
GAUSSIAN = "data=gaussian data.clients=13"
WORDS = {
    "plain": "data.clients=13 data.features=23 rounds=6 stop.diverged=0",
    "logistic": f"{GAUSSIAN} data.samples=11 data.features=7 rounds=5",
    "curved": f"{GAUSSIAN} data.samples=11 data.features=7 rounds=5 stop.gradient=0.0",
    "scores": f"{GAUSSIAN} data.samples=7 data.features=40 rounds=5 stop.gradient=0.0 space=samples",
    "digits": "data=digits data.clients=13 rounds=4 stop.gradient=0.0",
    "long": f"{GAUSSIAN} data.samples=3 data.features=20011 rounds=3",  # reduced in slices
    "attacked": f"{GAUSSIAN} data.samples=11 data.features=7 rounds=6 selection.share=0.8 stop.gradient=0.0",
    "flaky": f"{GAUSSIAN} data.samples=11 data.features=7 rounds=8 system.dropout=0.2 system.deadline=0.25 {SLOW}",
    "away": f"{GAUSSIAN} data.samples=11 data.features=7 rounds=9 stop.gradient=0.0 {LATE} system.passes=5 "
    "asynchronous.arrivals=3 asynchronous.staleness=4",
    "changing": "data.clients=13 data.features=23 rounds=6 stop.diverged=0 "
    "graph={name='erdos-renyi',redraw=true,loss=0.2}",
}
GRAPHS = {"dgd": "ring", "extra": "star", "gradient-tracking": "exponential"}  # the others run on a random graph
ABLE = [name for name in SERVED if traits.can_be_asynchronous(name)]
SOLVED = "algorithm.solver={name='gd',steps=3}"
TABLES = {  # the method stands before the comma
    "plain": dict.fromkeys(SERVED, "")
    | {name: f"graph={GRAPHS.get(name, 'erdos-renyi')}" for name in GRAPHED}
    | {
        "fedgia-graph, gram": "algorithm.H=gram graph=exponential",
        "fedgia, gram": "algorithm.H=gram selection=cover",
        "fedgia, adaptive": "algorithm.adaptive=true algorithm.t=0.002 algorithm.k0=2",
        "newton": "stop.gradient=0.0",
        "newton, cox": "problem={name='cox',lam=0.1} stop.gradient=0.0",
        "fedgia, cox": "problem={name='cox',ties='breslow'} algorithm.t=1",
        "fedgia, huber": "problem=huber algorithm.H=gram algorithm.t=1",
        "fedavg, mini-batches": "algorithm.batch_size=5 algorithm.epochs=2",
        "fedavg, merged": "algorithm.batch_size=4 algorithm.epochs=1.5 algorithm.last_batch=merge",
        "fedopt, fedexp": "algorithm.server=fedexp algorithm.batch_size=4 dtype=float32",
        "fedavg, power-of-choice": "selection={name='power-of-choice',count=3,candidates=7,batch_size=4}",
        "scaffold, float32": "algorithm.batch_size=4 dtype=float32",
        "fedadmm, compressed": "compress.up=natural dtype=float32",
        "scaffold, private": "masks.sums=masked privacy={clip=0.1,noise_multiplier=1.0,quantile=0.7,count_noise=0.9,"
        "noise_seed=3}",
        "scaffold, compressed": "compress.down={name='topk',k=3} compress.up=natural",
    },
    "logistic": dict.fromkeys(["feddcd", "accfeddcd", "fedepm", "proxskip", "sfedavg", "sfedprox"], "")
    | {
        "gradient-tracking, lossy": f"graph={{name='complete',loss=0.5}} {SLOW}",
        "fedgia, adaptive, compressed": "algorithm.adaptive=true algorithm.t=9 compress.down={name='topk',k=3} "
        "dtype=float32",
        "feddcd, sgd": "algorithm.scaling=own algorithm.solver={name='sgd',batch_size=4}",
        "feddcd, random": "algorithm.model=random algorithm.solver={name='newton',steps=2}",
        "accfeddcd, svrg": "algorithm.model=random algorithm.scaling=own algorithm.eta={name='log2',a=0.9} "
        "algorithm.solver={name='svrg',batch_size=4,epochs=2}",
        "accfeddcd, adam": "algorithm.solver={name='adam',steps=5,batch_size=3}",
        "fedepm, clipped": "algorithm.noise=clipped algorithm.noise_seed=5",
        "feddcd, greedy": "selection={name='greedy',count=4,candidates=8} " + SOLVED,
        "feddcd, importance": "algorithm.scaling=own selection={name='importance',count=4}",
        "feddcd, by turns": "selection={name='cyclic',count=4,overlap=1,shuffled=true}",
        "fedgia, compressed": "compress.up={name='topk',k=3} compress.down={name='dither',s=8}",
    },
    "curved": {
        "fednl": "algorithm.compressor={name='topk',k='1n'}",
        "fednl, poisson": "problem=poisson algorithm.line_search=true",
        "fednl, search": "algorithm.compressor={name='randk',k='1n'} algorithm.option=A algorithm.line_search=true",
        "fednl-pp": "algorithm.compressor=natural",
    },
    "digits": {
        "flame": "",
        "flame-dp": "algorithm.noise_seed=2",
        "flame, biased": "selection=biased selection.share=0.3 selection.candidates=7",
        "fedavg, at home": "problem={name='mlp',hidden=[9]} personal=['head.*'] record.personal=true masks={} "
        "evaluate.unseen=2 evaluate.unseen_step=0.1 algorithm.batch_size=4",
        "scaffold, at home": "problem={name='mlp',hidden=[9]} personal=['hidden.*'] compress.up={name='topk',k='0.2n'} "
        "compress.down=natural record.personal=true",
        "fedavg, private": "problem={name='mlp',hidden=[9]} personal=['head.*'] selection={name='poisson',share=0.2} "
        "privacy={clip=0.01,noise_multiplier=0.5,per='layer',noise_seed=3}",
        "fedadmm-deep, network": "problem=mlp problem.hidden=[9]",
    },
    "scores": {
        "fedavg, scores": "objective.weights=samples dtype=float32 selection.share=0.4 problem.mu=0.1",
        "fedadmm, scores": "algorithm.inner_max=6",
        "scaffold, scores": "compress.up=natural",
        "apfl, scores": "dtype=float32 system.partial=true system.deadline=0.3 system.speed=100",
    },
    "long": {
        "fedgia, long": "",
        "fedepm, long": "",
        "sfedprox, long": "dtype=float32",
        "fedgia, masked": "masks.sums=masked masks.kind=vectors dtype=float32",
        "fedavg, trimmed": "attack=little attack.clients=0.3 robust=trimmed-mean robust.share=0.2 robust.bucket=2",
        "gd, attacked": "attack=inner-product dtype=float32",
    },
    "attacked": {
        "fedavg, median": "attack=random attack.clients=3 robust=median algorithm.batch_size=4",
        "gd, clipped": "attack=sign-flip robust={name='centred-clipping',radius=0.5,steps=2,bucket=2}",
        "fedopt, krum": "attack=labels attack.clients=0.3 robust=krum robust.share=0.3",
        "fedprox, geometric": "attack={name='little',clients=0.3,z=2.0} robust=geometric-median robust.bucket=3",
    },
    "flaky": dict.fromkeys([f"{name}, flaky" for name in ("fedavg", "fedadmm", "fedepm", "scaffold")], "")
    | {
        "proxskip, flaky": "algorithm.batch_size=4",
        "fednova, partial": "algorithm.epochs=2 algorithm.batch_size=3 system.partial=true",
        "fedavg, partial": "algorithm.batch_size=3 system.partial=true",
        "fedopt, importance": "algorithm.server=fedexp algorithm.batch_size=4 "
        "selection={name='importance',share=0.4,power=0.5}",
        "fedadmm, masked": "masks.sums=masked system.least=5",
        "fedavg, compressed": "compress.up={name='randk',k='0.3n'} compress.feedback=error",
        "feddcd, compressed": SOLVED + " compress.up={name='randseqk',k=2}",
        "accfeddcd, flaky": SOLVED,
        "feddyn, poisson": "selection={name='poisson',share=0.15} algorithm.batch_size=4",
    },
    "away": dict.fromkeys([f"{name}, asynchronous" for name in ABLE], "")
    | {
        "fedavg, asynchronous, last": "algorithm.aggregate=all algorithm.batch_size=4 dtype=float32",
        "fedavg, asynchronous, compressed": "compress.up={name='randk',k='0.5n'}",
        "malenia, asynchronous, stopped": "algorithm.stop=true algorithm.batch_size=4",
        "malenia, asynchronous, many": "algorithm.S=20 algorithm.batch_size=4 dtype=float32",
        "ringleader, asynchronous, batch": "algorithm.batch_size=4 dtype=float32",
        "ringmaster, asynchronous, stopped": "algorithm.R=2 algorithm.stop=true algorithm.batch_size=4",
        "rennala, asynchronous, stopped": "algorithm.B=16 algorithm.stop=true algorithm.batch_size=4",
        "rennala, asynchronous, batch": "algorithm.B=9 dtype=float32",
        "feddcd, asynchronous, random": "algorithm.scaling=own algorithm.model=random "
        "algorithm.solver={name='sgd',batch_size=4}",
    },
    "changing": {
        "lt-admm, redrawn": "",
        "fedgia-graph, redrawn": "",
        "dgd, redrawn": "algorithm.order=adapt-combine dtype=float32",
        "fedepm-graph, clipped": f"algorithm.noise=clipped algorithm.noise_seed=5 algorithm.clip=30 {SPEED}",
    },
}
STUDIES = {
    name: [f"algorithm={name.partition(',')[0]}", *f"{WORDS[kind]} {words}".split()]
    for kind, table in TABLES.items()
    for name, words in table.items()
}


def endless(name: str) -> list[str]:
    """The study without its number of rounds."""
    return [word for word in STUDIES[name] if not word.startswith("rounds=")]
