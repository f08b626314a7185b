"""Comparison of the sizes that an experiment asks for with those of its result, before data are generated."""

from mpifed.core.errors import UserError
from mpifed.features.settings import Experiment
from mpifed.results.result import RunRecord


def check_sizes(result: RunRecord, config: Experiment) -> None:
    """Raise UserError where generated data would have more clients or features than the run or its model had."""
    name = result.path or "the result"
    clients, features = (getattr(config.data, key, None) for key in ("clients", "features"))
    m = result.m
    if config.evaluate.unseen and result.status == "finished":
        m += len(result.unseen.get("data_client", ()))
    if isinstance(clients, int) and 0 < m < clients and (result.status == "finished" or not config.evaluate.unseen):
        raise UserError(f"data.clients = {clients} of {name} is wrong: its run has {m} clients")
    if not isinstance(features, int):
        return
    n = result.attrs.get("features", features)
    if config.problem.has("hess") and result.x is not None:
        n = min(n, result.x.size)  # a model has a parameter for each feature, or more
    if features > n:
        raise UserError(f"data.features = {features} of {name} is wrong: its run has {n} features")
