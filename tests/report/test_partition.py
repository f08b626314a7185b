"""Pictures of partitions: a cell for each class and client, or the spread of labels; above a panel for each role."""

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex

from mpifed.report.partition import COLUMNS, Division, plot_partition


def division(counts=None, m=None, names=None, **roles):
    """Clients with these counts (m, C) of classes, or m clients whose labels are numbers."""
    if counts is None:
        mean = np.linspace(1, -1, m)
        sizes = sp.csr_array(np.arange(1, m + 1)[:, None])
        return Division({"training": sizes}, [], np.stack([mean, mean * 0 + 0.5, mean - 2, mean + 3]))
    names = names or [str(k) for k in range(len(counts[0]))]
    roles = {role: sp.csr_array(np.array(values)) for role, values in {"training": counts, **roles}.items()}
    return Division(roles, names, np.zeros((4, len(counts))))


def mapped(figure):
    """The numbers (C, columns) of a map and their mesh."""
    (mesh,) = (one for one in figure.axes[1].collections if isinstance(one, QuadMesh))
    return np.asarray(mesh.get_array()), mesh


def stacks(axis):
    """The columns of a panel: for each, from below, (class colour, height) of its parts."""
    (parts,) = axis.collections
    columns = {}
    for path, colour in zip(parts.get_paths(), parts.get_facecolors(), strict=True):
        (left, bottom), _, (right, top), *_ = path.vertices
        columns.setdefault((left + right) / 2, []).append((to_hex(colour), bottom, top))
    for of_client in columns.values():
        assert [bottom for _, bottom, _ in of_client] == [0, *(top for _, _, top in of_client[:-1])]
    return {x: [(colour, top - bottom) for colour, bottom, top in parts] for x, parts in columns.items()}


def test_each_role_has_a_panel_of_bars_in_the_colours_of_the_classes():
    names = ["ant", "b" * 20, "$"]
    both = division([[4, 0, 0], [1, 9, 0]], names=names, test=[[1, 0, 0], [0, 0, 2]])
    training, test, lower, *_ = plot_partition(both, "two clients").axes
    ant, b, c = [to_hex(bar.get_facecolor()) for bar in lower.patches]  # beside the names
    assert len({ant, b, c}) == 3
    assert stacks(training) == {0: [(ant, 4)], 1: [(ant, 1), (b, 9)]}
    assert stacks(test) == {0: [(ant, 1)], 1: [(c, 2)]}
    assert [tick.get_text() for tick in lower.get_yticklabels()] == ["ant", "b" * 13 + "…", r"\$"]
    assert lower.figure.get_suptitle() == "two clients"
    assert [axis.get_ylabel() for axis in (training, test, lower)] == ["training", "test", "class"]
    empty = division([[1]], test=[[0]])  # no client has a test sample
    assert plot_partition(empty, "").axes[1].get_ylim() == (0, 1.08)


@pytest.mark.parametrize(("m", "C"), [(3, 2), (41, 3), (3, 31), (100, 200)])
def test_samples_by_class_and_client_are_a_map(m, C):
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
    assert [sum(height for _, height in parts) for parts in stacks(upper).values()] == [5] * 74 + [7] + [5] * 75
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
