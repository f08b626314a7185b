"""What does not go together with [asynchronous]."""

from __future__ import annotations

from typing import Any

from mpifed.algorithms.base import Algorithm
from mpifed.compressors.base import Identity
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.federation.arrivals import Asynchronous


def refuse_asynchronous(config: Any, table: Asynchronous) -> None:
    """UserError for settings of an experiment that have no meaning in an asynchronous run."""
    algorithm = config.algorithm
    name, given = algorithm.label(), f"asynchronous.arrivals = {table.arrivals} is wrong"
    if config.system is None:
        raise UserError(
            f"{given} without a table [system]: who arrives first follows from the speed, bandwidth and latency of the "
            "clients, which that table states"
        )
    if not algorithm.asynchronous:
        able = [other for other in Algorithm.choices if Algorithm.member(other, "").asynchronous]
        raise UserError(
            f"{given}: {name} cannot be asynchronous, because {algorithm.synchronous}; {', '.join(able)} can, and "
            f"without [asynchronous] so can {name} run"
        )
    if table.arrivals < algorithm.fewest:
        raise UserError(f"{given}: {name} needs at least {algorithm.fewest} clients a round")
    key = next((key for key in config.changed() if key.partition(".")[0] == "selection"), None)
    if key is not None and config.selection.label() != "all":
        raise UserError(
            f"{key} = {toml_value(chosen(config, key))} is wrong with [asynchronous]: all clients work, and those that "
            "arrive first take part, so leave [selection] out"
        )
    if config.masks is not None:
        raise UserError(
            "masks cannot be used with [asynchronous]: clients agree on masks before they compute, and which uploads "
            "are added up is known only when they arrive"
        )
    refuse_compression(config)


def chosen(config: Any, key: str) -> object:
    """The value of a key of [selection], the name for the table itself."""
    return config.selection.label() if "." not in key else getattr(config.selection, key.partition(".")[2])


def refuse_compression(config: Any) -> None:
    """UserError for compression that asks for what an asynchronous run has not: all clients at the same round."""
    table, name = config.compress, config.algorithm.label()
    if table is None:
        return
    if table.down is not None and not isinstance(table.down, Identity):
        raise UserError(
            f'compress.down = "{table.down.label()}" is wrong with [asynchronous]: compressed downloads go to all '
            "clients at the same time, and there each gets its model when it arrives, so leave it out"
        )
    if table.up is not None and not isinstance(table.up, Identity) and config.algorithm.uses_last():
        raise UserError(
            f'compress.up = "{table.up.label()}" is wrong with [asynchronous]: the server of {name} keeps the last '
            "uploads of all clients, and their changes cannot be compressed while others arrive, so leave it out"
        )
