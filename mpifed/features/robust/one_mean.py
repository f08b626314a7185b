"""Rule about studies whose uploads attackers may replace and a robust mean may average."""

from collections.abc import Iterator

from mpifed.core.toml import toml_value
from mpifed.features.findings import compressors
from mpifed.features.rule import Violation, list_methods
from mpifed.features.selection_laws.importance import Importance
from mpifed.features.settings import Experiment
from mpifed.federation.method import FederatedMethod
from mpifed.federation.traits import has_options

N = 1000  # any number of parameters: only the number of uploaded vectors counts


def uses_one_mean(method: FederatedMethod) -> bool:
    """Return whether a method with its options says that its rounds use uploads in one mean alone."""
    options = method.upload.one_mean
    return options is not None and has_options(method, options)


def explain_conflict(c: Experiment) -> Violation:
    """Return the first reason why neither attack nor robust goes with the rest of a study, or None."""
    name = c.algorithm.label()
    if not uses_one_mean(c.algorithm):
        methods = list_methods(uses_one_mean)
        return {
            "why": f"{name} does not say that its rounds use uploads in one mean alone; {methods} do, and a class of "
            "your own says so by upload = mpifed.Upload(one_mean={})"
        }
    if c.algorithm.message_size(N)[1] != N:
        return {"why": f"clients of {name} upload more than one vector here"}
    return next(({"why": f"{what} cannot be used with it, because {why}"} for what, why in list_conflicts(c)), None)


def list_conflicts(c: Experiment) -> Iterator[tuple[str, str]]:
    """Yield tables and keys that conflict with single uploads, and why."""
    if c.masks is not None:
        yield "masks", "masks hide single uploads, which the server needs here one by one"
    if compressors(c):
        yield "compress", "what is left of an upload is no change that a client has made"
    if c.asynchronous is not None:
        yield "asynchronous", "uploads that arrive are changes of different models"
    if c.graph is not None:
        yield "graph", "there is no server that takes a mean"
    if c.objective.weights != "clients":
        yield "objective.weights", "weights of uploads are those of a plain mean"
    match c.selection:
        case Importance():
            yield f"selection = {toml_value(c.selection.label())}", "it weighs uploads, as a plain mean can"
    if c.algorithm.certify:
        yield "algorithm.certify", "theorems of methods are about plain means of honest uploads"
