"""Selections by their classes: ``mpifed.selections.Uniform(share=0.2)``."""

from __future__ import annotations

from mpifed.federation.participation.importance import Cyclic, Importance
from mpifed.federation.participation.scored import Greedy, PowerOfChoice
from mpifed.federation.participation.selection import All, Biased, Cover, Replay, Uniform

__all__ = ["All", "Biased", "Cover", "Cyclic", "Greedy", "Importance", "PowerOfChoice", "Replay", "Uniform"]


def __dir__() -> list[str]:
    return __all__
