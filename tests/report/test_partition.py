"""Pictures of partitions: a bubble or a cell for each class and client, or the spread of labels; sizes above."""

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import QuadMesh

from mpifed.report.partition import COLUMNS, Division, plot_partition


def division(counts=None, m=None, names=None):
    """Clients with these counts (m, C) of classes, or m clients whose labels are numbers."""
    if counts is None:
        mean = np.linspace(1, -1, m)
        empty = sp.csr_array((m, 0), dtype=np.int64)
        return Division(np.arange(1, m + 1), [], empty, np.stack([mean, mean * 0 + 0.5, mean - 2, mean + 3]))
    counts = np.array(counts)
    names = names or [str(k) for k in range(counts.shape[1])]
    return Division(counts.sum(axis=1), names, sp.csr_array(counts), np.zeros((4, len(counts))))


def mapped(figure):
    """The numbers (C, columns) of a map and their mesh."""
    (mesh,) = (one for one in figure.axes[1].collections if isinstance(one, QuadMesh))
    return np.asarray(mesh.get_array()), mesh


COUNTS = [[4, 0, 0], [1, 9, 0]]


def test_a_bubble_is_as_large_as_a_client_has_samples_of_a_class():
    figure = plot_partition(division(COUNTS, names=["ant", "b" * 20, "$"]), "two clients")
    upper, lower, *_ = figure.axes
    (bubbles, *_) = lower.collections
    assert bubbles.get_offsets().tolist() == [[0, 0], [1, 0], [1, 1]]
    areas = bubbles.get_sizes()
    assert areas[2] / areas[0] == pytest.approx(9 / 4)
    assert [bar.get_height() for bar in upper.patches] == [4, 10]
    assert [tick.get_text() for tick in lower.get_yticklabels()] == ["ant", "b" * 13 + "…", r"\$"]
    assert figure.get_suptitle() == "two clients"
    assert (upper.get_ylabel(), lower.get_ylabel(), lower.get_xlabel()) == ("samples", "class", "client")
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "samples"
    (bubbles, *_) = (
        plot_partition(division([[1, 100_000]]), "").axes[1].collections
    )  # one sample can be seen beside many
    assert bubbles.get_sizes().min() >= 2


@pytest.mark.parametrize(("m", "C"), [(41, 3), (3, 31), (100, 200)])
def test_many_clients_or_classes_are_a_map(m, C):
    counts = np.random.default_rng(0).integers(0, 9, (m, C))
    figure = plot_partition(division(counts), "many")
    assert np.array_equal(mapped(figure)[0], counts.T)
    _, lower, bar = figure.axes
    assert (lower.get_xlabel(), bar.get_ylabel()) == ("client", "samples")
    assert len(lower.get_yticks()) <= 31


def test_more_than_a_hundred_clients_are_sorted_by_their_most_frequent_class_and_very_many_share_columns():
    counts = np.zeros((150, 2), int)
    counts[np.arange(150), np.arange(150) % 2] = 5
    counts[2, 1] = 2
    figure = plot_partition(division(counts), "sorted")
    upper, lower, *_ = figure.axes
    drawn, _ = mapped(figure)
    assert drawn[0].tolist() == [5] * 75 + [0] * 75
    assert drawn[1].tolist() == [0] * 74 + [2] + [5] * 75  # the one with other samples is the last of its class
    assert upper.patches[0].get_data().values.tolist() == [5] * 74 + [7] + [5] * 75
    assert lower.get_xlabel() == "clients, sorted by their most frequent class"
    m = 3 * COLUMNS + 7  # clients share columns where there are more than can be drawn
    counts = np.random.default_rng(0).integers(0, 9, (m, 4))
    figure = plot_partition(division(counts), "very many")
    drawn, mesh = mapped(figure)
    assert drawn.shape == (4, COLUMNS)
    widths = np.diff(mesh.get_coordinates()[0, :, 0])
    assert (drawn * widths).sum() == pytest.approx(counts.sum())
    assert figure.axes[2].get_ylabel() == "samples (mean of a column)"


@pytest.mark.parametrize("m", [1, 5, 1000])
def test_labels_that_are_numbers_have_their_spread(m):
    lower = plot_partition(division(m=m), "numbers").axes[1]
    assert [text.get_text() for text in lower.get_legend().get_texts()] == ["range", "mean ± sd", "mean"]
    mean = lower.lines[-1].get_ydata()
    if m <= 40:
        assert mean.tolist() == np.linspace(1, -1, m).tolist()
        assert lower.get_xlabel() == "client"
    else:
        assert np.all(np.diff(mean) > 0)
        assert lower.get_xlabel() == "clients, sorted by their mean label"
