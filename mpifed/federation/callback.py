"""Callbacks: what plug-ins do before, between and after rounds, at the server."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.method import ServerState
from mpifed.federation.server import Federation

ClientTable = dict[str, Array]  # numbers of each client (m,), by name


class Callback:
    """A hook at the server before the first round, after each and after the last; by default it does nothing.

    A callback lives on rank 0. It may read the server, ask its clients by ``fed.inspect``, which is charged to no
    ledger, and change neither.

        >>> class Printed(mpifed.extend.Plugin, mpifed.extend.Callback):
        ...     def after_round(self, fed, server):
        ...         print(fed.round, len(server.x))
    """

    @cached_property
    def state(self) -> dict[str, Array]:
        """Arrays by name that the callback keeps, which checkpoints save and restore."""
        return {}

    def notes(self) -> Iterable[str]:
        """Return sentences that a user should read before round one, and that the result keeps."""
        return ()

    def attributes(self, replayed: int) -> dict[str, Any]:
        """Return attributes of the result; ``replayed`` of its rounds are run again."""
        return {}

    def on_start(self, fed: Federation) -> dict[str, Any]:
        """Return what the result gets before the first round, as ``on_end`` does."""
        return {}

    def after_round(self, fed: Federation, server: ServerState) -> None:
        """Do something after a round, or after round 0, the start; ``server`` is the state that it ends with."""

    def on_evaluate(self, fed: Federation, x: Array) -> dict[str, float | ClientTable]:
        """Return what is recorded of the model x (n,): a number is a column of /rounds, a table has one by client."""
        return {}

    def after_evaluation(self, fed: Federation, x: Array, row: Mapping[str, float]) -> None:
        """Do something once the model x (n,) is evaluated; ``row`` has all columns of the round."""

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        """Return what the result gets after the last round, with its model x (n,): tables by name.

        A table has arrays by column; those of "clients" (m,) go to /clients. "certificate" is a certificate, "personal"
        are models (m, n), "best" is a model (n,) with the round that it is of.
        """
        return {}


def export_callbacks(callbacks: Iterable[Callback]) -> dict[str, Array]:
    """Return the arrays that callbacks keep, under names with a blank.

    UserError for other things than arrays, and for two callbacks of one name that keep some.
    """
    arrays: dict[str, Array] = {}
    for callback in callbacks:
        name = type(callback).__name__
        try:
            own = {state_prefix(callback) + key: np.asarray(array) for key, array in dict(callback.state).items()}
        except (TypeError, ValueError):
            raise UserError(f"{name}.state is no table of arrays by name, which checkpoints save") from None
        if own and any(key.startswith(state_prefix(callback)) for key in arrays):
            raise UserError(f"two callbacks of the name {name} keep state: give one of them another name")
        arrays |= own
    return arrays


def restore_callbacks(callbacks: Iterable[Callback], arrays: Mapping[str, Array]) -> None:
    """Restore what ``export_callbacks`` returned from the arrays of a checkpoint."""
    for callback in callbacks:
        prefix = state_prefix(callback)
        callback.state.update({k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)})


def state_prefix(callback: Callback) -> str:
    """Return how the names of its arrays begin in a checkpoint, where transforms have names like a class too."""
    return f"callback {type(callback).__name__} "
