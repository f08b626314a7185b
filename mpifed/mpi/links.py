"""Rows that hosts send to each other: the neighbourhood exchange of MPI, over the ranks with nodes of a graph."""

import time
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.util import dtlib

from mpifed.core.typing import Array
from mpifed.federation.peers.neighbourhood import Neighbourhood
from mpifed.federation.transport import Traffic
from mpifed.mpi.communicator import patiently


class Ranks:
    """The links of one host; all hosts make them together. ``patient``: wait for the others without taking the core."""

    def __init__(self, comm: MPI.Intracomm, neighbourhood: Neighbourhood, traffic: Traffic, patient: bool) -> None:
        everyone = comm.Get_group()
        hosts = everyone.Excl([0])
        # collective over the hosts alone: Split and Create would need rank 0, which waits for their replies meanwhile
        own = comm.Create_group(hosts)
        self.partners = neighbourhood.partners()
        partners = self.partners.tolist()
        # neighbours of neighbours are no partners: a rank then sends to a few others, where Alltoallv meets all of them
        self.comm = own.Create_dist_graph_adjacent(partners, partners, reorder=False)
        own.Free()
        hosts.Free()
        everyone.Free()
        self.traffic = traffic
        self.patient = patient
        self.types: dict[tuple[str, int], Any] = {}  # of one row
        self.seconds = 0.0

    def carry(self, rows: Array, to: Array, come: Array) -> Array:
        """Send ``rows`` (k, N), ``to[h]`` of them to host h, in order; the rows that come, ``come[h]`` from host h."""
        started = time.perf_counter()
        rows = np.ascontiguousarray(rows)
        found = np.empty((int(come.sum()), rows.shape[1]), rows.dtype)
        row = self.row(rows.dtype, rows.shape[1])
        # both sides know their counts from the graph, so that no message has to announce another one
        sending = rows, self.spread(to), row
        receiving = found, self.spread(come), row
        if self.patient:
            patiently(self.comm.Ineighbor_alltoallv(sending, receiving).Test)
        else:
            self.comm.Neighbor_alltoallv(sending, receiving)
        spent = time.perf_counter() - started
        self.seconds += spent
        self.traffic.comm += spent
        self.traffic.count(rows.nbytes, found.nbytes, int((come > 0).sum()))
        return found

    def spread(self, counts: Array) -> tuple[Array, Array]:
        """The numbers of rows for each partner, and where they begin."""
        own = counts[self.partners]
        return own, np.concatenate([[0], np.cumsum(own)[:-1]]) if len(own) else own

    def row(self, dtype: Any, width: int) -> Any:
        """MPI's type of a row; counts of rows fit into 32 bits where those of numbers may not."""
        key = dtype.str, width
        if key not in self.types:
            self.types[key] = dtlib.from_numpy_dtype(dtype).Create_contiguous(width).Commit()
        return self.types[key]
