"""Selections by their classes: ``mpifed.selections.Uniform(share=0.2)``."""

from __future__ import annotations

from mpifed.federation.selection import All, Biased, Cover, Replay, Uniform

__all__ = ["All", "Biased", "Cover", "Replay", "Uniform"]


def __dir__() -> list[str]:
    return __all__
