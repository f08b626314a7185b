"""What the rules of several features look for in settings: what they found, or None."""

from mpifed.compressors.compressor import Compressor, Identity
from mpifed.core.toml import toml_value
from mpifed.features.rule import Found
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.system import System
from mpifed.federation.traits import Mean, Refused, Takes


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


def batch_size(c: Experiment) -> int:
    """Samples of the mini-batches of a method or of its solver; 0: its gradients are those of all samples."""
    return max(int(getattr(part, "batch_size", 0)) for part in (c.algorithm, getattr(c.algorithm, "solver", None)))


def promises(c: Experiment) -> bool:
    """Whether uploads have a guarantee of privacy."""
    privacy = c.algorithm.privacy()
    return privacy is not None and privacy.holds


def compressors(c: Experiment) -> dict[str, Compressor]:
    """The compressors given: up, down."""
    return {} if c.compress is None else c.compress.ways()


def lossy(c: Experiment, way: str) -> Found:
    """The compressor of one way, where it changes messages."""
    C = compressors(c).get(way)
    return None if C is None or isinstance(C, Identity) else {"way": way, "C": C.label()}


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
