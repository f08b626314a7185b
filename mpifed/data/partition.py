"""Partitions: rules that divide the d samples of a pool among m clients."""

from abc import abstractmethod
from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.component import Component, brief
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.core.toml import listed, toml_value
from mpifed.core.typing import Array
from mpifed.data.label_shares import apportion, classes_of

TRIES = 100  # attempts to leave no client empty
BY_LABEL = "the labels of all samples say which client each belongs to"


class Partition(Component):
    """A rule that divides the rows of a pool among clients.

    >>> class ByTurns(mpifed.Partition):
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
    }
    default: ClassVar[str] = "iid"
    kind: ClassVar[str] = "partitions"
    checks: ClassVar[str] = "mpifed.data.data_guards"
    common: ClassVar[str] = ""  # what of all samples says whose each is

    def words(self) -> str:
        options = {key: value for key, value in msgspec.structs.asdict(self).items() if value is not None}
        shown = [f"{key} = {'given' if np.ndim(value) else toml_value(value)}" for key, value in options.items()]
        return ", ".join([self.label(), *shown])

    def split(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Divide the rows with labels y (d,) among m clients.

        Returns ``order``, distinct row numbers, and ``sizes`` (m,), all at least 1. Client i owns the next ``sizes[i]``
        entries of ``order``. UserError where the partition is impossible.
        """
        if m > len(y):
            raise UserError(f"data.clients = {m} is more than the {len(y)} samples: each client needs at least one")
        order, sizes = self.deal(y, m, rng)
        return np.asarray(order, dtype=np.int64), np.asarray(sizes, dtype=np.int64)

    @abstractmethod
    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """``order`` and ``sizes`` as split() returns them, for 1 <= m <= d."""


class Iid(Partition, tag="iid"):
    """Shuffled samples in parts of equal size, up to a difference of 1."""

    # Rows by number, from the seed.
    keeps = Keeps.EVERYTHING

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return rng.permutation(len(y)), np.diff(edges(len(y), m))


class Contiguous(Partition, tag="contiguous"):
    """Consecutive samples in the order of the data, not shuffled; the first d mod m clients have one more."""

    # Rows by number.
    keeps = Keeps.EVERYTHING

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        least, more = divmod(len(y), m)
        return np.arange(len(y)), least + (np.arange(m) < more)


class Sizes(Partition, tag="sizes"):
    """Shuffled samples; sizes as given, the rest is left out, or random ones with min d_i > least·d/m (errata)."""

    # Rows by number and sizes from the seed or as given.
    keeps = Keeps.EVERYTHING

    sizes: Annotated[
        list[int] | int | None,
        Meta(description="samples of each client, a list or one number for all (default: random cut points)"),
    ] = None
    least: Annotated[float, Meta(ge=0, lt=1, description="no random size is below this share of the mean d/m")] = 0.025

    def __post_init__(self) -> None:
        if self.sizes is not None and min(listed(self.sizes), default=0) < 1:
            right = "a list of whole numbers, each at least 1, or one such number"
            raise ValueError(f"sizes = {brief(self.sizes)} is wrong: it must be {right}")

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        d = len(y)
        order = rng.permutation(d)
        if self.sizes is None:
            return order, self.cut(d, m, rng)
        sizes = listed(self.sizes, m)
        if len(sizes) != m:
            raise UserError(f"data.partition.sizes has {len(sizes)} entries, but data.clients = {m}: give {m} sizes")
        if sum(sizes) > d:
            raise UserError(f"data.partition.sizes adds up to {sum(sizes)}, but there are only {d} samples")
        return order[: sum(sizes)], np.array(sizes)

    def cut(self, d: int, m: int, rng: np.random.Generator) -> Array:
        """Sizes (m,) between random cut points, uniform among all sizes with min d_i > least·d/m."""
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
    """Samples sorted by label and cut into m·per_client shards, assigned at random (McMahan et al. 2017; flame).

    Source: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017,
    arXiv 1602.05629, section 3.
    """

    # Labels of all say whose a sample is. A partition stands for who collected what, which is given:
    # a guarantee is for the samples after it (docs/privacy.md).
    keeps = Keeps.EVERYTHING
    common = BY_LABEL

    per_client: Annotated[int, Meta(ge=1, description="shards per client")] = 2
    pure: Annotated[bool, Meta(description="cut at class boundaries, so that each shard has one label")] = False

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        count = m * self.per_client
        if count > len(y):
            wanted = f"data.partition.per_client = {self.per_client} and data.clients = {m} need {count} shards"
            raise UserError(f"{wanted}, but there are only {len(y)} samples")
        # Shuffled first: within a label, samples would else have the order of the file, the same with all seeds.
        shuffled = rng.permutation(len(y))
        ordered = shuffled[np.argsort(y[shuffled], kind="stable")]
        cuts = self.pure_edges(y, count) if self.pure else edges(len(y), count)
        dealt = rng.permutation(count)
        lengths = np.diff(cuts)[dealt]
        rows = np.repeat(cuts[dealt] - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(y))
        return ordered[rows], lengths.reshape(m, self.per_client).sum(axis=1)

    def pure_edges(self, y: Array, count: int) -> Array:
        """Edges (count + 1,) of shards with one class each; the number per class is proportional to its size."""
        _, members = classes_of(y, "shards")
        if len(members) > count:
            raise UserError(
                f"data.partition.pure = true needs a shard for each of the {len(members)} classes, "
                f"but there are only {count} shards: raise data.partition.per_client"
            )
        # One for each class, then each further one where shards are largest, as seats are given to parties: the
        # largest shard is then as small as it can be.
        shards = np.ones(len(members), dtype=np.int64)
        for _ in range(count - len(members)):
            shards[np.argmax(members / shards)] += 1
        ends = [edges(int(size), int(parts))[1:] for size, parts in zip(members, shards, strict=True)]
        starts = np.cumsum(members) - members
        return np.concatenate([[0], *(start + end for start, end in zip(starts, ends, strict=True))])


class Classes(Partition, tag="classes"):
    """Each client draws ``per_client`` classes; a sample goes to a random client with its class (feddcd section 8.4).

    A class that no client drew is assigned to one random client, so that no sample is lost.
    Source: FedDCD, 2022, arXiv 2201.11183.
    """

    # As shards: labels say whose a sample is, and a guarantee is for the samples after that.
    keeps = Keeps.EVERYTHING
    common = BY_LABEL

    per_client: Annotated[int, Meta(ge=1, description="classes per client")] = 2

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        label, members = classes_of(y, "classes")
        if self.per_client > len(members):
            large = f"data.partition.per_client = {self.per_client} is too large"
            raise UserError(f"{large}: there are {len(members)} classes")
        for _ in range(TRIES):
            owner = self.owners(label, len(members), m, rng)
            sizes = np.bincount(owner, minlength=m)
            if sizes.min() > 0:
                return np.argsort(owner, kind="stable"), sizes
        raise UserError(
            f'data.partition = "classes" left a client empty in each of {TRIES} attempts: '
            f"data.clients = {m} is too large for {len(y)} samples of {len(members)} classes"
        )

    def owners(self, label: Array, count: int, m: int, rng: np.random.Generator) -> Array:
        """The client of each sample: (d,)."""
        # The order of random numbers is a random order: the first entries of it are distinct classes for every client.
        drawn = np.argsort(rng.random((m, count)), axis=1)[:, : self.per_client].ravel()
        client = np.repeat(np.arange(m), self.per_client)
        orphans = np.setdiff1d(np.arange(count), drawn)
        drawn = np.concatenate([drawn, orphans])
        client = np.concatenate([client, rng.integers(m, size=len(orphans))])[np.argsort(drawn, kind="stable")]
        owners = np.bincount(drawn, minlength=count)
        first = np.cumsum(owners) - owners
        return client[first[label] + rng.integers(owners[label])]


class Dirichlet(Partition, tag="dirichlet"):
    """Each class is divided in Dirichlet(alpha) shares; a small alpha gives few classes per client.

    Source: M. Yurochkin, M. Agarwal, S. Ghosh, K. Greenewald, T. N. Hoang, Y. Khazaeni, "Bayesian nonparametric
    federated learning of neural networks", arXiv:1905.12022 (2019), section 4.
    """

    # As shards: labels say whose a sample is, and a guarantee is for the samples after that.
    keeps = Keeps.EVERYTHING
    common = BY_LABEL

    alpha: Annotated[float, Meta(ge=1e-3, le=1e9, description="concentration; large: all classes at every client")] = (
        0.5
    )
    least_samples: Annotated[
        int, Meta(ge=1, description="shares are redrawn until each client has at least this many samples")
    ] = 1

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        label, members = classes_of(y, "dirichlet")
        sure = int((members // m).sum())  # that a client has of even shares
        lower = f"lower data.clients = {m}" + (f" or least_samples to {sure}, with a large alpha" if sure else "")
        if m * self.least_samples > len(y):
            raise UserError(
                f"data.partition.least_samples = {self.least_samples} for data.clients = {m} needs "
                f"{m * self.least_samples} samples, and there are {len(y)}: {lower}"
            )
        for _ in range(TRIES):
            counts = apportion(rng.dirichlet(np.full(m, self.alpha), size=len(members)) * members[:, None], members)
            if counts.sum(axis=0).min() >= self.least_samples:
                break
        else:
            raise UserError(
                f"data.partition.alpha = {self.alpha} left a client with fewer than least_samples = "
                f"{self.least_samples} in each of {TRIES} attempts: "
                + (f"raise alpha or lower data.clients = {m}" if self.least_samples <= sure else lower)
            )
        shuffled = rng.permutation(len(y))
        owner = np.empty(len(y), dtype=np.int64)
        by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
        owner[by_class] = np.tile(np.arange(m), len(members)).repeat(counts.ravel())
        return np.argsort(owner, kind="stable"), counts.sum(axis=0)


def edges(d: int, parts: int) -> Array:
    # Sizes differ by at most 1, and the larger parts are spread: of 7 in 3 they are 2, 2 and 3 of 0, 2, 4, 7.
    return np.arange(parts + 1) * d // parts
