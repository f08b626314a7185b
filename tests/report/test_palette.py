"""A method has the same colour, marker and line in every picture."""

from itertools import combinations

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.report import boxplot, palette, plot
from tests.helpers.figures import legend
from tests.helpers.recorded_runs import recorded

# Machado, Oliveira, Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009)
BLINDNESS = {
    "none": np.eye(3),
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def linear(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(parts):
    x, y, z = np.cbrt(np.maximum(XYZ @ np.clip(parts, 0, 1) / np.array([0.9505, 1, 1.089]), 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_method_has_a_look_and_methods_differ_in_colour_and_line_and_from_three_more_curves_of_one():
    """Markers are far apart on a curve, so two curves that cross differ by more than a marker."""
    assert palette.METHODS.keys() == Algorithm.choices.keys()
    looks = palette.looks(list(palette.METHODS))
    assert len({(look["color"], look["linestyle"]) for look in looks}) == len(looks)
    looks = palette.looks([*palette.METHODS, "fedgia", "fedgia", "fedgia"])
    assert len({(look["color"], str(look["linestyle"]), look["marker"]) for look in looks}) == len(looks)


def test_colours_can_be_told_apart_without_one_kind_of_cone():
    for kind, matrix in BLINDNESS.items():
        seen = [lab(matrix @ linear(colour)) for colour in palette.COLOURS]
        assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 15, kind


def test_a_method_has_one_colour_in_every_picture_and_curves_of_it_have_shades_with_lines_and_markers_of_their_own():
    few = [recorded(name="scaffold"), recorded(name="fedavg")]
    many = [*few, *(recorded(name=name) for name in ("fedgia", "flame", "my.module:Mine"))]

    def colours(figure):
        handles = figure.legends[0].get_lines()
        return dict(zip(legend(figure), (line.get_color() for line in handles), strict=True))

    first, second = colours(plot.lines(few)), colours(plot.page(many))
    assert first == {name: second[name] for name in first} == {"FedAvg": "#000000", "SCAFFOLD": "#E69F00"}
    boxes = [*many, *(recorded(name=name, k0=9) for name in ("fedgia", "scaffold"))]
    assert {name: colour for name, colour in colours(boxplot.box(boxes, "k0")).items() if name in first} == first
    assert "Mine" in second
    assert palette.own("my.module:FedAvg") == palette.own("fedavg")  # a variant under the same name
    looks = palette.looks(["fedgia"] * 6)  # shades of a colour
    for part in ("color", "linestyle", "marker"):
        assert len({str(look[part]) for look in looks}) >= 5
    brightness = [float(lab(linear(look["color"]))[0]) for look in looks]
    assert brightness == sorted(brightness)
    assert palette.looks(["fedavg", "fedgia", "fedavg"])[1]["color"] == palette.own("fedgia").colour
