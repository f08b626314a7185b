"""Table [robust]: means of uploads that a few wrong ones cannot move far, in place of the plain mean."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import floor_fraction
from mpifed.core.component import Component
from mpifed.core.guards import Guard, shaped_like
from mpifed.core.promises import Reasons, Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.sums import sum_dense

COLUMNS = 64  # columns of which a mean is made at a time
REST = 1e-5  # length of the mean unit vector to the rows at which a geometric median stops
# A mean is a function of the rows of the round, and of what a checkpoint keeps.
BITS_AND_RESUME = Supports.BITS | Supports.RESUME


class RobustMean(Component):
    """Robust mean of the changes u_i that k clients upload, of which fewer than half may be wrong.

    Of a method that uploads models, a change is the model less the one received, to which the mean is added again. With
    ``bucket`` = s the k changes are dealt at random into ⌈k/s⌉ buckets as equal as possible, and the mean is that of
    the means of the buckets, which differ less than honest clients do; a wrong upload spoils one of them.
    Source: of buckets S. P. Karimireddy, L. He, M. Jaggi, "Byzantine-robust learning on heterogeneous datasets via
    bucketing", arXiv:2006.09365 (2022).

        >>> class Midrange(mpifed.extend.RobustMean):
        ...     by_column = True
        ...     def mean(self, rows, uploads, before):
        ...         return (rows.min(axis=0) + rows.max(axis=0)) / 2
        >>> mpifed.run(algorithm="gd", robust=Midrange(), rounds=2).cr
        2
    """

    choices: ClassVar[dict[str, str]] = {
        "median": "mpifed.features.robust.means:Median",
        "trimmed-mean": "mpifed.features.robust.means:TrimmedMean",
        "krum": "mpifed.features.robust.means:Krum",
        "geometric-median": "mpifed.features.robust.means:GeometricMedian",
        "centred-clipping": "mpifed.features.robust.means:CentredClipping",
    }
    default: ClassVar[str] = "median"
    kind: ClassVar[str] = "robust_means"
    guards: ClassVar[dict[str, Guard]] = {
        "mean": shaped_like(0, 1, ": it must return a mean, a number for each column of rows")
    }

    by_column: ClassVar[bool] = False  # each column of the mean depends on that column of the rows alone
    unsupported: ClassVar[Reasons] = {
        Supports.PRIVACY: "it needs uploads one by one, and {name} guarantees privacy here for the plain mean, so "
        "leave "
        "robust out",
        Supports.DEVICES: "robust means are computed in memory",
    }

    bucket: Annotated[int, Meta(ge=1, description="uploads of a bucket, s; 1: no buckets")] = 1

    @abstractmethod
    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        """Return the mean (w,) of rows (k, w), all columns or, ``by_column``, some: changes, or means of buckets.

        ``uploads`` is their number; ``before`` (w,) is the mean of the round before, 0 in the first one and by column.
        """

    def lacks(self, uploads: int) -> str:
        """Return why so many uploads are too few, as the end of a sentence, or "" where they are enough."""
        return ""

    def count_rows(self, uploads: int) -> int:
        """Return the number of rows that so many uploads make."""
        return -(-uploads // self.bucket)

    def average_buckets(self, rows: Array, seed: int, key: tuple[int, int]) -> Array:
        """Return the means of buckets (k, w), dealt anew for each request, from a stream of the server."""
        if self.bucket == 1:
            return rows
        order = stream(seed, "buckets", *key).permutation(len(rows))
        k = self.count_rows(len(rows))
        total = rows[order[:k]]
        count = np.ones((k, 1), rows.dtype)
        # the j-th upload of each bucket: the additions of a column do not depend on other columns
        for j in range(k, len(rows), k):
            added = order[j : j + k]
            total[: len(added)] += rows[added]
            count[: len(added)] += 1
        return total / count


class WithShare(RobustMean):
    """Base class of robust means with a bound on the share of wrong uploads."""

    share: Annotated[
        float, Meta(ge=0, lt=0.5, description="share of the uploads that may be wrong: f = ⌊share · k⌋")
    ] = 0.2

    def __post_init__(self) -> None:
        if 2 * self.share * self.bucket >= 1:
            raise ValueError(
                f"bucket = {self.bucket} is wrong: with share = {self.share} half of the buckets may be spoilt, so it "
                f"must be below {0.5 / self.share:.3g}"
            )

    def count_wrong(self, uploads: int) -> int:
        """Return f, the number of uploads that may be wrong."""
        return floor_fraction(uploads, self.share)


class Median(RobustMean, tag="median"):
    """Median of each coordinate; of an even number, the mean of the two in the middle.

    Source: D. Yin, Y. Chen, K. Ramchandran, P. Bartlett, "Byzantine-robust distributed learning: Towards optimal
    statistical rates", arXiv:1803.01498 (2018), Definition 1.
    """

    # A function of each column of the round.
    supports = BITS_AND_RESUME

    by_column = True

    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        return medians(rows)


class TrimmedMean(WithShare, tag="trimmed-mean"):
    """Mean of each coordinate without its f least and its f largest numbers, f = ⌊share · k⌋.

    Source: D. Yin, Y. Chen, K. Ramchandran, P. Bartlett, arXiv:1803.01498 (2018), Definition 2.
    """

    # A function of each column of the round.
    supports = BITS_AND_RESUME

    by_column = True

    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        low = self.count_wrong(uploads)
        high = len(rows) - low
        if not low:
            return sum_dense(rows) / high

        def middle(columns: Array) -> Array:
            # partition would be no faster, and with sort sums do not depend on the order of uploads
            columns.sort(axis=1)
            return np.mean(columns[:, low:high], axis=1)

        return map_columns(rows, middle)


class Krum(WithShare, tag="krum"):
    """Upload that is nearest to others: its squared distances to the k − f − 2 nearest have the least sum.

    Of equal sums that of the lowest client counts. It needs k > 2f + 2.
    Source: P. Blanchard, E. M. El Mhamdi, R. Guerraoui, J. Stainer, "Byzantine-tolerant machine learning",
    arXiv:1703.02757 (2017).
    """

    # A function of the rows of the round, which rank 0 has in one order.
    supports = BITS_AND_RESUME

    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        nearest = len(rows) - self.count_wrong(uploads) - 2
        # without centring, rows close to one another would lose all digits of their distances
        off = rows - medians(rows)
        squares = np.vecdot(off, off)
        distances = np.maximum(squares[:, None] + squares - 2 * (off @ off.T), 0)
        np.fill_diagonal(distances, np.inf)
        scores = np.sort(np.partition(distances, nearest - 1, axis=1)[:, :nearest], axis=1).sum(axis=1)
        return rows[np.argmin(scores)].copy()

    def lacks(self, uploads: int) -> str:
        f = self.count_wrong(uploads)
        k = self.count_rows(uploads)
        if k > 2 * f + 2:
            return ""
        what = "uploads" if self.bucket == 1 else "buckets"
        return f"krum needs more than 2f + 2 = {2 * f + 2} {what}, f = {f} of which may be wrong, and there are {k}"


class GeometricMedian(RobustMean, tag="geometric-median"):
    """Point z with the least sum of distances, by steps of Weiszfeld from the median of each coordinate.

    z⁺ = Σ β_i u_i / Σ β_i, β_i = 1/max(‖z − u_i‖, ``smoothing``), until ‖Σ β_i (u_i − z)‖ <= 10⁻⁵ k, ``steps`` at most.
    From the plain mean, which a single upload moves anywhere, few steps would not come back.
    Source: K. Pillutla, S. M. Kakade, Z. Harchaoui, "Robust aggregation for federated learning",
    arXiv:1912.13445 (2019), with equal weights and another start.
    """

    # A function of the rows of the round, which rank 0 has in one order.
    supports = BITS_AND_RESUME

    steps: Annotated[int, Meta(ge=1, description="most steps of Weiszfeld")] = 100
    smoothing: Annotated[float, Meta(gt=0, description="least distance ν that is divided by")] = 1e-6

    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        start = medians(rows)
        # relative to the start, so that z keeps its digits where rows are close to one another
        off = rows - start
        z = np.zeros_like(start)
        for _ in range(self.steps):
            delta = off - z
            beta = 1 / np.maximum(lengths(delta), self.smoothing)
            pull = beta @ delta
            z += pull / beta.sum()
            if np.linalg.norm(pull) <= REST * len(rows):
                break
        return start + z


class CentredClipping(RobustMean, tag="centred-clipping"):
    """Changes are clipped about the mean of the round before: v⁺ = v + (1/k) Σ (u_i − v) min(1, radius/‖u_i − v‖).

    v begins at that mean, and at 0 in the first round; ``steps`` times.
    Source: S. P. Karimireddy, L. He, M. Jaggi, "Learning from history for Byzantine robust
    optimization", arXiv:2012.10333 (2021); momentum of clients, which its theorem asks for, is up to the method.
    """

    # The mean of the round before is in the checkpoint.
    supports = BITS_AND_RESUME

    radius: Annotated[float, Meta(gt=0, description="τ, the length of an honest change about the mean")] = 10.0
    steps: Annotated[int, Meta(ge=1, description="times that v moves in a round")] = 1

    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        v = before
        for _ in range(self.steps):
            off = rows - v
            # where an upload is the centre itself nothing is clipped
            scale = self.radius / np.maximum(lengths(off), self.radius)
            v = v + scale @ off / len(rows)
        return np.asarray(v)


def medians(rows: Array) -> Array:
    """Return the median of each column of rows (k, w): (w,)."""
    low = (len(rows) - 1) // 2
    high = len(rows) // 2

    def middle(columns: Array) -> Array:
        columns.partition((low, high), axis=1)
        return (columns[:, low] + columns[:, high]) / 2

    return map_columns(rows, middle)


def map_columns(rows: Array, function: Callable[[Array], Array]) -> Array:
    """Apply a function to the columns of rows (k, w), transposed, as many at a time as fit into the cache: (w,)."""
    result = np.empty(rows.shape[1], rows.dtype)
    for j in range(0, len(result), COLUMNS):
        result[j : j + COLUMNS] = function(rows[:, j : j + COLUMNS].T.copy(order="C"))
    return result


def lengths(rows: Array) -> Array:
    """Return the norm of each row (k, n): (k,)."""
    return np.sqrt(np.vecdot(rows, rows))
