"""Division of each client's samples into those for training, validation and testing."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import is_number
from mpifed.core.errors import UserError
from mpifed.core.roles import HELD_OUT
from mpifed.core.streams import streams
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import DatasetWrapper, GeneratedDataset

# Of each client's samples: a share, or how many.
Amount = Annotated[float, Meta(ge=0, lt=1)] | Annotated[int, Meta(ge=0)]
TestAmount = Annotated[Amount, Meta(description="share, or number, of each client's samples that is kept for testing")]
ValidationAmount = Annotated[
    Amount, Meta(description="share, or number, of each client's samples that is kept to choose by, not to report")
]
Stratify = Annotated[
    bool, Meta(description="test and validation samples have the classes of their client in its proportions")
]
AT_ONCE = 1 << 10  # clients whose streams are in memory at the same time


def amounts_of(data: Any, held: Mapping[str, Any]) -> dict[str, Amount]:
    """Return the amounts above 0 by role that [data] states of samples to hold out, beside those that it ``held``."""
    amounts = {role: getattr(data, role) for role in HELD_OUT if role not in held}
    return {role: amount for role, amount in amounts.items() if amount and is_number(amount)}


def count_samples_held_out(sizes: Array, amounts: Mapping[str, Amount]) -> dict[str, Array]:
    """Return the number of samples of each client for each role (m,): rounded shares, or numbers, but never all.

    Raises UserError where no client has a sample for a role, or where none is left for training.
    """
    # Not by rounding of numpy, which takes halves to even numbers: 2 of 2.5, but 4 of 3.5.
    shares = {role: amount * sizes + 0.5 if amount < 1 else amount for role, amount in amounts.items()}
    wanted = {role: np.floor(np.broadcast_to(share, sizes.shape)).astype(np.int64) for role, share in shares.items()}
    stated = " and ".join(f"data.{role} = {amount}" for role, amount in amounts.items())
    largest = f"because no client has more than {sizes.max()} samples"
    alone = len(amounts) == 1 and next(iter(amounts.values())) < 1
    if not alone and (sum(wanted.values()) >= sizes).all():
        leave = "leaves" if len(amounts) == 1 else "leave"
        raise UserError(f"{stated} {leave} no client a training sample, {largest}: lower the shares or numbers")
    left = sizes - 1
    for role, count in wanted.items():
        wanted[role] = np.minimum(count, left)
        left = left - wanted[role]
        if not wanted[role].any():
            instead = "to evaluate on the training samples" if role == "test" else "to do without"
            raise UserError(
                f"data.{role} = {amounts[role]} leaves no client a {role} sample, {largest}: "
                f"use fewer clients, or data.{role} = 0.0 {instead}"
            )
    return wanted


def draw_roles(sizes: Array, counts: Mapping[str, Array], seed: int, first: int, labels: Array | None = None) -> Array:
    """Draw the role of each sample (Σ sizes,): 0 for training, k for the k-th role of ``counts``.

    Client ``first`` + i has counts[role][i] random ones of its sizes[i] samples in a role; with ``labels`` (Σ sizes,)
    as many of each class as is its share, by the largest remainder, and at least one of each is left for training.
    """
    roles = np.zeros(int(sizes.sum()), np.int8)
    starts = np.cumsum(sizes) - sizes
    some = np.flatnonzero(sum(counts.values()))
    for k in range(0, len(some), AT_ONCE):
        ids = some[k : k + AT_ONCE]
        # A stream for each client, by its number among all, so that every rank draws the same samples for it.
        for i, rng in zip(ids.tolist(), streams(seed, "split", first + ids + 1), strict=True):
            samples = slice(starts[i], starts[i] + sizes[i])
            numbers = [int(count[i]) for count in counts.values()]
            if labels is None:
                draw_plainly(roles[samples], numbers, rng)
            else:
                draw_by_class(roles[samples], numbers, rng, labels[samples])
    return roles


def draw_plainly(roles: Array, counts: list[int], rng: np.random.Generator) -> None:
    """Give the role k + 1 to counts[k] random samples of a client that have none yet, in place."""
    for k, count in enumerate(counts, 1):
        free = np.flatnonzero(roles == 0) if k > 1 else None
        d = len(roles) if free is None else len(free)
        # a single number is chosen as choice does it, in a sixth of its time
        drawn = rng.integers(d) if count == 1 else rng.choice(d, count, replace=False, shuffle=False)
        roles[drawn if free is None else free[drawn]] = k


def draw_by_class(roles: Array, counts: list[int], rng: np.random.Generator, labels: Array) -> None:
    """Give the role k + 1 to about counts[k] random samples of a client, of each class its share, in place."""
    _, members = np.unique(labels, return_counts=True)
    shuffled = rng.permutation(len(labels))
    by_class = np.split(shuffled[np.argsort(labels[shuffled], kind="stable")], np.cumsum(members)[:-1])
    used = np.zeros_like(members)
    for k, count in enumerate(counts, 1):
        taken = apportion(count, members, members - 1 - used)
        for rows, begin, more in zip(by_class, used.tolist(), taken.tolist(), strict=True):
            roles[rows[begin : begin + more]] = k
        used += taken


def apportion(count: int, members: Array, most: Array) -> Array:
    """Divide ``count`` in proportion to ``members`` (C,) by the largest remainder, at most ``most`` (C,) of each."""
    exact = count * members / members.sum()
    parts = np.minimum(np.floor(exact).astype(np.int64), most)
    order = np.argsort(parts - exact, kind="stable")
    while (short := count - int(parts.sum())) > 0 and (open_ := order[parts[order] < most[order]]).size:
        parts[open_[:short]] += 1
    return parts


def split_source(generated: GeneratedDataset, data: Any) -> DatasetWrapper | GeneratedDataset:
    """Return a generated data set in which each client holds out the samples that [data] states."""
    amounts = amounts_of(data, {})
    return SplitDataset(generated, amounts) if amounts else generated


class SplitDataset(DatasetWrapper):
    """A generated data set in which each client holds out samples for testing and validation."""

    def __init__(self, generated: GeneratedDataset, amounts: Mapping[str, Amount]) -> None:
        self.counts = count_samples_held_out(generated.sizes, amounts)
        held = {f"sizes_{role}": count for role, count in self.counts.items()}
        super().__init__(generated, sizes=generated.sizes - sum(self.counts.values()), **held)
        self.seed = generated.seed

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        X, y = self.inner.rows(lo, hi)
        counts = {name: count[lo:hi] for name, count in self.counts.items()}
        code = [*counts].index(role) + 1 if role in counts else 0
        rows = draw_roles(self.inner.sizes[lo:hi], counts, self.seed, lo) == code
        return X[rows], y[rows]
