"""The links between hosts with nodes of a graph, by the neighbourhood exchange of MPI."""

import time
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.util import dtlib

from mpifed.core.typing import Array
from mpifed.federation.peers.neighbourhood import Neighbourhood
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.communicator import wait_patiently


class MPILinks:
    """The links of one host, made by all hosts together; ``patient``: wait for others without taking the core."""

    def __init__(self, comm: MPI.Intracomm, neighbourhood: Neighbourhood, traffic: RankTraffic, patient: bool) -> None:
        everyone = comm.Get_group()
        hosts = everyone.Excl([0])
        # collective over the hosts alone: Split and Create would need rank 0, which waits for replies
        hosts_comm = comm.Create_group(hosts)
        self.partners = neighbourhood.partners()
        partners = self.partners.tolist()
        # with partners only, a rank exchanges messages with few others; Alltoallv would involve all
        self.comm = hosts_comm.Create_dist_graph_adjacent(partners, partners, reorder=False)
        hosts_comm.Free()
        hosts.Free()
        everyone.Free()
        self.traffic = traffic
        self.patient = patient
        self.types: dict[tuple[str, int], Any] = {}  # MPI's types of rows
        self.seconds = 0.0

    def exchange_rows(self, rows: Array, to: Array, come: Array) -> Array:
        """Send ``rows`` (k, N) in order, ``to[h]`` to host h; return the received rows, ``come[h]`` from host h."""
        started = time.perf_counter()
        rows = np.ascontiguousarray(rows)
        result = np.empty((int(come.sum()), rows.shape[1]), rows.dtype)
        row = self.row(rows.dtype, rows.shape[1])
        # both sides know the counts from the graph, so no message announces another
        sending = rows, self.spread(to), row
        receiving = result, self.spread(come), row
        if self.patient:
            wait_patiently(self.comm.Ineighbor_alltoallv(sending, receiving).Test)
        else:
            self.comm.Neighbor_alltoallv(sending, receiving)
        spent = time.perf_counter() - started
        self.seconds += spent
        self.traffic.comm += spent
        self.traffic.count(rows.nbytes, result.nbytes, int((come > 0).sum()))
        return result

    def spread(self, counts: Array) -> tuple[Array, Array]:
        """Return the number of rows for each partner, and their offsets."""
        sizes = counts[self.partners]
        return sizes, np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else sizes

    def row(self, dtype: Any, width: int) -> Any:
        """Return MPI's type of a row; counts of rows fit into 32 bits, those of numbers may not."""
        key = dtype.str, width
        if key not in self.types:
            self.types[key] = dtlib.from_numpy_dtype(dtype).Create_contiguous(width).Commit()
        return self.types[key]
