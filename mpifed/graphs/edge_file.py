"""A graph from a file of edges."""

import os
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.files import read_text_file
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.graphs.graph import EXACT, Edges, Graph, sum_at_ends


class EdgeFile(Graph, tag="file", kw_only=True):
    """Edges of a text file: a line holds the numbers of two clients, counted from 0, and maybe the weight W_ij.

    Numbers are separated by spaces, tabs or commas; # begins a comment. Either all lines have a weight, or none, and
    then weights are those of Metropolis. A line ``i i w`` is W_ii; where there is none, W_ii = 1 − Σ_j W_ij.
    """

    # Edges are known before the run. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    path: Annotated[str, Meta(description="text file")]

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        table = self.table()
        weights = table[:, 2]
        metropolis = bool(np.isnan(weights).all())
        ends = np.sort(table[:, :2], axis=1)
        if (ends % 1).any() or ends.min(initial=0) < 0 or ends.max(initial=0) >= m:
            raise self.wrong(f"every line must begin with the numbers of two clients, from 0 to {m - 1}")
        if not metropolis and np.isnan(weights).any():
            raise self.wrong("either all lines have a weight or none")
        ends, first, back = np.unique(ends.astype(np.int64), axis=0, return_index=True, return_inverse=True)
        if metropolis:
            return Edges(ends[ends[:, 0] != ends[:, 1]])
        differ = np.sort(back.ravel()[weights != weights[first][back.ravel()]])
        if len(differ):
            i, j = ends[differ[0]]
            raise self.wrong(f"W must be symmetric, and the edge between {i} and {j} has two weights")
        return self.add_weights(ends, weights[first], m)

    def add_weights(self, ends: Array, weights: Array, m: int) -> Edges:
        """Return the edges with their weights, where loops have the weights W_ii."""
        loops = ends[:, 0] == ends[:, 1]
        rest = sum_at_ends(ends[~loops], weights[~loops], m)
        own = 1 - rest
        own[ends[loops, 0]] = weights[loops]
        wrong = np.abs(own + rest - 1) > EXACT
        if wrong.any():
            i = int(np.argmax(wrong))
            raise self.wrong(f"rows of W must sum to 1, and that of client {i} sums to {own[i] + rest[i]:.12g}")
        return Edges(ends[~loops], weights[~loops], own)

    def table(self) -> Array:
        """Read the numbers of the file: (lines, 3), with NaN for missing weights."""
        rows = []
        try:
            for number, line in enumerate(read_text_file(os.path.expanduser(self.path)).splitlines(), 1):
                words = line.partition("#")[0].replace(",", " ").split()
                if words and len(words) not in (2, 3):
                    raise self.wrong(f"line {number} has {len(words)} numbers, and an edge has two or three")
                numbers = [*map(float, words)]
                if "_" in "".join(words) or not np.isfinite(numbers).all():  # float takes 1_0 and nan
                    raise ValueError(f"line {number} has one that is not finite, or has _ in it")
                if words:
                    rows.append([*numbers, np.nan][:3])
        except OSError as error:
            raise self.wrong(f"it cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise self.wrong(f"it must hold numbers: {error}") from None
        return np.array(rows, float).reshape(-1, 3)

    def wrong(self, why: str) -> UserError:
        return UserError(f"graph.path = {self.path!r} is wrong: {why}")
