"""EF21-SGD with the clients that take part; mini-batches are those of the clients' streams.

Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 2.
"""

import copy

import numpy as np

from mpifed.core.streams import stream

from . import ef21


def run(clients, selections, *, batch_size, **options):
    def gradient(client, x, i, round):
        return batch(client, i, round, batch_size).gradient(x)

    return ef21.run(clients, selections, gradient=gradient, **options)


def batch(client, i, round, size):
    """f_i on the samples of one mini-batch."""
    rows = stream(0, "clients", i, round, 0).permuted(np.arange(client.d)[None], axis=1)[0, :size]
    found = copy.copy(client)
    found.A, found.b, found.d = client.A[rows], client.b[rows], len(rows)
    return found
