"""FedEPM whose nodes are servers of their neighbourhoods, Algorithm 2 of S. Zhou, G. Y. Li, "Exact penalty method for
federated learning", arXiv:2208.11231 (2022)."""

import math
from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm, Network
from mpifed.algorithms.fedepm import ExactPenalty, Server
from mpifed.algorithms.parts.budget import Counting
from mpifed.algorithms.parts.elastic_nets import elastic_nets
from mpifed.algorithms.parts.noise import Noisy
from mpifed.core.promises import Keeps
from mpifed.federation.peers.neighbourhood import Neighbours
from mpifed.federation.traits import Look, Recorded, Refused, Takes, Upload
from mpifed.theory.fedepm import penalties


class Client(NamedTuple):
    w: Array  # (c, n) local models
    z: Array  # (c, n) last uploads
    x: Array  # (c, n) the node's copy of the server's model
    reach: Array  # (c,) how far one sample can move w_i, in the 1-norm (noise = "clipped")
    ratio: Array  # (c,) log10 of signal over noise of the last upload


class FedEPMGraph(ExactPenalty, GraphAlgorithm, tag="fedepm-graph"):
    """Each node keeps a copy x_j of the server's model for its neighbourhood, with a penalty on every edge to a copy.

    Minimises Σ_i f_i(w_i) + Σ_ij W_ij φ(w_i − x_j), φ = λ‖·‖₁ + (η/2)‖·‖².  Selected nodes, k0 times: w_i ← argmin
    ⟨g_i, w⟩ + (μ_i/2)‖w − w_i‖² + Σ_j W_ij φ(w − x_j), with g_i = ∇f_i at Σ_j W_ij x_j;  z_i = w_i + noise;
    all nodes: x_j = argmin Σ_i W_ij φ(z_i − x). On the complete graph it is fedepm. Copies are made of noisy uploads
    alone, so sending them costs no privacy.  Source: docs/studies/graph-methods.md; options as in fedepm.
    """

    title = "FedEPM, graph"
    look = Look("purple", 4, 4)
    theorem = Refused("those of FedEPM are about one server's model, and nodes have one each")

    takes = Takes.SELECTED
    upload = Upload(vectors=2)

    @property
    def keeps(self) -> Keeps:
        # Copies, which nodes send too, are made of noisy uploads alone; survival is what the graph says.
        return self.mechanism().keeps

    def join(self, f: Local) -> Client:
        return Client(f.initial(), f.zeros(), f.initial(), reach=self.unreached(f), ratio=f.xp.full(len(f), math.inf))

    def start(self, net: Network) -> Server:
        lam, eta = penalties(self, net.m, net.cohort)
        net.local(self.noised)
        net.gather("z", self.average, eta, lam)
        return Server(net.initial(), 0, eta, lam, np.zeros(net.m))

    def round(self, net: Network, server: Server) -> Server:
        selected = net.select(server.x)
        net.gather("x", self.iterate, *server[1:4], to=selected)
        net.gather("z", self.average, *server[2:4], of=selected)
        return server._replace(k=server.k + self.k0, uploads=server.uploads + net.mask(selected))

    def noised(self, f: Local, client: Client) -> tuple[Client, None]:
        return self.first(f, client)[0], None

    def average(self, f: Local, client: Client, near: Neighbours, eta: float, lam: float) -> tuple[Client, None]:
        return client._replace(x=elastic_nets(near, client.z).minimiser(lam, eta)), None  # (19)

    def iterate(
        self, f: Local, client: Client, near: Neighbours, k: int, eta: float, lam: float
    ) -> tuple[Client, None]:
        """(20), k0 times, and (21)."""
        noise = self.mechanism()
        w = client.w
        reach = client.reach
        copies = elastic_nets(near, client.x)
        x = copies.mean()
        g = noise.gradient(f, x)
        over = f.d if self.step_scale == "samples" else f.xp.ones(len(f))
        for j in range(self.k0):
            mu = self.mu0 * (1 + self.c * noise.square(w - x)) * self.alpha ** (k + j + 1)
            step = f.xp.astype((mu / over)[:, None], x.dtype)
            w = copies.minimiser(lam, eta, step, w - g / step)  # (20)
            reach = noise.grow(reach, step[:, 0], eta, f.d)
        z, ratio = noise.upload(
            f, w, noise.rate(1, over) * (2 * f.xp.sum(f.xp.abs(g), axis=1) / mu), reach
        )  # (21), (39)
        return client._replace(w=w, z=z, reach=reach, ratio=ratio), None

    def record(self, f: Local, client: Any, x: Array) -> Recorded:
        return Noisy.record(self, f, client, x) | GraphAlgorithm.record(self, f, client, x)

    def report(self, server: Counting, row: dict[str, float], m: int) -> dict[str, float]:  # type: ignore[override]
        return Noisy.report(self, server, row, m) | GraphAlgorithm.report(self, server, row, m)
