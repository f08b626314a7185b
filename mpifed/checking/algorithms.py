"""Checks of a method: traits against behaviour, clients in another order, a fixed point, the size of the state."""

from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking.case import Case, Order, ReorderedCache, difference
from mpifed.checking.table import Check, CheckFailure, Inconclusive
from mpifed.checking.trace import ROUNDS, RoundTrace, Trace, trace_rounds
from mpifed.core.guards import is_user_class
from mpifed.experiment.optimum import build_local_federation
from mpifed.features.asynchronous import Asynchronous
from mpifed.features.certificate.minimum import find_minimum
from mpifed.features.simulated_time.system import System
from mpifed.federation.method import declares_work
from mpifed.federation.participation.selection import All, UniformSelection
from mpifed.federation.peers.graph_federation import GraphFederation
from mpifed.federation.traits import Participation, Unsupported, required_methods
from mpifed.graphs.graph import Graph
from mpifed.results.result import RunRecord

STILL = 1e-6  # distance from x*, relative to 1 + ‖x*‖, that rounds from x* may take the model
LEAP = 1e4  # factor by which rounding may grow from round to round where steps are too long
LEVEL = 1e-7  # norm of ∇f at which a point counts as stationary
ROUNDING = 1e-7  # relative difference of results whose sums ran in another order


@lru_cache(maxsize=1)
def trace_of(case: Case) -> Trace:
    """Trace the first rounds of the method; Inconclusive where it fails, which is a check of its own."""
    try:
        return trace_rounds(case)
    except Exception:
        raise Inconclusive("the run fails") from None


def check_takes(case: Case) -> str:
    """Compare how often rounds select, and whether they ask other clients, with ``participation``."""
    algorithm = case.config.algorithm
    trace = trace_of(case)
    says = algorithm.participation
    for number, seen in enumerate(trace.rounds, 1):
        count = len(seen.selections)
        if count != says.selections:
            raise CheckFailure(
                f"selects {count} times in round {number}, and participation = {says} says {says.selections}", "round"
            )
    text = f"rounds select {('never', 'once', 'twice')[says.selections]}"
    # the nodes of a graph reply to nobody; check_messages counts the messages to neighbours
    if algorithm.on_graph or not says.selections:
        return text
    if trace.fed.clients_per_round == trace.fed.m or case.config.asynchronous is not None:
        raise Inconclusive("the study selects all clients, or is asynchronous, so that they are asked in later rounds")
    unselected = [np.asarray(seen.asked & ~np.any(seen.selections, axis=0)) for seen in trace.rounds]
    first = next((k for k, clients in enumerate(unselected) if clients.any()), None)
    if says is Participation.SELECTED_AND_ALL and first is None:
        raise CheckFailure(
            f"asks the selected clients alone in {ROUNDS} rounds, and participation = {says} says others reply", "round"
        )
    if first is not None and says in (Participation.SELECTED, Participation.TWICE):
        client = int(unselected[first].argmax())
        raise CheckFailure(
            f"asks client {client} in round {first + 1}, not selected, and participation = {says} says none is", "round"
        )
    return f"{text} and {'others are asked too' if first is not None else 'ask no other clients'}"


def check_messages(case: Case) -> str:
    """Compare the numbers that a client downloads and uploads with ``message_size``."""
    config = case.config
    trace = trace_of(case)
    algorithm = config.algorithm
    n = trace.fed.n
    if config.compress is not None or config.masks is not None or config.asynchronous is not None:
        raise Inconclusive("messages of the study are compressed, masked or late")
    if algorithm.participation is Participation.SELECTED_OR_ALL:
        raise Inconclusive("a coin decides what travels")
    declared = algorithm.message_size(n)
    for number, seen in enumerate(trace.rounds, 1):
        count = count_messages(case, trace, seen, number)
        if not count:
            raise Inconclusive("no client is selected, or no node has a neighbour")
        if algorithm.on_graph and number == 1 and not seen.up:
            continue  # nodes may begin with a step of their own
        for way, sent, expected in zip(("up", "down"), (seen.up, seen.down), declared[::-1], strict=True):
            # simulated time counts one download of proxskip, whose second one only selections need
            if abs(sent - count * expected) > 1e-9 * max(sent, count) and (
                way == "up" or is_user_class(type(algorithm))
            ):
                raise CheckFailure(
                    f"{sent / count:.6g} numbers travel {way} for each client and selection in round {number}, and "
                    f"message_size({n}), (down, up), says {expected:.6g} (upload.vectors = {algorithm.upload.vectors})",
                    *seen.methods,
                )
    down, up = declared
    return f"{down:.6g} numbers down and {up:.6g} up for each client and selection, n = {n}"


def check_work(case: Case) -> str:
    """Compare the sample gradients that clients compute with ``sample_gradients``."""
    config = case.config
    algorithm = config.algorithm
    trace = trace_of(case)
    d = case.spec.data.sizes
    declared = algorithm.sample_gradients(d)
    if declared is None or config.asynchronous is not None:
        raise Inconclusive(
            "uploads of the study are late" if config.asynchronous else "sample_gradients(d) says that it is not known"
        )
    if trace.second and declares_work(type(algorithm)):
        raise Inconclusive(f"it asks for f.{trace.second[0]}, and second derivatives are no sample gradients")
    repeats = np.array([seen.repeats for seen in trace.rounds])
    if not repeats.any():
        raise Inconclusive("no client is selected")
    is_charged = repeats.any(axis=0)
    repeats = repeats[:, is_charged]
    d = d[is_charged]
    computed = np.array([seen.gradients for seen in trace.rounds])[:, is_charged]
    each = np.where(repeats > 0, computed / np.maximum(repeats, 1), np.nan) / d
    low = float(np.nanmin(each))
    high = float(np.nanmax(each))
    counted = f"{low:.6g}" if np.isclose(low, high) else f"{low:.6g} to {high:.6g}"
    counted += f" gradient{'s' if high != 1 else ''} of each sample for a selection"
    if not declares_work(type(algorithm)):
        return f"{counted}; sample_gradients(d) is not defined: a run with system.speed counts"
    fraction = declared[is_charged] / d
    if np.allclose(each[repeats > 0], np.broadcast_to(fraction, repeats.shape)[repeats > 0], rtol=1e-9, atol=0):
        return counted
    # with coins or early stops, work is that of an average round, or of the longest, as mpifed's own methods declare
    is_random = (np.nanmin(each, axis=0) < np.nanmax(each, axis=0)).any()
    if (is_random or not is_user_class(type(algorithm))) and low <= fraction.max():
        raise Inconclusive(f"{counted}, and sample_gradients(d) says {fraction.mean():.6g}, on average or at most")
    raise CheckFailure(
        f"computes {counted}, and sample_gradients(d) says {fraction.mean():.6g}", *trace.rounds[0].methods
    )


def check_upload_fields(case: Case) -> str:
    """Test that the fields that ``upload`` names are in the state of clients."""
    algorithm = case.config.algorithm
    host = case.host
    names = {"last_upload": algorithm.upload.last_upload, "server_copy": algorithm.upload.server_copy}
    trace_of(case)
    for key, name in names.items():
        if name and name not in host.state._fields:
            raise CheckFailure(
                f"upload.{key} = {name!r}, and the clients' state has the fields {', '.join(host.state._fields)}",
                "init_client",
            )
    return ", ".join(f"{key} = {name}" for key, name in names.items() if name) or "it names none"


def check_asynchronous(case: Case) -> str:
    """Test that a method that may be asynchronous runs with old uploads."""
    config = case.config
    declared = config.algorithm.asynchronous
    if isinstance(declared, Unsupported):
        raise Inconclusive(f"it is not asynchronous: {declared.why}")
    if config.system is not None or config.masks is not None or config.compress is not None:
        raise Inconclusive("the study has [system], [masks] or [compress]")
    speed = {"name": "lognormal", "median": 200.0, "sigma": 1.0}
    m = case.spec.setup.m
    arrivals = max(min(2, m), m // 2)
    result = case.run(
        system=System.build({"speed": speed, "passes": 2}, "system"),
        asynchronous=Asynchronous.build({"arrivals": arrivals}, "asynchronous"),
        selection=UniformSelection(),
    )
    return f"{result.cr} rounds of {arrivals} arrivals"


def count_messages(case: Case, trace: Trace, seen: RoundTrace, number: int) -> int:
    """Count how often the numbers of ``message_size`` travel in a round."""
    algorithm = case.config.algorithm
    if algorithm.on_graph:
        if algorithm.participation.selections:
            raise Inconclusive("nodes that are selected alone send")
        assert isinstance(trace.fed, GraphFederation)
        return 2 * trace.fed.weights.at(number).edges
    if algorithm.participation in (Participation.ALL, Participation.SELECTED_AND_ALL):
        return int(seen.asked.sum())
    return sum(int(selection.sum()) for selection in seen.selections)


def check_requires(case: Case) -> str:
    """Compare the optional methods of the problem that it called with ``requires``."""
    algorithm = case.config.algorithm
    callers = trace_of(case).callers
    required = required_methods(algorithm)
    for name, method in callers.items():
        if name not in required:
            raise CheckFailure(f'calls f.{name}, and requires does not name it: Requirement("{name}")', method)
    for name in required:
        if name not in callers:
            raise CheckFailure(
                f"requires names {name}, and {ROUNDS} rounds did not call it: problems without it are refused for "
                "nothing",
                "round",
            )
    return f"calls {', '.join(callers)}" if callers else "gradients and values alone"


@lru_cache(maxsize=1)
def deterministic_result(case: Case) -> RunRecord:
    """Return the result with all clients in every round; Inconclusive where the method draws random numbers."""
    case.reproducible_result()
    config = case.config
    if config.asynchronous is not None or config.system is not None:
        raise Inconclusive("when clients reply is drawn")
    # with another seed too: a method that draws numbers may rightly give other bits to clients in another order
    first = run_all(case, np.arange, config.algorithm)
    other = run_all(case, np.arange, with_other_noise(config.algorithm), config.seed + 1)
    if difference(first, other):
        raise Inconclusive("it draws random numbers, or the problem does")
    return first


def with_other_noise(algorithm: Algorithm) -> Algorithm:
    """Return the method with another seed of its noise, where it has one."""
    seed = getattr(algorithm, "noise_seed", None)
    return algorithm if seed is None else replace(algorithm, noise_seed=seed + 1)


def run_all(case: Case, order: Order, algorithm: Algorithm, seed: int | None = None) -> RunRecord:
    """Run with all clients in every round, in the given order; on a graph all clients are neighbours."""
    config = case.config
    graph = None if config.graph is None else Graph.build("complete", "graph")
    seed = config.seed if seed is None else seed
    return case.run(ReorderedCache(config.seed, order), seed=seed, selection=All(), graph=graph, algorithm=algorithm)


def check_order(case: Case) -> str:
    """Test that clients in the opposite order give the same models up to rounding."""
    first = deterministic_result(case)
    text = difference(first, run_all(case, lambda m: np.arange(m)[::-1], case.config.algorithm), ROUNDING)
    if text:
        raise CheckFailure(f"with the clients in the opposite order: {text}", "round")
    return "in the opposite order: the same to rounding"


def check_fixed_point(case: Case) -> str:
    """Test that a run from the minimiser stays there where all clients have the same samples."""
    # with equal clients the minimiser of f is that of each f_i, so that neither steps nor dual variables have to move
    deterministic_result(case)
    config = case.config
    cache = ReorderedCache(config.seed, lambda m: np.zeros(m, int))
    fed, _ = build_local_federation(config, cache)
    best = find_minimum(fed, config.algorithm, fed.initial())
    _, total = fed.inspect(config.algorithm.certify_objective, "sum", (best.x,))
    slope = float(np.linalg.norm(total)) / fed.m
    if not slope <= LEVEL:
        raise Inconclusive(f"no optimum of the problem is known: the least ‖∇f‖ found is {slope:.2g}")
    start = case.folder / "optimum.npz"
    np.savez(start, x=best.x)
    models = case.run(cache, start=str(start)).models["x"]
    moved = np.linalg.norm(models - best.x, axis=1)
    length = float(np.linalg.norm(best.x))
    if moved.max() <= STILL * (1 + length):
        return f"from the minimiser x moves by {moved.max():.1g}"
    # x stays for a round, then rounding errors grow by a factor each round: the method is right, its steps are too long
    if moved[1] <= STILL * (1 + length) and (moved[2:] <= LEAP * moved[1:-1]).all():
        raise Inconclusive(f"rounding drives x away from the minimiser, by {moved[-1]:.1g}: steps are too long here")
    raise CheckFailure(
        f"all clients have the same samples and x starts at the minimiser, and {config.rounds} rounds take it "
        f"{moved[-1]:.3g} away, where ‖x*‖ = {length:.3g}; right only for a penalty of the method's own",
        "round",
    )


def check_state_size(case: Case) -> str:
    """Test that the fields of the state of the server keep their sizes."""
    first, *others = trace_of(case).sizes
    for name, size in first.items():
        sizes = [one[name] for one in others]
        if sizes != [size] * len(others):
            raise CheckFailure(
                f"the field {name} of the server's state has {', '.join(map(str, [size, *sizes]))} numbers after "
                f"rounds 1 to {len(sizes) + 1}",
                "round",
            )
    return f"{sum(first.values())} numbers after every round"


CHECKS: list[Check] = [
    ("participation", check_takes),
    ("upload and message_size", check_messages),
    ("sample_gradients", check_work),
    ("fields of upload", check_upload_fields),
    ("requires", check_requires),
    ("asynchronous", check_asynchronous),
    ("permuted clients", check_order),
    ("fixed point", check_fixed_point),
    ("state that stays in size", check_state_size),
]
