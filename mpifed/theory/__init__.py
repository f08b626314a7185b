"""Certificates of methods: the conditions and bounds of their theorems. Each paper has a module of its own here."""

from mpifed.core.members import lazy_stub

__getattr__, __dir__, __all__ = lazy_stub(__name__, __file__)
