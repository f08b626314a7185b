"""Clients on simulated devices."""

from __future__ import annotations

from mpifed.federation.timing.system import System

M = 20000  # clients, where shares and means are measured


def system(**table):
    return System.build(table, "system")
