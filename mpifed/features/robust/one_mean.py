"""Which studies have uploads that attackers may replace, and of which a robust mean makes sense."""

from collections.abc import Iterator

from mpifed.core.toml import toml_value
from mpifed.features.findings import compressors
from mpifed.features.rule import Found, able
from mpifed.features.selection_laws.importance import Importance
from mpifed.features.settings import Experiment
from mpifed.federation.method import Method
from mpifed.federation.traits import given

N = 1000  # parameters, where only the number of vectors counts


def one_mean(method: Method) -> bool:
    """Whether a method, with its options, says that its rounds use uploads in one mean alone."""
    options = method.upload.one_mean
    return options is not None and given(method, options)


def refusal(c: Experiment) -> Found:
    """Why neither attack nor robust goes with the rest of a study: the first reason, or None."""
    name = c.algorithm.label()
    if not one_mean(c.algorithm):
        return {
            "why": f"{name} does not say that its rounds use uploads in one mean alone; {able(one_mean)} do, and a "
            "class of your own says so by upload = mpifed.Upload(one_mean={})"
        }
    if c.algorithm.traffic(N)[1] != N:
        return {"why": f"clients of {name} upload more than one vector here"}
    return next(({"why": f"{what} cannot be used with it, because {why}"} for what, why in others(c)), None)


def others(c: Experiment) -> Iterator[tuple[str, str]]:
    """Other tables that do not go with it, and why not."""
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
