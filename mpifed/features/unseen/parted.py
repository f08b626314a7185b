"""Clients that never train: they are taken out of a data set, whose other clients keep their order."""

import difflib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.roles import TRAINING, Role, left_out, role_of
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import listed
from mpifed.data.reordered import Reordered

Wanted = float | int | str | Sequence[int | str]  # a share, how many, or clients by name and number


class Newcomers(NamedTuple):
    """Clients that never train, the last of ``data`` from ``first`` on; ``ids`` (m,): the clients of the data in it."""

    data: Dataset
    first: int
    ids: Array

    @property
    def role(self) -> Role:
        """The samples on which they are evaluated."""
        return role_of(None if self.data.sizes_test is None else self.data.sizes_test[self.first :])


def parted(data: Dataset, wanted: Wanted, seed: int) -> tuple[Dataset, Newcomers]:
    """The data of the clients that train, and those that never do: a share or number drawn with ``seed``, or given by
    names of the data's ``owners`` and by numbers.

    UserError where one of the two would be empty, and for clients that are not there.
    """
    if isinstance(wanted, float | int):
        chosen = drawn(data.m, wanted, seed)
    else:
        chosen = given(data, [wanted] if isinstance(wanted, str) else wanted)
    rest = np.setdiff1d(np.arange(data.m), chosen)
    ids = np.concatenate([rest, chosen])
    train = Reordered(data, rest)
    many = f"{len(chosen)} of the {data.m} clients never train" if len(chosen) > 1 else "1 client never trains"
    train.notes = (*data.notes, f"{many} and {len(rest)} do: evaluate.unseen")
    found = Newcomers(Reordered(data, ids), len(rest), ids)
    if found.role.name == TRAINING:
        train.notes += ("unseen clients have no test samples, so they are evaluated on what their own steps train on",)
    train.notes += tuple(left_out(found.role, len(chosen), ["their numbers"], "unseen clients"))
    return train, found


def drawn(m: int, wanted: float, seed: int) -> Array:
    """A share of m clients below 1, or a number of them: rising."""
    count = max(1, round(wanted * m)) if wanted < 1 else int(wanted)
    if count >= m:
        raise UserError(
            f"evaluate.unseen = {wanted} is wrong: of {m} clients {count} would never train, so leave one at least"
        )
    return np.sort(stream(seed, "unseen").choice(m, count, replace=False, shuffle=False))


def given(data: Dataset, wanted: Sequence[int | str]) -> Array:
    """Clients given by their names or numbers: rising."""
    m = data.m
    numbers = [numbered(data, client) if isinstance(client, str) else client for client in wanted]
    chosen = np.unique(np.asarray(numbers, np.int64))
    if len(chosen) < len(wanted):
        raise UserError("evaluate.unseen names a client twice: name each once")
    if chosen[-1] >= m:
        raise UserError(f"evaluate.unseen names client {chosen[-1]}, and there are the clients 0 to {m - 1}")
    if len(chosen) == m:
        raise UserError(f"evaluate.unseen names all {m} clients: at least one must train")
    return chosen


def numbered(data: Dataset, name: str) -> int:
    """The number of the client with this name."""
    if name in data.owners:
        return data.owners.index(name)
    wrong = f"evaluate.unseen names client {name!r}, and"
    if not data.owners:
        raise UserError(f"{wrong} clients have no names here: write their numbers, 0 to {data.m - 1}, as in [0, 2]")
    near = difflib.get_close_matches(name, data.owners, 1)
    raise UserError(f"{wrong} the clients are {listed(data.owners)}" + (f"; did you mean {near[0]!r}?" if near else ""))
