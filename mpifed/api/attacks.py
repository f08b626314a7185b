"""Attacks by their classes: ``mpifed.attacks.SignFlip(clients=0.2)``."""

from mpifed.features.attack.attacks import InnerProduct, LabelFlip, Little, Random, SignFlip

__all__ = ["InnerProduct", "LabelFlip", "Little", "Random", "SignFlip"]
