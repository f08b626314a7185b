"""Selections by their classes: ``mpifed.selections.UniformSelection(share=0.2)``."""

from mpifed.features.selection_laws.importance import Importance
from mpifed.features.selection_laws.turns_and_scores import Cyclic, Greedy, PowerOfChoice
from mpifed.federation.participation.selection import All, Biased, Cover, Replay, UniformSelection

__all__ = ["All", "Biased", "Cover", "Cyclic", "Greedy", "Importance", "PowerOfChoice", "Replay", "UniformSelection"]
