"""What a result says of the graph between its clients."""

from typing import Any

from mpifed.graphs.weights import Weights


def described(weights: Weights | None) -> dict[str, Any]:
    """The root attributes of a result that say what the graph is; none without one."""
    if weights is None:
        return {}
    spectrum = weights.spectrum
    return {
        "graph_edges": weights.first.edges,
        "graph_parts": spectrum.parts,
        "spectral_gap": spectrum.gap,
        "least_eigenvalue": spectrum.least,
    }


def drawn(weights: Weights | None) -> list[str]:
    """A sentence where the graph is not connected."""
    if weights is None or weights.spectrum.parts == 1:
        return []
    parts = weights.spectrum.parts
    which = "the graph that is drawn first" if weights.graph.drawn_anew else "the graph"
    return [f"{which} is not connected: it has {parts} parts, and only nodes of the same part can agree"]
