"""What hosts evaluate of each client where the study asks for it: ``evaluate.clients``."""

from collections.abc import Sequence
from typing import Any

from mpifed.core.typing import Array
from mpifed.features.by_client.client_numbers import numbers
from mpifed.federation.local import Local
from mpifed.federation.method import Method, Personalised


class OfClients:
    """An evaluation of any method whose numbers ``names`` are not added up over clients."""

    def __init__(self, method: Method, names: Sequence[str]) -> None:
        self.method = method
        self.names = names

    def by_client(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The numbers of each client at the server's model x (n,), by name: (c,) each; of a method with personal models
        also the numbers at these, personal_….
        """
        found = numbers(f, x, self.names)
        if isinstance(self.method, Personalised):
            found |= numbers(f, self.method.personalised(f, client), self.names, "personal_{}")
        return found
