"""Checks of a method: its traits against what it does, its clients in another order, a fixed point, its state."""

from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking.case import Case, Order, Rearranged, difference
from mpifed.checking.table import Check, Found, Open, place
from mpifed.checking.trace import ROUNDS, Round, Trace, traced
from mpifed.core.guards import own
from mpifed.experiment.optimum import alone
from mpifed.features.asynchrony.asynchronous import Asynchronous
from mpifed.features.certificate.minimum import minimum
from mpifed.features.simulated_time.system import System
from mpifed.federation.method import states_work
from mpifed.federation.participation.selection import All, Uniform
from mpifed.federation.peers.network import Network
from mpifed.federation.traits import Refused, Takes, needs
from mpifed.graphs.graph import Graph
from mpifed.results.result import Result

STILL = 1e-6  # how far, relative to 1 + ‖x*‖, rounds from x* may take the model
LEAP = 1e4  # factor by which rounding may grow from round to round where steps are too long
LEVEL = 1e-7  # norm of ∇f at which a point counts as stationary
ROUNDING = 1e-7  # relative difference of results whose sums ran in another order


@lru_cache(maxsize=1)
def watched(case: Case) -> Trace:
    """What the method did in its first rounds; Open where it fails, which is a check of its own."""
    try:
        return traced(case)
    except Exception:
        raise Open("the run fails") from None


def takes(case: Case) -> str:
    """How often rounds select, and whether they ask other clients too."""
    algorithm = case.config.algorithm
    trace = watched(case)
    says = algorithm.takes
    where = place(algorithm, "round")
    for number, one in enumerate(trace.rounds, 1):
        times = len(one.selections)
        if times != says.selections:
            raise Found(f"selects {times} times in round {number}, and takes = {says} says {says.selections}", where)
    words = f"rounds select {('never', 'once', 'twice')[says.selections]}"
    # the nodes of a graph reply to nobody: what their neighbours get is ``travels``
    if algorithm.on_graph or not says.selections:
        return words
    if trace.fed.cohort == trace.fed.m or case.config.asynchronous is not None:
        raise Open("the study selects all clients, or is asynchronous, so that they are asked in later rounds")
    others = [np.asarray(one.asked & ~np.any(one.selections, axis=0)) for one in trace.rounds]
    first = next((k for k, extra in enumerate(others) if extra.any()), None)
    if says is Takes.SELECTED_AND_ALL and first is None:
        raise Found(f"asks the selected clients alone in {ROUNDS} rounds, and takes = {says} says others reply", where)
    if first is not None and says in (Takes.SELECTED, Takes.TWICE):
        client = int(others[first].argmax())
        raise Found(f"asks client {client} in round {first + 1}, not selected, and takes = {says} says none is", where)
    return f"{words} and {'others are asked too' if first is not None else 'ask no other clients'}"


def travels(case: Case) -> str:
    """The numbers that a client gets and uploads, against ``traffic``, which takes them from ``upload.vectors``."""
    config = case.config
    trace = watched(case)
    algorithm = config.algorithm
    n = trace.fed.n
    if config.compress is not None or config.masks is not None or config.asynchronous is not None:
        raise Open("messages of the study are compressed, masked or late")
    if algorithm.takes is Takes.SELECTED_OR_ALL:
        raise Open("a coin decides what travels")
    said = algorithm.traffic(n)
    for number, one in enumerate(trace.rounds, 1):
        count = carriers(case, trace, one, number)
        if not count:
            raise Open("no client is selected, or no node has a neighbour")
        if algorithm.on_graph and number == 1 and not one.up:
            continue  # nodes may begin with a step of their own
        for way, sent, right in zip(("up", "down"), (one.up, one.down), said[::-1], strict=True):
            # simulated time counts one download of proxskip, whose second one only selections need
            if abs(sent - count * right) > 1e-9 * max(sent, count) and (way == "up" or own(type(algorithm))):
                raise Found(
                    f"{sent / count:.6g} numbers travel {way} for each client and selection in round {number}, and "
                    f"traffic({n}), (down, up), says {right:.6g} (upload.vectors = {algorithm.upload.vectors})",
                    place(algorithm, *one.methods),
                )
    down, up = said
    return f"{down:.6g} numbers down and {up:.6g} up for each client and selection, n = {n}"


def works(case: Case) -> str:
    """The sample gradients that clients compute, against ``work``."""
    config = case.config
    algorithm = config.algorithm
    trace = watched(case)
    d = case.prepared.data.sizes
    said = algorithm.work(d)
    if said is None or config.asynchronous is not None:
        raise Open("uploads of the study are late" if config.asynchronous else "work(d) says that it is not known")
    if trace.second and states_work(type(algorithm)):
        raise Open(f"it asks for f.{trace.second[0]}, and second derivatives are no sample gradients")
    units = np.array([one.units for one in trace.rounds])
    if not units.any():
        raise Open("no client is selected")
    called = units.any(axis=0)
    units = units[:, called]
    d = d[called]
    done = np.array([one.gradients for one in trace.rounds])[:, called]
    each = np.where(units > 0, done / np.maximum(units, 1), np.nan) / d
    least = float(np.nanmin(each))
    most = float(np.nanmax(each))
    counted = f"{least:.6g}" if np.isclose(least, most) else f"{least:.6g} to {most:.6g}"
    counted += f" gradient{'s' if most != 1 else ''} of each sample for a selection"
    if not states_work(type(algorithm)):
        return f"{counted}; work(d) is not defined: a run with system.speed counts"
    share = said[called] / d
    if np.allclose(each[units > 0], np.broadcast_to(share, units.shape)[units > 0], rtol=1e-9, atol=0):
        return counted
    # coins and steps that end early: work is that of an average round, or of the longest, as mpifed's own methods say
    drawn = (np.nanmin(each, axis=0) < np.nanmax(each, axis=0)).any()
    if (drawn or not own(type(algorithm))) and least <= share.max():
        raise Open(f"{counted}, and work(d) says {share.mean():.6g}, on average or at most")
    raise Found(
        f"computes {counted}, and work(d) says {share.mean():.6g}",
        place(algorithm, *trace.rounds[0].methods),
    )


def fields(case: Case) -> str:
    """The fields of the clients' state that ``upload`` names."""
    algorithm = case.config.algorithm
    host = case.host
    named = {"kept": algorithm.upload.kept, "known": algorithm.upload.known}
    watched(case)
    for key, name in named.items():
        if name and name not in host.state._fields:
            raise Found(
                f"upload.{key} = {name!r}, and the clients' state has the fields {', '.join(host.state._fields)}",
                place(algorithm, "join"),
            )
    return ", ".join(f"{key} = {name}" for key, name in named.items() if name) or "it names none"


def late(case: Case) -> str:
    """A method that may be asynchronous runs where uploads are old."""
    config = case.config
    serves = config.algorithm.asynchronous
    if isinstance(serves, Refused):
        raise Open(f"it is not asynchronous: {serves.why}")
    if config.system is not None or config.masks is not None or config.compress is not None:
        raise Open("the study has [system], [masks] or [compress]")
    speed = {"name": "lognormal", "median": 200.0, "sigma": 1.0}
    m = case.prepared.setup.m
    arrivals = max(min(2, m), m // 2)
    found = case.run(
        system=System.build({"speed": speed, "passes": 2}, "system"),
        asynchronous=Asynchronous.build({"arrivals": arrivals}, "asynchronous"),
        selection=Uniform(),
    )
    return f"{found.cr} rounds of {arrivals} arrivals"


def carriers(case: Case, trace: Trace, one: Round, number: int) -> int:
    """How many times what ``traffic`` says travels in a round."""
    algorithm = case.config.algorithm
    if algorithm.on_graph:
        if algorithm.takes.selections:
            raise Open("nodes that are selected alone send")
        assert isinstance(trace.fed, Network)
        return 2 * trace.fed.weights.at(number).edges
    if algorithm.takes in (Takes.ALL, Takes.SELECTED_AND_ALL):
        return int(one.asked.sum())
    return sum(int(selection.sum()) for selection in one.selections)


def requires(case: Case) -> str:
    """The optional methods of the problem that it called, against ``requires``."""
    algorithm = case.config.algorithm
    called = watched(case).called
    needed = needs(algorithm)
    for name, method in called.items():
        if name not in needed:
            raise Found(f'calls f.{name}, and requires does not name it: Need("{name}")', place(algorithm, method))
    for name in needed:
        if name not in called:
            raise Found(
                f"requires names {name}, and {ROUNDS} rounds did not call it: problems without it are refused for "
                "nothing",
                place(algorithm, "round"),
            )
    return f"calls {', '.join(called)}" if called else "gradients and values alone"


@lru_cache(maxsize=1)
def quiet(case: Case) -> Result:
    """The result with all clients in every round; Open where the method draws random numbers."""
    case.repeated()
    config = case.config
    if config.asynchronous is not None or config.system is not None:
        raise Open("when clients reply is drawn")
    # with another seed, too: a method that draws numbers gives other bits to clients in another order, and rightly so
    first = run_all(case, np.arange, config.algorithm)
    other = run_all(case, np.arange, otherwise(config.algorithm), config.seed + 1)
    if difference(first, other):
        raise Open("it draws random numbers, or the problem does")
    return first


def otherwise(algorithm: Algorithm) -> Algorithm:
    """The method with another seed of its noise, where it has one."""
    seed = getattr(algorithm, "noise_seed", None)
    return algorithm if seed is None else replace(algorithm, noise_seed=seed + 1)


def run_all(case: Case, order: Order, algorithm: Algorithm, seed: int | None = None) -> Result:
    """The result with all clients, in an order, in every round; all are neighbours where there is a graph."""
    config = case.config
    graph = None if config.graph is None else Graph.build("complete", "graph")
    seed = config.seed if seed is None else seed
    return case.run(Rearranged(config.seed, order), seed=seed, selection=All(), graph=graph, algorithm=algorithm)


def permuted(case: Case) -> str:
    first = quiet(case)
    apart = difference(first, run_all(case, lambda m: np.arange(m)[::-1], case.config.algorithm), ROUNDING)
    if apart:
        raise Found(f"with the clients in the opposite order: {apart}", place(case.config.algorithm, "round"))
    return "in the opposite order: the same to rounding"


def fixed_point(case: Case) -> str:
    """Where all clients have the same samples, a run from the minimiser stays there."""
    # with equal clients the minimiser of f is that of each f_i: from there no step and no dual variable has to move
    quiet(case)
    config = case.config
    cache = Rearranged(config.seed, lambda m: np.zeros(m, int))
    fed, _ = alone(config, cache)
    best = minimum(fed, config.algorithm, fed.initial())
    _, total = fed.inspect(config.algorithm.certify_objective, "sum", (best.x,))
    slope = float(np.linalg.norm(total)) / fed.m
    if not slope <= LEVEL:
        raise Open(f"no optimum of the problem is known: the least ‖∇f‖ found is {slope:.2g}")
    start = case.folder / "optimum.npz"
    np.savez(start, x=best.x)
    models = case.run(cache, start=str(start)).models["x"]
    moved = np.linalg.norm(models - best.x, axis=1)
    length = float(np.linalg.norm(best.x))
    if moved.max() <= STILL * (1 + length):
        return f"from the minimiser x moves by {moved.max():.1g}"
    # it stays for a round, and then rounding errors grow by a factor each round: the method is right, its steps are not
    if moved[1] <= STILL * (1 + length) and (moved[2:] <= LEAP * moved[1:-1]).all():
        raise Open(f"rounding drives x away from the minimiser, by {moved[-1]:.1g}: steps are too long here")
    raise Found(
        f"all clients have the same samples and x starts at the minimiser, and {config.rounds} rounds take it "
        f"{moved[-1]:.3g} away, where ‖x*‖ = {length:.3g}; right only for a penalty of the method's own",
        place(config.algorithm, "round"),
    )


def growth(case: Case) -> str:
    first, *others = watched(case).sizes
    for name, size in first.items():
        sizes = [one[name] for one in others]
        if sizes != [size] * len(others):
            raise Found(
                f"the field {name} of the server's state has {', '.join(map(str, [size, *sizes]))} numbers after "
                f"rounds 1 to {len(sizes) + 1}",
                place(case.config.algorithm, "round"),
            )
    return f"{sum(first.values())} numbers after every round"


CHECKS: list[Check] = [
    ("takes", takes),
    ("upload and traffic", travels),
    ("work", works),
    ("fields of upload", fields),
    ("requires", requires),
    ("asynchronous", late),
    ("permuted clients", permuted),
    ("fixed point", fixed_point),
    ("state that stays in size", growth),
]
