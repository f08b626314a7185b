"""Partitions: rules that divide the d samples of a pool among m clients."""

import heapq
from abc import abstractmethod
from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.component import Component, shorten_value
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.toml import as_list, toml_value
from mpifed.core.typing import Array

BY_LABEL = "the labels of all samples say which client each belongs to"


class Partition(Component):
    """A rule that divides the rows of a pool among clients.

    >>> class ByTurns(mpifed.extend.Partition):
    ...     def deal(self, y, m, rng):
    ...         owner = np.arange(len(y)) % m
    ...         return np.argsort(owner, kind="stable"), np.bincount(owner, minlength=m)
    >>> mpifed.run(data=mpifed.arrays(X, y, 4, partition=ByTurns()), rounds=1).clients["samples"]
    array([15, 15, 15, 15])
    """

    choices: ClassVar[dict[str, str]] = {
        "iid": "mpifed.data.partition:Iid",
        "contiguous": "mpifed.data.partition:Contiguous",
        "sizes": "mpifed.data.partition:Sizes",
        "shards": "mpifed.data.partition:Shards",
        "classes": "mpifed.data.partition:Classes",
        "dirichlet": "mpifed.data.partition:Dirichlet",
        "dirichlet-clients": "mpifed.data.partition:DirichletClients",
    }
    default: ClassVar[str] = "iid"
    kind: ClassVar[str] = "partitions"
    checks: ClassVar[str] = "mpifed.data.data_guards"
    common: ClassVar[str] = ""  # how the client of a sample depends on all samples, in words

    def describe(self) -> str:
        """Return the name and the options of the partition as a text."""
        options = {key: value for key, value in msgspec.structs.asdict(self).items() if value is not None}
        shown = [f"{key} = {'given' if np.ndim(value) else toml_value(value)}" for key, value in options.items()]
        return ", ".join([self.label(), *shown])

    def split(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Divide the rows with labels y (d,) among m clients.

        Returns ``order``, distinct row numbers, and ``sizes`` (m,), all at least 1. Client i owns the next ``sizes[i]``
        entries of ``order``. Raises UserError where the partition is impossible.
        """
        if m > len(y):
            raise UserError(f"data.clients = {m} is more than the {len(y)} samples: each client needs at least one")
        order, sizes = self.deal(y, m, rng)
        return np.asarray(order, dtype=np.int64), np.asarray(sizes, dtype=np.int64)

    @abstractmethod
    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return ``order`` and ``sizes`` as split() does, for 1 <= m <= d."""


class Iid(Partition, tag="iid"):
    """Shuffled samples in parts of equal size, up to a difference of 1. Source: as of ``shards``."""

    # Decided by the numbers of rows and the seed.
    supports = Supports.EVERYTHING

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return rng.permutation(len(y)), np.diff(even_edges(len(y), m))


class Contiguous(Partition, tag="contiguous"):
    """Consecutive samples in the order of the data, not shuffled; the first d mod m clients have one more."""

    # Decided by the numbers of rows.
    supports = Supports.EVERYTHING

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        least, more = divmod(len(y), m)
        return np.arange(len(y)), least + (np.arange(m) < more)


class Sizes(Partition, tag="sizes"):
    """Shuffled samples; sizes as given, the rest is left out, or random as in FedGiA's program: min d_i > least·d/m."""

    # Decided by the numbers of rows, the seed and the study.
    supports = Supports.EVERYTHING

    sizes: Annotated[
        list[int] | int | None,
        Meta(description="samples of each client, a list or one number for all (default: random cut points)"),
    ] = None
    least: Annotated[float, Meta(ge=0, lt=1, description="no random size is below this share of the mean d/m")] = 0.025

    def __post_init__(self) -> None:
        if self.sizes is not None and min(as_list(self.sizes), default=0) < 1:
            right = "a list of whole numbers, each at least 1, or one such number"
            raise ValueError(f"sizes = {shorten_value(self.sizes)} is wrong: it must be {right}")

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        d = len(y)
        order = rng.permutation(d)
        if self.sizes is None:
            return order, self.draw_sizes(d, m, rng)
        sizes = as_list(self.sizes, m)
        if len(sizes) != m:
            raise UserError(f"data.partition.sizes has {len(sizes)} entries, but data.clients = {m}: give {m} sizes")
        if sum(sizes) > d:
            raise UserError(f"data.partition.sizes adds up to {sum(sizes)}, but there are only {d} samples")
        return order[: sum(sizes)], np.array(sizes)

    def draw_sizes(self, d: int, m: int, rng: np.random.Generator) -> Array:
        """Draw sizes (m,) between random cut points, uniform among all sizes with min d_i > least·d/m."""
        # The errata redraw cut points until no size is too small, which takes 0.975^-(m-1) attempts. Drawing sizes for
        # the samples above m times the smallest size, and adding that size to each, has the same distribution.
        spare = int(self.least * d / m)
        free = d - m * spare
        if free < m:
            large = f"data.partition.least = {self.least} is too large"
            raise UserError(f"{large} for {d} samples and data.clients = {m}: lower it")
        cuts = np.sort(rng.choice(free - 1, m - 1, replace=False, shuffle=False)) + 1
        return np.diff(cuts, prepend=0, append=free) + spare


class Shards(Partition, tag="shards"):
    """Samples sorted by label and cut into m·per_client shards, assigned at random; pure shards are those of FLAME.

    Source: H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-efficient learning of deep
    networks from decentralized data", arXiv:1602.05629 (2017), section 3; FLAME, arXiv:2311.06756 (2023).
    """

    # Decided by the labels of all samples. A partition stands for who collected what, so a guarantee of privacy is for
    # the samples after it (docs/privacy.md).
    supports = Supports.EVERYTHING
    common = BY_LABEL

    per_client: Annotated[int, Meta(ge=1, description="shards per client")] = 2
    pure: Annotated[bool, Meta(description="cut at class boundaries, so that each shard has one label")] = False

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        count = m * self.per_client
        if count > len(y):
            wanted = f"data.partition.per_client = {self.per_client} and data.clients = {m} need {count} shards"
            raise UserError(f"{wanted}, but there are only {len(y)} samples")
        # Shuffled first, because sorting alone leaves samples of one label in the order of the file with every seed.
        shuffled = rng.permutation(len(y))
        ordered = shuffled[np.argsort(y[shuffled], kind="stable")]
        cuts = self.pure_edges(y, count) if self.pure else even_edges(len(y), count)
        dealt = rng.permutation(count)
        lengths = np.diff(cuts)[dealt]
        rows = np.repeat(cuts[dealt] - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(y))
        return ordered[rows], lengths.reshape(m, self.per_client).sum(axis=1)

    def pure_edges(self, y: Array, count: int) -> Array:
        """Return the edges (count + 1,) of shards with one class each, whose number is proportional to class sizes."""
        _, members = number_classes(y, "shards")
        if len(members) > count:
            raise UserError(
                f"data.partition.pure = true needs a shard for each of the {len(members)} classes, "
                f"but there are only {count} shards: raise data.partition.per_client"
            )
        # One shard for each class, then each further one where shards are largest, as seats are given to parties:
        # the largest shard is then as small as it can be.
        shards = np.ones(len(members), dtype=np.int64)
        for _ in range(count - len(members)):
            shards[np.argmax(members / shards)] += 1
        ends = [even_edges(int(size), int(parts))[1:] for size, parts in zip(members, shards, strict=True)]
        starts = np.cumsum(members) - members
        return np.concatenate([[0], *(start + end for start, end in zip(starts, ends, strict=True))])


class Classes(Partition, tag="classes"):
    """Each client draws ``per_client`` classes; a sample goes to a random client with its class.

    A class that no client drew is assigned to one random client, so that no sample is lost. A client that no sample
    went to gets one from the largest client with its classes.
    Source: Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated learning", arXiv:2201.11183 (2022),
    section 8.1, for the experiments of section 8.4.
    """

    # As for shards: decided by labels, and a guarantee is for the samples after that.
    supports = Supports.EVERYTHING
    common = BY_LABEL

    per_client: Annotated[int, Meta(ge=1, description="classes per client")] = 2

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        label, members = number_classes(y, "classes")
        if self.per_client > len(members):
            large = f"data.partition.per_client = {self.per_client} is too large"
            raise UserError(f"{large}: there are {len(members)} classes")
        owner, drawn = self.draw_owners(label, len(members), m, rng)
        sizes = np.bincount(owner, minlength=m)
        if sizes.min() > 0:
            return np.argsort(owner, kind="stable"), sizes
        counts = np.bincount(label * m + owner, minlength=drawn.size).reshape(drawn.shape)
        move_samples(counts, drawn, 1, rng)
        return deal_counts(label, counts, rng)

    def draw_owners(self, label: Array, count: int, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the client of each sample (d,); also return 1 for each class that a client drew, else 0: (C, m)."""
        # argsort of random numbers is a random permutation, whose first entries are distinct classes of a client.
        drawn = np.argsort(rng.random((m, count)), axis=1)[:, : self.per_client].ravel()
        client = np.repeat(np.arange(m), self.per_client)
        orphans = np.setdiff1d(np.arange(count), drawn)
        drawn = np.concatenate([drawn, orphans])
        client = np.concatenate([client, rng.integers(m, size=len(orphans))])
        classes = np.zeros((count, m))
        classes[drawn, client] = 1
        client = client[np.argsort(drawn, kind="stable")]
        counts = np.bincount(drawn, minlength=count)
        first = np.cumsum(counts) - counts
        return client[first[label] + rng.integers(counts[label])], classes


class Dirichlet(Partition, tag="dirichlet"):
    """Each class is divided among the clients in shares from Dir(alpha, …, alpha), so that sizes vary too.

    Source: M. Yurochkin, M. Agarwal, S. Ghosh, K. Greenewald, T. N. Hoang, Y. Khazaeni, "Bayesian nonparametric
    federated learning of neural networks", arXiv:1905.12022 (2019), section 4.
    """

    # As for shards: decided by labels, and a guarantee is for the samples after that.
    supports = Supports.EVERYTHING
    common = BY_LABEL

    alpha: Annotated[float, Meta(ge=1e-3, le=1e9, description="concentration; large: all classes at every client")] = (
        0.5
    )
    least_samples: Annotated[
        int, Meta(ge=1, description="a client with fewer samples gets some from the largest clients with its classes")
    ] = 1

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        label, members = number_classes(y, "dirichlet")
        if m * self.least_samples > len(y):
            raise UserError(
                f"data.partition.least_samples = {self.least_samples} for data.clients = {m} needs "
                f"{m * self.least_samples} samples, and there are {len(y)}: lower least_samples to {len(y) // m}"
            )
        expected = rng.dirichlet(np.full(m, self.alpha), size=len(members)) * members[:, None]
        counts = apportion(expected, members)
        move_samples(counts, expected, self.least_samples, rng)
        return deal_counts(label, counts, rng)


class DirichletClients(Partition, tag="dirichlet-clients"):
    """Each client draws a mix of classes from Dir(alpha·p), p being the shares of classes; sizes differ by at most 1.

    In random order, clients draw each sample from a class by their mix over the classes that are not used up.
    Libraries that draw from Dir(a, …, a) over C classes of equal size have alpha = C·a.
    Source: T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data distribution for federated
    visual classification", arXiv:1909.06335 (2019), section on synthetic clients.
    """

    # As for shards: decided by labels, and a guarantee is for the samples after that.
    supports = Supports.EVERYTHING
    common = BY_LABEL

    alpha: Annotated[
        float, Meta(ge=1e-3, le=1e9, description="sum of the parameters; large: the mix of all samples at every client")
    ] = 0.5

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        label, members = number_classes(y, "dirichlet-clients")
        sizes = np.diff(even_edges(len(y), m))
        mixes = rng.dirichlet(self.alpha * members / len(y), size=m)
        counts = np.zeros((len(members), m), dtype=np.int64)
        left = members.copy()
        for i in rng.permutation(m):
            counts[:, i] = draw_classes(mixes[i], sizes[i], left, rng)
            left -= counts[:, i]
        return deal_counts(label, counts, rng)


def even_edges(d: int, parts: int) -> Array:
    """Return the edges (parts + 1,) of parts of d rows whose sizes differ by at most 1: 0, 2, 4, 7 of 7 rows in 3."""
    return np.arange(parts + 1) * d // parts


def apportion(expected: Array, members: Array) -> Array:
    """Round ``expected`` (classes, m) to whole numbers with row sums ``members`` (classes,).

    Rounding errors of a client are carried over to the next class. If each class were rounded separately, equal shares
    of classes smaller than m would leave the same clients empty in all of them.
    """
    counts = np.floor(expected).astype(np.int64)
    owed = np.zeros(expected.shape[1])
    for row, want, total in zip(counts, expected, members, strict=True):
        owed += want - row
        up = np.argsort(-owed, kind="stable")[: total - row.sum()]
        row[up] += 1
        owed[up] -= 1
    return counts


def move_samples(counts: Array, wanted: Array, least: int, rng: np.random.Generator) -> None:
    """Move samples in ``counts`` (C, m), one by one, to clients with fewer than ``least``, so that all have as many.

    Each is of the class with the client's largest entry of ``wanted`` (C, m), at random among equal ones, and comes
    from the largest client with this class. Classes of which only clients with ``least`` samples have any are skipped.
    """
    sizes = counts.sum(axis=0)
    donors = [np.flatnonzero((row > 0) & (sizes > least)) for row in counts]
    heaps = [sorted(zip((-sizes[some]).tolist(), some.tolist(), strict=True)) for some in donors]
    for i in np.flatnonzero(sizes < least):
        for k in np.lexsort([rng.random(len(wanted)), -wanted[:, i]]):
            while sizes[i] < least and heaps[k]:
                # Sizes in a heap are those at an earlier time: a client that has shrunk since is put back.
                size, largest = heapq.heappop(heaps[k])
                if -size == sizes[largest]:
                    counts[k, [largest, i]] += (-1, 1)
                    sizes[[largest, i]] += (-1, 1)
                if counts[k, largest] > 0 and sizes[largest] > least:
                    heapq.heappush(heaps[k], (-int(sizes[largest]), largest))


def draw_classes(mix: Array, count: int, left: Array, rng: np.random.Generator) -> Array:
    """Draw how many of ``count`` samples are of each class (C,), by a ``mix`` of the classes that have any ``left``."""
    drawn = np.zeros_like(left)
    while drawn.sum() < count:
        shares = mix * (drawn < left)
        if not shares.any():  # all classes of the mix are used up
            shares = left - drawn
        # Draws of a class after its last sample are drawn again by what is left: the law of drawing one by one.
        drawn += np.minimum(rng.multinomial(count - drawn.sum(), shares / shares.sum()), left - drawn)
    return drawn


def deal_counts(label: Array, counts: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Give clients ``counts`` (C, m) random samples of each class; return ``order`` and ``sizes`` as split() does."""
    C, m = counts.shape
    shuffled = rng.permutation(len(label))
    owner = np.empty(len(label), dtype=np.int64)
    by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
    owner[by_class] = np.tile(np.arange(m), C).repeat(counts.ravel())
    return np.argsort(owner, kind="stable"), counts.sum(axis=0)


def number_classes(y: Array, name: str) -> tuple[Array, Array]:
    """Return the class 0 … C-1 of each sample (d,) and class sizes (C,); UserError if labels are not classes."""
    if not np.all(y == np.floor(y)):
        raise UserError(f'data.partition = "{name}" needs classes: the labels of this data are not whole numbers')
    _, label, members = np.unique(y, return_inverse=True, return_counts=True)
    return label.ravel(), members
