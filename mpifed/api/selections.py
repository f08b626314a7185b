"""Selections by their classes: ``mpifed.selections.Uniform(share=0.2)``."""

from mpifed.federation.participation.cyclic import Cyclic
from mpifed.federation.participation.importance import Importance
from mpifed.federation.participation.scored import Greedy, PowerOfChoice
from mpifed.federation.participation.selection import All, Biased, Cover, Replay, Uniform

__all__ = ["All", "Biased", "Cover", "Cyclic", "Greedy", "Importance", "PowerOfChoice", "Replay", "Uniform"]
