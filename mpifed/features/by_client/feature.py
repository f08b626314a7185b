"""Numbers of each client: which a study may ask for."""

from mpifed.core.promises import Keeps
from mpifed.core.toml import toml_value
from mpifed.features.by_client.client_numbers import OfClients, asked_for, known, usual, with_lacking
from mpifed.features.feature import Feature, Housing, Looks
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.server import Federation


def nothing(c: Experiment) -> Found:
    """The key that asks for numbers of clients where a problem has none that are usual."""
    key = "unseen" if c.evaluate.unseen else "clients"
    asked = c.evaluate.clients is True or (c.evaluate.unseen and not c.evaluate.clients)
    return {"key": key, "value": toml_value(getattr(c.evaluate, key))} if asked and not usual(c.problem) else None


def unknown(c: Experiment) -> Found:
    """A number of clients that a problem has not."""
    there = known(c.problem)
    for name in asked_for(c.problem, c.evaluate.clients):
        if name not in there:
            return {"number": name, "there": f"it has {', '.join(there)}" if there else "it has none"}
    return None


RULES: list[Rule[Experiment]] = [
    Rule(
        nothing,
        "evaluate.{key} = {value} is wrong: {loss} has neither classes nor a metric, so nothing is evaluated of each "
        "client",
    ),
    Rule(unknown, "evaluate.clients names {number!r}, which {loss} does not have of each client: {there}"),
]


class ByClient(Feature):
    """Numbers of each client, which are evaluated beside f."""

    # Numbers for the record alone, which a note says are of the true data.
    keeps = Keeps.EVERYTHING

    rules = RULES

    def host(self, host: Host, housing: Housing) -> None:
        names = asked_for(self.config.problem, self.config.evaluate.clients)
        host.evaluation.looks[OfClients.by_client.__name__] = OfClients(host.setup.algorithm, names).by_client

    def looks(self, fed: Federation) -> Looks:
        if not self.config.evaluate.clients:
            return {}
        return {"clients": lambda x: with_lacking(fed.inspect(OfClients.by_client, args=(x,)))}
