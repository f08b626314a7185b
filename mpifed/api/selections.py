"""Selections by their classes: ``mpifed.selections.UniformSelection(share=0.2)``."""

from mpifed.features.selection_laws.cyclic import Cyclic
from mpifed.features.selection_laws.importance import Importance
from mpifed.features.selection_laws.scored import Greedy, PowerOfChoice
from mpifed.federation.participation.selection import All, Biased, Cover, Replay, UniformSelection

__all__ = ["All", "Biased", "Cover", "Cyclic", "Greedy", "Importance", "PowerOfChoice", "Replay", "UniformSelection"]
