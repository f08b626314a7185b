"""Which clients train in a round."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps, Option
from mpifed.core.streams import stream
from mpifed.core.typing import Array, Count
from mpifed.data.formats.on_disk import open_npz, reading

# Why a selection keeps no privacy: scores and odds are exact numbers, and who takes part tells of them too.
DATA_SHOW = {
    Keeps.PRIVACY: "it asks clients for exact numbers of their data, and these and the clients that it selects break "
    "the privacy that {name} guarantees here, so it must be one that looks at no data, such as uniform, or importance "
    "with selection.odds that are known without the data"
}
ALL_CLIENTS = '{name} guarantees privacy here for sums that have the noise of all {m} clients, so it must be "all"'
OF_ALL = {Keeps.SUMS: ALL_CLIENTS}


class Selector(NamedTuple):
    """``size`` = |S| clients a round; ``select(round, again)`` those of round 1, 2 …, rising, or None for all.

    ``again`` > 0 is a further selection in that round. ``learn`` makes the selector out of what all clients reply to
    ``importance`` of the algorithm; before, it selects nobody.

        >>> every_second = mpifed.Selector(2, lambda round, again: np.array([0, 2]))
        >>> every_second.select(1, 0)
        array([0, 2])
    """

    size: int
    select: Callable[[int, int], Array | None]
    batch_size: int | None = None  # those selected are candidates: keep ``size``, by score on so many samples
    score: str = "score"  # the client method that scores: this one, score_loss or score_move
    uniform: int = 0  # so many of ``size`` are drawn uniformly from the clients that are not ahead by score
    learn: Callable[[Any], Selector] | None = None
    weights: Array | None = None  # (m,) 1/(m p_i), with p_i the probability of a client over ``size``

    def kept(self, m: int) -> Option:
        """What a run of m clients keeps with it."""
        # Everything but size, select and weights makes it ask clients, what is added later too.
        if self._replace(weights=None) != Selector(self.size, self.select):
            return Option(Keeps.REPEATED | Keeps.DEVICES, DATA_SHOW)
        return Option(Keeps.EVERYTHING if self.size >= m else Keeps.EVERYTHING & ~Keeps.SUMS, OF_ALL)


class Selection(Component):
    """A rule that selects the clients of every round, at the server.

    >>> class First(mpifed.Selection):
    ...     def selector(self, seed, m, rounds):
    ...         return mpifed.Selector(2, lambda round, again: np.arange(2))
    >>> mpifed.run(selection=First(), rounds=1).selected(1).tolist()
    [0, 1]
    """

    choices: ClassVar[dict[str, str]] = {
        "all": "mpifed.federation.participation.selection:All",
        "uniform": "mpifed.federation.participation.selection:Uniform",
        "cover": "mpifed.federation.participation.selection:Cover",
        "cyclic": "mpifed.features.selection_laws.cyclic:Cyclic",
        "importance": "mpifed.features.selection_laws.importance:Importance",
        "biased": "mpifed.federation.participation.selection:Biased",
        "power-of-choice": "mpifed.features.selection_laws.scored:PowerOfChoice",
        "greedy": "mpifed.features.selection_laws.scored:Greedy",
        "replay": "mpifed.federation.participation.selection:Replay",
    }
    default: ClassVar[str] = "uniform"
    kind: ClassVar[str] = "selections"
    checks: ClassVar[str] = "mpifed.federation.selection_guards"

    @abstractmethod
    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        """The selector of a run of ``rounds`` rounds; UserError for what cannot be with m clients."""


class All(Selection, tag="all"):
    """Every client, every round."""

    # Everyone, whatever the data are.
    keeps = Keeps.EVERYTHING

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        return Selector(m, lambda round, again: None)


class Sampled(Selection):
    """⌈share·m⌉ clients, or ``count``."""

    share: Annotated[float, Meta(gt=0, le=1, description="share ρ of the clients a round")] = 0.5
    count: Annotated[int | None, Meta(description="number of clients a round, instead of share")] = None

    def size(self, m: int) -> int:
        if self.count is None:
            # 0.3 · 10 is 3.0000000000000004 in binary: without the 1e-9 that would be 4 clients
            return max(1, math.ceil(self.share * m - 1e-9))
        if not 1 <= self.count <= m:
            raise UserError(f"selection.count = {self.count} is wrong: it must be between 1 and the {m} clients")
        return self.count


class Uniform(Sampled, tag="uniform"):
    """⌈share·m⌉ clients (or ``count``), uniform without replacement, drawn anew every round."""

    # Drawn from seed and round; the selector says whether sums are over all clients.
    keeps = Keeps.EVERYTHING

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size = self.size(m)
        return Selector(size, lambda round, again: None if size == m else drawn(seed, round, again, m, size))


class Cover(Sampled, tag="cover"):
    """Every client at least once in every s0 rounds (fedadmm, Scheme 4.1).

    In each group of s0 rounds a random permutation is dealt out, about m/s0 clients a round; the rest of a set is
    uniform.
    """

    # Dealt from seed and group of rounds, also where a run begins within a group.
    keeps = Keeps.EVERYTHING

    s0: Annotated[
        Count | None, Meta(description="rounds s0 in which every client is selected (default: the fewest)")
    ] = None

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size = self.size(m)
        fewest = -(-m // size)
        s0 = self.s0 or fewest
        if s0 < fewest:
            raise UserError(
                f"selection.s0 = {s0} is wrong: with {size} of {m} clients a round it takes at least {fewest} rounds"
            )
        deals: dict[int, tuple[int, Array]] = {}  # again -> group and its permutation

        def select(round: int, again: int) -> Array | None:
            group, turn = divmod(round - 1, s0)
            # once for a group of rounds; a run that is resumed in its midst draws it again from the same key
            if again not in deals or deals[again][0] != group:
                deals[again] = group, stream(seed, "selection", group, again, 1).permutation(m)
            own = np.sort(deals[again][1][turn * m // s0 : (turn + 1) * m // s0])
            rest = stream(seed, "selection", round, again).choice(m - len(own), size - len(own), replace=False)
            return np.sort(np.concatenate([own, nth_other(own, rest)]))

        return Selector(size, select)


def nth_other(taken: Array, places: Array) -> Array:
    """Of the numbers 0, 1, 2 … that are not ``taken`` (rising), those at ``places``."""
    return places + np.searchsorted(taken - np.arange(len(taken)), places, side="right")


class Scored(Sampled):
    """The best by score of uniformly drawn ``candidates``."""

    candidates: Annotated[Count | None, Meta(description="size of the pool (default: all clients)")] = None

    unkept = DATA_SHOW

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size, pool = self.size(m), self.candidates or m
        if not size <= pool <= m:
            raise UserError(
                f"selection.candidates = {pool} is wrong: it must be between the {size} selected and the {m} clients"
            )
        return Selector(size, lambda round, again: drawn(seed, round, again, m, pool), getattr(self, "batch_size", 0))


class Biased(Scored, tag="biased"):
    """Of uniformly drawn ``candidates`` those with the largest gradient norms on one random mini-batch.

    The norm is that of the gradient of the algorithm's own local objective. The server sends candidates the model and
    they reply with one number; both are charged.  Source: flame, Algorithm 1 (biased client selection); errata.
    """

    # Candidates and their order follow from seed and state; candidates send exact numbers of their data.
    keeps = Keeps.REPEATED | Keeps.DEVICES

    batch_size: Annotated[int, Meta(ge=0, description="samples of the mini-batch; 0: all")] = 100


def drawn(seed: int, round: int, again: int, m: int, size: int) -> Array:
    """``size`` of m clients, uniform without replacement, rising."""
    return np.sort(stream(seed, "selection", round, again).choice(m, size, replace=False, shuffle=False))


class Replay(Selection, tag="replay", kw_only=True):
    """A recorded selection: row r of the array ``key`` of an NPZ file trains in round r + 1, clients counted from 0.

    A second selection of a round comes from the array whose name has a 2 appended. Fewer rows than rounds, clients
    that do not exist and clients twice in a row are refused before round one; entries of -1 are padding. Rows may have
    unequal numbers of clients: what depends on the size of a selection gets that of the smallest.
    """

    # A recording, which must not come from the data under a guarantee (docs/privacy.md).
    keeps = Keeps.EVERYTHING

    path: Annotated[str, Meta(description="NPZ file")]
    key: Annotated[str, Meta(description="array (rounds, clients)")] = "sel"

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        tables = {0: self.table(self.key, m, rounds)}

        def select(round: int, again: int) -> Array | None:
            if again not in tables:
                tables[again] = self.table(self.key + str(again + 1), m, rounds)
            row = tables[again][round - 1]
            return np.sort(row[row >= 0]).astype(np.int64)

        # the smallest row, whose sum has the least noise; of all rows, so that a run that goes on for longer has it too
        return Selector(int((tables[0] >= 0).sum(axis=1).min()), select)

    def table(self, key: str, m: int, rounds: int) -> Array:
        """The array ``key``, refused where it cannot serve ``rounds`` rounds of m clients."""
        table = read_table(self.path, key)
        if len(table) < rounds:
            raise UserError(f"selection.path = {self.path!r} has {len(table)} rows in {key!r}, but rounds = {rounds}")
        if table.size == 0 or table.max() >= m or table.min() < -1 or (table.max(axis=1) < 0).any():
            raise UserError(f"selection.path = {self.path!r}: every row of {key!r} must name clients from 0 to {m - 1}")
        ordered = np.sort(table, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            raise UserError(f"selection.path = {self.path!r}: a row of {key!r} names a client twice")
        return table


def read_table(path: str, key: str) -> Array:
    """The array ``key`` of an NPZ file: (rounds, clients), whole numbers."""
    file = Path(os.path.expanduser(path))
    if not os.path.isfile(file):
        raise UserError(f"selection.path = {path!r} is no file: it must be an NPZ file with a recorded selection")
    try:
        with reading(file, "NPZ"):
            arrays = open_npz(file)
            table = arrays.get(key)
            values = table[:] if table is not None and len(table.shape) == 2 and table.dtype.kind in "iu" else None
    except UserError as error:
        raise UserError(f"selection.path = {path!r}: {error}") from None
    if table is None:
        raise UserError(
            f"selection.key = {key!r} is not in {path!r}; there is {', '.join(arrays) or 'no array with a name'}"
        )
    if values is None:
        raise UserError(
            f"selection.path = {path!r}: {key!r} must be a table of whole numbers (rounds, clients), "
            f"not {table.dtype} {table.shape}"
        )
    return np.asarray(values)
