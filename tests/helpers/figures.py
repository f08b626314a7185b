"""What is in a figure: axes, curves, bands, the legend."""

from mpifed.report import plot
from tests.helpers.recorded_runs import recorded


def axes_of(figure):
    return figure.get_axes()


def panel(runs, **options):
    """The only panel of a picture of curves."""
    (axis,) = axes_of(plot.plot_lines(runs, **options))
    return axis


def heading(figure):
    """The words above the panels."""
    title = figure.legends[0].get_title().get_text() if figure.legends else figure.get_suptitle()
    return title.replace("\n", " ")


def ticks(axis):
    return [tick.get_text() for tick in axis.get_xticklabels()]


def curve(axis, number=0):
    return [values.tolist() for values in axis.get_lines()[number].get_data()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def grid(*ends):
    """Two seeds of two step numbers."""
    return [
        recorded(seed=seed, k0=k, objective=(8.0, 4.0, end + seed))
        for k, end in zip((5, 10), ends, strict=True)
        for seed in range(2)
    ]
