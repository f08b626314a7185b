"""What nodes know of their neighbours in client methods: how many they are."""

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.view import Clients, View
from mpifed.graphs.weights import Weights


class NeighbourCounts(View):
    """Clients that are nodes of the graph of the ``weights``."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def neighbours(self, f: Clients) -> Array:
        # nodes work in step, so they are all in one round; that of its edges which are drawn anew
        found: Array = self.weights.at(int(np.max(f.key[0]))).degrees[f.ids][:, None]
        return found
