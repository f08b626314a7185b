"""FedEPM whose nodes are servers of their neighbourhoods, Algorithm 2 of S. Zhou, G. Y. Li, "Exact penalty method for
federated learning", arXiv:2208.11231 (2022)."""

import math
from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms.fedepm import ExactPenalty, Server
from mpifed.algorithms.parts import NoisyAlgorithm, PlotStyle, RecordValues, UploadCounts, build_elastic_nets
from mpifed.extend import (
    Array,
    GraphAlgorithm,
    GraphFederation,
    Local,
    Neighbours,
    Participation,
    Supports,
    Unsupported,
    Upload,
)
from mpifed.theory.fedepm import penalty_weights


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
    plot_style = PlotStyle("purple", 4, 4)
    theorem = Unsupported("those of FedEPM are about one server's model, and nodes have one each")

    participation = Participation.SELECTED
    upload = Upload(vectors=2)

    @property
    def supports(self) -> Supports:
        # Copies, which nodes send too, are made of noisy uploads alone; survival follows from the graph.
        return self.mechanism().supports

    def init_client(self, f: Local) -> Client:
        return Client(f.initial(), f.zeros(), f.initial(), reach=self.first_reach(f), ratio=f.xp.full(len(f), math.inf))

    def init_server(self, net: GraphFederation) -> Server:
        lam, eta = penalty_weights(self, net.m, net.clients_per_round)
        net.local(self.add_noise)
        net.gather("z", self.average, eta, lam)
        return Server(net.initial(), 0, eta, lam, np.zeros(net.m))

    def round(self, net: GraphFederation, server: Server) -> Server:
        selected = net.select(server.x)
        net.gather("x", self.iterate, *server[1:4], to=selected)
        net.gather("z", self.average, *server[2:4], of=selected)
        return server._replace(k=server.k + self.k0, uploads=server.uploads + net.mask(selected))

    def add_noise(self, f: Local, client: Client) -> tuple[Client, None]:
        return self.first(f, client)[0], None

    def average(self, f: Local, client: Client, neighbours: Neighbours, eta: float, lam: float) -> tuple[Client, None]:
        return client._replace(x=build_elastic_nets(neighbours, client.z).minimise(lam, eta)), None  # (19)

    def iterate(
        self, f: Local, client: Client, neighbours: Neighbours, k: int, eta: float, lam: float
    ) -> tuple[Client, None]:
        """Apply (20) k0 times, and (21)."""
        noise = self.mechanism()
        w = client.w
        reach = client.reach
        copies = build_elastic_nets(neighbours, client.x)
        x = copies.mean()
        g = noise.gradient(f, x)
        over = f.d if self.step_scale == "samples" else f.xp.ones(len(f))
        for j in range(self.k0):
            mu = self.mu0 * (1 + self.c * noise.squared_distance(w - x)) * self.alpha ** (k + j + 1)
            step = f.xp.astype((mu / over)[:, None], x.dtype)
            w = copies.minimise(lam, eta, step, w - g / step)  # (20)
            reach = noise.grow_reach(reach, step[:, 0], eta, f.d)
        z, ratio = noise.upload(
            f, w, noise.rate(1, over) * (2 * f.xp.sum(f.xp.abs(g), axis=1) / mu), reach
        )  # (21), (39)
        return client._replace(w=w, z=z, reach=reach, ratio=ratio), None

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        return NoisyAlgorithm.record(self, f, client, x) | GraphAlgorithm.record(self, f, client, x)

    def report(self, server: UploadCounts, row: dict[str, float], m: int) -> dict[str, float]:  # type: ignore[override]
        return NoisyAlgorithm.report(self, server, row, m) | GraphAlgorithm.report(self, server, row, m)
