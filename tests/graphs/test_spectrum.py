"""Spectral gaps: in closed form, by a dense solver and by Lanczos' method."""

import numpy as np
import pytest

from mpifed.graphs import spectrum as module
from mpifed.graphs.base import Graph
from mpifed.graphs.spectrum import Spectrum, spectrum
from mpifed.graphs.weights import Weights


def of(name, m, **options):
    return Weights(Graph.build({"name": name, **options}, "graph"), 2, m)


@pytest.mark.parametrize(("name", "m"), [("ring", 11), ("torus", 24), ("exponential", 20), ("complete", 9)])
def test_closed_forms_are_the_eigenvalues(name, m):
    W = of(name, m).first.W
    assert of(name, m).spectrum == pytest.approx(spectrum(W, ()), rel=0, abs=1e-12)


def test_the_gap_of_a_ring_is_known():
    cosine = np.cos(2 * np.pi / 50)
    assert of("ring", 50).spectrum.gap == pytest.approx(2 / 3 * (1 - cosine))


@pytest.mark.parametrize("name", ["star", "erdos-renyi"])
def test_lanczos_method_finds_what_the_dense_solver_finds(name, monkeypatch):
    W = of(name, 200).first.W
    dense = spectrum(W, ())
    monkeypatch.setattr(module, "DENSE", 10)
    assert spectrum(W, ()) == pytest.approx(dense, rel=0, abs=1e-5)


def test_where_it_does_not_converge_the_gap_is_not_a_number_and_the_bound_is_gershgorins(monkeypatch):
    monkeypatch.setattr(module, "DENSE", 10)
    monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.setattr(type(Graph.build("ring", "graph")), "symmetry", lambda self, m: ())
    found = of("ring", 4000)
    assert np.isnan(found.spectrum.gap)
    assert found.least == pytest.approx(-1 / 3, abs=1e-5)


def test_a_graph_in_parts_has_no_gap(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n2 3\n")
    found = of("file", 5, path=str(tmp_path / "edges.txt")).spectrum
    assert (found.parts, found.gap) == (3, pytest.approx(0, abs=1e-12))


def test_one_node_has_nothing_to_wait_for():
    assert of("ring", 1).spectrum == Spectrum(1, 0.0, 0.0)
