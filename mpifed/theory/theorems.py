"""The certificate of a method, from the conditions that its theorem names."""

import importlib
from typing import Any, Protocol

from mpifed.theory.statements import Certificate, Condition, Known, nothing


class Method(Protocol):
    """A method: ``theorem`` names a function and whether it speaks of old uploads; where it is false, ``why`` not."""

    @property
    def theorem(self) -> Any: ...

    @classmethod
    def label(cls) -> str: ...


def certificate(method: Method, known: Known) -> Certificate:
    """The certificate of a method with its options; of one without a theorem: that there is none."""
    theorem = vars(type(method)).get("theorem")  # its own: a method that derives from another one may change anything
    if not theorem:
        return nothing(method.label().rpartition(":")[2], "" if theorem is None else theorem.why)
    module, _, function = theorem.function.partition(":")
    found: Certificate = getattr(importlib.import_module(module), function)(method, known)
    if known.selection == "arrivals" and not theorem.delayed:
        age = Condition.of("oldest upload in rounds = 0", known.oldest, "=", 0.0, "its rounds are synchronous")
        return found._replace(conditions=[*found.conditions, age])
    return found
