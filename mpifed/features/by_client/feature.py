"""Feature that evaluates numbers of each client, and sends them."""

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.features.by_client.client_numbers import (
    ClientEvaluation,
    fill_missing,
)
from mpifed.features.conflicts import CONFLICTS, select_numbers
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.federation.callback import Callback, ClientTable
from mpifed.federation.host import Host
from mpifed.federation.server import Federation


class ClientNumbers(EnginePlugin, Callback):
    """Numbers of each client that are evaluated beside f."""

    # Numbers for the record alone; a note says that they are of the true data.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["by_client"]

    def extend_host(self, host: Host, division: HostDivision) -> None:
        names = select_numbers(self.config.problem, self.config.evaluate.clients)
        host.evaluation.evaluators[ClientEvaluation.by_client.__name__] = ClientEvaluation(
            host.setup.algorithm, names
        ).by_client

    def on_evaluate(self, fed: Federation, x: Array) -> dict[str, float | ClientTable]:
        if not self.config.evaluate.clients:
            return {}
        return {"clients": fill_missing(fed.inspect(ClientEvaluation.by_client, args=(x,)))}
