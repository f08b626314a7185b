"""What rules look for in settings: what they found, or None."""

from mpifed.algorithms.bases.graph_method import GraphMethod
from mpifed.compressors.base import Compressor, Identity
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.experiment.kernels import DEVICES
from mpifed.experiment.matching import missing, refusal
from mpifed.experiment.rule import Counted, Found
from mpifed.experiment.settings import Experiment
from mpifed.federation.method import proximal
from mpifed.federation.participation.cyclic import Cyclic
from mpifed.federation.participation.importance import Importance
from mpifed.federation.timing.system import System
from mpifed.federation.traits import Mean, Refused, Takes, given, needs


def mismatch(c: Experiment) -> Found:
    """What the method needs and the problem does not have."""
    lacking = missing(c.algorithm, type(c.problem))
    return {"mismatch": refusal(c.algorithm, c.problem, lacking)} if lacking else None


def batches(c: Experiment) -> Found:
    """A size of mini-batches, where f_i is no mean over samples."""
    solver = getattr(c.algorithm, "solver", None)
    for key, table in {"algorithm": c.algorithm, "algorithm.solver": solver, "selection": c.selection}.items():
        size = getattr(table, "batch_size", 0)
        if size and not c.problem.sampled:
            return {"key": key, "size": size}
    return None


def matrices(c: Experiment) -> Found:
    """The second derivatives that a method needs on a device."""
    second = [c.problem.offers[name].partition(";")[0] for name in ("hessian", "hess") if name in needs(c.algorithm)]
    return {"what": " and ".join(second)} if second and c.kernels in DEVICES else None


def whole_batches(c: Experiment) -> bool:
    """Whether the method takes no mini-batches, whose samples could be augmented."""
    parts = (c.algorithm, getattr(c.algorithm, "solver", None))
    return not any(getattr(part, "batch_size", 0) for part in parts)


def half_of_double(c: Experiment) -> Found:
    """The type of half precision that a network computes in, in a study of double precision."""
    half = getattr(c.problem, "autocast", None)
    return {"half": half} if half and c.dtype == "float64" else None


def chosen(c: Experiment) -> Found:
    """The first key of [selection] that is set, and its value; None also where all clients are selected."""
    for key in c.changed():
        table, _, option = key.partition(".")
        if table == "selection" and c.selection.label() != "all":
            return {"key": key, "value": toml_value(getattr(c.selection, option) if option else c.selection.label())}
    return None


def unequal(c: Experiment) -> Mean | Refused:
    """What a mean over the selected is; UNBIASED too where all clients reply, or the last uploads of all count."""
    always = c.algorithm.takes in (Takes.ALL, Takes.SELECTED_AND_ALL)
    return Mean.UNBIASED if always or last_uploads(c) else c.algorithm.mean


def last_uploads(c: Experiment) -> str:
    """The field with the last uploads of clients, where rounds use those of all clients."""
    return c.algorithm.upload.last(c.algorithm)


def wrong_weights(c: Experiment) -> Found:
    """Why clients cannot have weights of their own."""
    if c.objective.weights == "clients":
        return None
    name, averaged = c.algorithm.label(), c.algorithm.upload.averaged
    why = ""
    if promises(c):
        why = f'the noise of {name} is that of uploads without weights, so it must be "clients"'
    elif averaged and isinstance(c.algorithm, GraphMethod):
        mean = "which is about a server's mean of models, and it has no server"
        right = "so leave averaged out of its upload: weights are then those of the f_i"
        why = f"{name} says Upload(averaged=True), {mean}, {right}"
    elif averaged and own_weights(c):
        plain = 'which only plain sums of uploads can have, so it must be "clients"'
        why = f"{name} averages models with these weights, {plain} with {own_weights(c)}"
    elif averaged and c.algorithm.certify:
        why = f'the theorem of {name} is about equal weights, so with algorithm.certify = true it must be "clients"'
    elif c.objective.weights != "samples" and "majorizer_inverse" in needs(c.algorithm):
        right = 'so it must be "samples" or "clients"; algorithm.H = "diagonal" takes all'
        why = f"{name} needs majorizer_inverse here, which takes weights by samples only, {right}"
    return {"why": why} if why else None


def no_proximal_step(c: Experiment) -> Found:
    """Why the server of a method has no step for a penalty."""
    if not c.objective.penalised:
        return None
    why = "mpifed has no proximal step for its server"
    if isinstance(c.algorithm, GraphMethod):
        why = "it has no server, which would take the proximal step"
    elif c.algorithm.upload.averaged:
        why = "its server averages models that clients have trained on their f_i, without the penalty"
    elif proximal(c.algorithm):
        return None
    elif "hess" in {need.name for need in c.algorithm.requires}:
        why = "its steps are in the metric of Hessians, in which the proximal operator of a penalty has no closed form"
    key = "l1" if c.objective.l1 else "l2"
    return {"key": key, "value": getattr(c.objective, key), "why": why}


def own_weights(c: Experiment) -> str:
    """What does more with uploads than to add them up."""
    tables = {"masks": c.masks, "compress": c.compress}
    found = [name for name, table in tables.items() if table is not None]
    return found[0] if found else 'selection.name = "importance"' * isinstance(c.selection, Importance)


def one_by_one(c: Experiment) -> bool:
    """Whether the server needs single uploads."""
    single = c.algorithm.upload.single
    return single is not None and given(c.algorithm, single)


def promises(c: Experiment | Counted, kind: str = "holds") -> bool:
    """Whether uploads have a guarantee, and one of some kind: "double", "sums", "clients"."""
    privacy = c.algorithm.privacy()
    return privacy is not None and privacy.holds and getattr(privacy, kind)


def compressors(c: Experiment) -> dict[str, Compressor]:
    """The compressors given: up, down."""
    return {} if c.compress is None else c.compress.ways()


def lossy(c: Experiment, way: str) -> Found:
    """The compressor of one way, where it changes messages."""
    C = compressors(c).get(way)
    return None if C is None or isinstance(C, Identity) else {"way": way, "C": C.label()}


def inexact(c: Experiment) -> Found:
    """The compressor of messages that the method needs as they are."""
    exact = c.algorithm.upload.exact
    for way in compressors(c):
        found = lossy(c, way)
        if found and way in exact:
            return {**found, "why": exact[way]}
    return None


def unfit(c: Experiment) -> Found:
    """The compressor that cannot work here."""
    for way, C in compressors(c).items():
        try:
            C.verify()
        except UserError as error:
            return {"way": way, "C": C.label(), "error": error}
    return None


def wrong_feedback(c: Experiment) -> Found:
    """Feedback of uploads whose server keeps the last ones, which is feedback enough."""
    if c.compress is None or not lossy(c, "up") or not last_uploads(c):
        return None
    try:
        c.compress.refuse_feedback(c.algorithm.label())
    except UserError as error:
        return {"error": error}
    return None


def moving(c: Experiment) -> Found:
    """The option by which a graph changes, where the method needs the same weights in all rounds."""
    if c.graph is None or not c.graph.changing or not getattr(c.algorithm, "fixed_weights", ""):
        return None
    return {"key": "redraw = true" if c.graph.drawn_anew else f"loss = {c.graph.loss}"}


def waited_for(c: Experiment) -> System | None:
    """The slow or absent clients whose replies a server waits for in every round."""
    return c.system if c.graph is None and c.asynchronous is None else None


def absent(c: Experiment) -> bool:
    """Whether clients may be absent."""
    system = waited_for(c)
    return system is not None and system.absence() is not None


def partial(c: Experiment) -> bool:
    """Whether clients may take fewer local steps."""
    system = waited_for(c)
    return system is not None and system.partial


def no_deadline(c: Experiment) -> Found:
    """The key without which clients never take fewer local steps."""
    if not partial(c):
        return None
    return next(({"key": key} for key in ("deadline", "speed") if getattr(c.system, key) is None), None)


def awaited(c: Experiment) -> Found:
    """The first key of [system] that is about clients for which no server waits."""
    for key, usual in {"dropout": 0.0, "deadline": None, "least": 1, "partial": False}.items():
        value = getattr(c.system, key, usual)
        if value != usual:
            return {"key": key, "value": str(value).lower() if isinstance(value, bool) else value}
    return None


def uncancelled(c: Counted) -> Found:
    """How many clients must reply for masks to cancel, where fewer may."""
    if c.masks is None or c.system is None or not c.system.absence():
        return None
    needed = c.masks.needed(c.selector.size)
    return {"needed": needed} if c.system.least < needed else None


def same_sets(c: Counted) -> bool:
    """Whether clients that take turns are always in the same set, and exchange within it alone."""
    if not isinstance(c.selection, Cyclic) or c.algorithm.mean is not Mean.COUPLED:
        return False
    size = c.selection.size(c.m)
    return not c.selection.overlap and size < c.m and c.m % size == 0
