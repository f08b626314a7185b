"""Selections by their classes: ``mpifed.selections.Uniform(share=0.2)``."""

from mpifed.federation.laws import Cyclic, Importance
from mpifed.federation.scored import Greedy, PowerOfChoice
from mpifed.federation.selection import All, Biased, Cover, Replay, Uniform

__all__ = ["All", "Biased", "Cover", "Cyclic", "Greedy", "Importance", "PowerOfChoice", "Replay", "Uniform"]
