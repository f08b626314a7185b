"""Selections: rules for the clients that train in a round."""

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
from mpifed.core.promises import OptionPromises, Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array, PositiveInt
from mpifed.data.formats.on_disk import open_npz, reading

# Why a selection supports no privacy: scores and odds are exact numbers, and the selected clients reveal them too.
DATA_SHOW = {
    Supports.PRIVACY: "it asks clients for exact numbers of their data, and these and the clients that it selects "
    "break the privacy that {name} guarantees here, so it must be one that looks at no data, such as uniform, or "
    "without [privacy] importance with selection.odds that are known without the data"
}
ALL_CLIENTS = '{name} guarantees privacy here for sums that have the noise of all {m} clients, so it must be "all"'
OF_ALL = {Supports.SUMS: ALL_CLIENTS}


class EmptyRound(Exception):
    """The end of a round in which nobody is selected: nothing travels, and server and clients stay as they were."""


class Selector(NamedTuple):
    """A selector of ``size`` = |S| clients a round; ``select(round, again)`` returns them, rising, or None for all.

    Rounds count from 1; ``again`` > 0 is a further selection in the round. ``learn`` makes the selector from the
    replies of all clients to ``importance`` of the algorithm; before that, it selects nobody.
    ``among(seed, size, round, again, present)`` selects ``size`` of the clients ``present``, or all of them if they are
    fewer, rising, where others are away; of a selection by scores these are the candidates. With ``probability``
    clients are drawn one by one, each independently of the others, and ``size`` is their expected number, rounded up.
    ``apart``: rounds of one client are at least so many apart, whatever the run.

        >>> every_second = mpifed.extend.Selector(2, lambda round, again: np.array([0, 2]))
        >>> every_second.select(1, 0)
        array([0, 2])
    """

    size: int
    select: Callable[[int, int], Array | None]
    batch_size: int | None = None  # ``select`` gives candidates: ``size`` stay, by score on so many samples
    score: str = "score"  # the client method that computes scores: score, score_loss or score_dual_move
    uniform: int = 0  # so many of ``size`` are drawn uniformly from clients not selected by score
    learn: Callable[[Any], Selector] | None = None
    weights: Array | None = None  # (m,) 1/(m p_i), with p_i the probability of a client over ``size``
    among: Callable[..., Array] | None = None  # None: the selection needs all clients to be there
    probability: float | None = None  # with which each client is drawn, independently; None: drawn together
    apart: int = 1  # a client of round t is not selected before round t + apart

    @property
    def varies(self) -> bool:
        """True if any number of clients may be selected in a round, also none."""
        return self.probability is not None and self.probability < 1

    def supported_promises(self, m: int) -> OptionPromises:
        """Return the promises that a run of m clients supports with this selector."""
        # Every field except these and size and select makes it ask clients; so may fields added later.
        if self._replace(weights=None, among=None, probability=None, apart=1) != Selector(self.size, self.select):
            return OptionPromises(Supports.REPEATED | Supports.DEVICES, DATA_SHOW)
        of_all = self.size >= m and not self.varies
        return OptionPromises(Supports.EVERYTHING if of_all else Supports.EVERYTHING & ~Supports.SUMS, OF_ALL)


class Selection(Component):
    """A rule that selects the clients of every round, at the server.

    >>> class First(mpifed.extend.Selection):
    ...     def selector(self, seed, m, rounds):
    ...         return mpifed.extend.Selector(2, lambda round, again: np.arange(2))
    >>> mpifed.run(selection=First(), rounds=1).selected(1).tolist()
    [0, 1]
    """

    choices: ClassVar[dict[str, str]] = {
        "all": "mpifed.federation.participation.selection:All",
        "uniform": "mpifed.federation.participation.selection:UniformSelection",
        "poisson": "mpifed.federation.participation.selection:PoissonSelection",
        "cover": "mpifed.federation.participation.selection:Cover",
        "cyclic": "mpifed.features.selection_laws.feature:Cyclic",
        "importance": "mpifed.features.selection_laws.importance:Importance",
        "biased": "mpifed.federation.participation.selection:Biased",
        "power-of-choice": "mpifed.features.selection_laws.feature:PowerOfChoice",
        "greedy": "mpifed.features.selection_laws.feature:Greedy",
        "replay": "mpifed.federation.participation.selection:Replay",
    }
    default: ClassVar[str] = "uniform"
    kind: ClassVar[str] = "selections"
    checks: ClassVar[str] = "mpifed.federation.selection_guards"

    weighs_replies: ClassVar[bool] = False  # clients are selected with different probabilities, which weigh replies
    scored_methods: ClassVar[type] = object  # protocol of the methods whose clients it can score

    def repeats_sets(self, m: int) -> bool:
        """Return whether the selected of m clients always are the same sets, none of which shares a client."""
        return False

    @abstractmethod
    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        """Return the selector of a run of ``rounds`` rounds; raise UserError for options impossible with m clients."""


class All(Selection, tag="all"):
    """Every client, every round."""

    # All clients, whatever the data are.
    supports = Supports.EVERYTHING

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        return Selector(m, lambda round, again: None, among=draw_among)


class SizedSelection(Selection):
    """A selection of ⌈share·m⌉ clients, or ``count``."""

    share: Annotated[float, Meta(gt=0, le=1, description="share ρ of the clients a round")] = 0.5
    count: Annotated[int | None, Meta(description="number of clients a round, instead of share")] = None

    def size(self, m: int) -> int:
        if self.count is None:
            # 0.3 · 10 is 3.0000000000000004 in binary: without the 1e-9 that would be 4 clients
            return max(1, math.ceil(self.share * m - 1e-9))
        if not 1 <= self.count <= m:
            raise UserError(f"selection.count = {self.count} is wrong: it must be between 1 and the {m} clients")
        return self.count


class UniformSelection(SizedSelection, tag="uniform"):
    """⌈share·m⌉ clients (or ``count``), uniform without replacement, drawn anew every round."""

    # Drawn from seed and round; the selector knows whether sums are over all clients.
    supports = Supports.EVERYTHING

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size = self.size(m)
        # r, k: round and the number of the selection in it
        return Selector(size, lambda r, k: None if size == m else draw_clients(seed, r, k, m, size), among=draw_among)


class PoissonSelection(Selection, tag="poisson"):
    """Each client with probability q = ``share``, independently of the others, drawn anew every round.

    A round has q·m clients on average, and sometimes none. Such an empty round changes nothing: no message travels, and
    server and clients stay as they were. A method that selects again within a round gives up a round in which one of
    its draws is empty. Where a method needs the number of clients beforehand, it takes ⌈q·m⌉. With clients absent
    ([system]), each of those present is drawn with probability q.
    """

    # Drawn from seed and round; the selector knows whether sums are over all clients.
    supports = Supports.EVERYTHING

    share: Annotated[float, Meta(gt=0, le=1, description="probability q of each client in a round")] = 0.5

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        q = self.share

        def select(round: int, again: int) -> Array | None:
            return None if q == 1 else np.flatnonzero(draw_independently(seed, round, again, m, q))

        def among(seed: int, size: int, round: int, again: int, present: Array) -> Array:
            # of the draws for all clients, so that a client is drawn or not whoever else is there
            return present[draw_independently(seed, round, again, m, q)[present]]

        return Selector(UniformSelection(share=q).size(m), select, among=among, probability=q)


class Cover(SizedSelection, tag="cover"):
    """Every client at least once in every s0 rounds (fedadmm, Scheme 4.1).

    In each group of s0 rounds a random permutation is dealt out, about m/s0 clients a round; further clients are drawn
    uniformly.
    """

    # Dealt from seed and group of rounds, also where a run begins within a group.
    supports = Supports.EVERYTHING

    s0: Annotated[
        PositiveInt | None, Meta(description="rounds s0 in which every client is selected (default: the fewest)")
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
            # drawn once for a group of rounds; a run resumed within a group draws it again from its key
            if again not in deals or deals[again][0] != group:
                deals[again] = group, stream(seed, "selection", group, again, 1).permutation(m)
            dealt = np.sort(deals[again][1][turn * m // s0 : (turn + 1) * m // s0])
            rest = stream(seed, "selection", round, again).choice(m - len(dealt), size - len(dealt), replace=False)
            return np.sort(np.concatenate([dealt, find_untaken(dealt, rest)]))

        return Selector(size, select)


def find_untaken(taken: Array, places: Array) -> Array:
    """Return the numbers at ``places`` among 0, 1, 2 … without those ``taken`` (rising)."""
    return places + np.searchsorted(taken - np.arange(len(taken)), places, side="right")


class ScoreSelection(SizedSelection):
    """A selection of the best by score of uniformly drawn ``candidates``."""

    candidates: Annotated[PositiveInt | None, Meta(description="size of the pool (default: all clients)")] = None

    unsupported = DATA_SHOW

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        size, pool = self.size(m), self.candidates or m
        if not size <= pool <= m:
            raise UserError(
                f"selection.candidates = {pool} is wrong: it must be between the {size} selected and the {m} clients"
            )
        batch_size = getattr(self, "batch_size", 0)
        return Selector(
            size, lambda round, again: draw_clients(seed, round, again, m, pool), batch_size, among=draw_among
        )


class Biased(ScoreSelection, tag="biased"):
    """The clients with the largest gradient norms on one random mini-batch, of uniformly drawn ``candidates``.

    The norm is that of the gradient of the algorithm's own local objective. The server sends candidates the model and
    they reply with one number; both are charged. Source: flame, Algorithm 1 (biased client selection); errata.
    """

    # Candidates and their order follow from seed and state; candidates send exact numbers of their data.
    supports = Supports.REPEATED | Supports.DEVICES

    batch_size: Annotated[int, Meta(ge=0, description="samples of the mini-batch; 0: all")] = 100


def draw_independently(seed: int, round: int, again: int, m: int, q: float) -> Array:
    """Draw each of m clients with probability q, independently: (m,) bool."""
    return stream(seed, "selection", round, again).random(m) < q


def draw_clients(seed: int, round: int, again: int, m: int, size: int) -> Array:
    """Draw ``size`` of m clients uniformly without replacement, rising."""
    return np.sort(stream(seed, "selection", round, again).choice(m, size, replace=False, shuffle=False))


def draw_among(seed: int, size: int, round: int, again: int, present: Array) -> Array:
    """Draw ``size`` of the clients ``present`` uniformly without replacement, or all where they are fewer, rising."""
    return present[draw_clients(seed, round, again, len(present), min(size, len(present)))]


class Replay(Selection, tag="replay", kw_only=True):
    """A recorded selection: row r of the array ``key`` of an NPZ file trains in round r + 1, clients counted from 0.

    A second selection of a round comes from the array whose name has a 2 appended. Fewer rows than rounds, clients
    that do not exist and clients twice in a row are refused before round one; entries of -1 are padding. Rows may have
    unequal numbers of clients: the size of the selection is then that of the smallest.
    """

    # A recording, which must not come from the data under a guarantee (docs/privacy.md).
    supports = Supports.EVERYTHING

    path: Annotated[str, Meta(description="NPZ file")]
    key: Annotated[str, Meta(description="array (rounds, clients)")] = "sel"

    def selector(self, seed: int, m: int, rounds: int) -> Selector:
        tables = {0: self.table(self.key, m, rounds)}

        def select(round: int, again: int) -> Array | None:
            if again not in tables:
                tables[again] = self.table(self.key + str(again + 1), m, rounds)
            row = tables[again][round - 1]
            return np.sort(row[row >= 0]).astype(np.int64)

        # of the smallest row, whose sum has the least noise; of all rows, so that a longer run has this size too
        return Selector(int((tables[0] >= 0).sum(axis=1).min()), select)

    def table(self, key: str, m: int, rounds: int) -> Array:
        """Read the array ``key``; raise UserError unless it serves ``rounds`` rounds of m clients."""
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
    """Read the array ``key`` of an NPZ file: (rounds, clients), whole numbers."""
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
