"""What is stored of each client where the study asks for it: ``evaluate.clients``."""

from typing import Any

from mpifed.core.component import Component
from mpifed.core.typing import Array
from mpifed.federation.client_numbers import known, numbers
from mpifed.federation.local import Local
from mpifed.federation.method import Personalised


class ByClient(Component):
    """An evaluation of any method whose numbers are not added up over clients."""

    def by_client(self, f: Local, client: Any, x: Array, wanted: Array) -> dict[str, Array]:
        """The numbers of each client at the server's model x (n,), by name: (c,) each; ``wanted``: their places among
        those that the problem has. Of a method with personal models also the numbers at these, personal_….
        """
        there = known(f.problem)
        names = [there[int(k)] for k in wanted]
        found = numbers(f, x, names)
        if isinstance(self, Personalised):
            own = numbers(f, self.personalised(f, client), names)
            found |= {f"personal_{name}": values for name, values in own.items()}
        return found
