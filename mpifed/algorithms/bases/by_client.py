"""What is stored of each client where the study asks for it: ``evaluate.clients``."""

from typing import Any

from mpifed.core.component import Component
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.method import Personalised


class ByClient(Component):
    """An evaluation of any method whose numbers are not added up over clients."""

    def by_client(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The accuracy of each client at the server's model x (n,), where there are classes, and what the problem has
        measured, by name: (c,) each. Of a method with personal models also the accuracy of these.
        """
        found = {}
        if f.problem.classifies():
            found["accuracy"] = f.accuracy(x)[0]
        if f.problem.classifies() and isinstance(self, Personalised):
            found["personal_accuracy"] = f.accuracy(self.personalised(f, client))[0]
        if f.problem.measured():
            found |= zip(f.problem.measured(), f.measure(x), strict=True)
        return found
