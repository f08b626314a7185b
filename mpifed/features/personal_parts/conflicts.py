"""Conflicts of ``personal``: methods whose server needs whole models, and what is about one model."""

from mpifed.core.toml import toml_value
from mpifed.features.conditions import Violation
from mpifed.features.conflict import Conflict, list_methods
from mpifed.features.conflicts import has_personal_models
from mpifed.features.settings import Experiment
from mpifed.federation.method import FederatedMethod
from mpifed.federation.traits import has_options


def leaves_parts(method: FederatedMethod) -> bool:
    """Return whether a method with its options can leave parameters with the clients."""
    return explain_whole(method) is None


def explain_whole(method: FederatedMethod) -> str | None:
    """Return why the server of a method needs whole models, or None."""
    options = method.upload.at_home
    if has_personal_models(method):
        return "its clients have whole models of their own"
    if options is None:
        return (
            "it does not say that its server can do without a part of each model; a class of your own says so by "
            "upload = mpifed.extend.Upload(at_home={})"
        )
    for key, value in options.items():
        if not has_options(method, {key: value}):
            return f"it can only with algorithm.{key} = {toml_value(value)}"
    if method.message_size(1)[1] != method.upload.vectors:
        return "its clients upload a number here that is about whole models"
    return None


def whole_models(c: Experiment) -> Violation:
    """Return why the server of a study needs whole models, or None."""
    why = explain_whole(c.algorithm)
    return None if why is None else {"why": why, "able": list_methods(leaves_parts)}


HOME_ROWS = [
    Conflict(
        ("personal", "a method whose server needs whole models"),
        "personal is wrong: {name} cannot leave parameters with the clients, because {why}; {able} can",
        whole_models,
    ),
    Conflict(
        ("personal", "asynchronous"),
        "personal is wrong with a table [asynchronous]: mpifed joins what a client receives with its own parameters in "
        "rounds alone, so leave one of them out",
    ),
    Conflict(
        ("personal", "algorithm.certify"),
        "algorithm.certify = true is wrong with personal: theorems are about one model, so it must be false",
        lambda c: c.algorithm.certify,
    ),
]
