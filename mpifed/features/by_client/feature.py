"""Feature that evaluates numbers of each client, and its rules."""

from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.features.by_client.client_numbers import (
    ClientEvaluation,
    default_numbers,
    fill_missing,
    list_numbers,
    select_numbers,
)
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.features.rule import Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback, ClientTable
from mpifed.federation.host import Host
from mpifed.federation.server import Federation


def no_default_number(c: Experiment) -> Violation:
    """Return the key that asks for default numbers of clients where a problem has none, or None."""
    key = "unseen" if c.evaluate.unseen else "clients"
    by_default = c.evaluate.clients is True or (c.evaluate.unseen and not c.evaluate.clients)
    return (
        {"key": key, "value": toml_value(getattr(c.evaluate, key))}
        if by_default and not default_numbers(c.problem)
        else None
    )


def unknown_number(c: Experiment) -> Violation:
    """Return the first number asked for that a problem does not have, or None."""
    numbers = list_numbers(c.problem)
    for name in select_numbers(c.problem, c.evaluate.clients):
        if name not in numbers:
            return {"number": name, "there": f"it has {', '.join(numbers)}" if numbers else "it has none"}
    return None


RULES: list[Rule[Experiment]] = [
    Rule(
        no_default_number,
        "evaluate.{key} = {value} is wrong: {loss} has neither classes nor a metric, so nothing is evaluated of each "
        "client",
    ),
    Rule(unknown_number, "evaluate.clients names {number!r}, which {loss} does not have of each client: {there}"),
]


class ClientNumbers(EnginePlugin, Callback):
    """Numbers of each client that are evaluated beside f."""

    # Numbers for the record alone; a note says that they are of the true data.
    supports = Supports.EVERYTHING

    rules = RULES

    def extend_host(self, host: Host, division: HostDivision) -> None:
        names = select_numbers(self.config.problem, self.config.evaluate.clients)
        host.evaluation.evaluators[ClientEvaluation.by_client.__name__] = ClientEvaluation(
            host.setup.algorithm, names
        ).by_client

    def on_evaluate(self, fed: Federation, x: Array) -> dict[str, float | ClientTable]:
        if not self.config.evaluate.clients:
            return {}
        return {"clients": fill_missing(fed.inspect(ClientEvaluation.by_client, args=(x,)))}
