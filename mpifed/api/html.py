"""A result in a notebook: a small table and curves, drawn as SVG without scripts and without matplotlib."""

from html import escape

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.curves import spans_decades
from mpifed.report.metrics import finite_values, metric_info, metric_title
from mpifed.report.settings import summary_settings
from mpifed.report.summary import DRAWN, column_title, format_span
from mpifed.report.tables import format_bytes, format_number
from mpifed.results.result import RunRecord

WIDTH, HEIGHT = 280, 150  # of a curve, in pixels
LEFT = 52  # the margins of the curve
RIGHT = 8
TOP = BOTTOM = 20
POINTS = 200  # of a curve, at most
SHOWN = 10  # settings in the table, at most
LONGEST = 32  # characters of a value
HEADLINE = ("algorithm", "problem", "data")


def page(result: RunRecord, headline: str) -> str:
    """Return the table and the curves side by side, or one below the other where there is no room."""
    parts = "".join([summary_table(result), *(svg_curve(result, name) for name in curve_columns(result))])
    style = "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start"
    return f"<div><b>{escape(headline)}</b><div style='{style}'>{parts}</div></div>"


def curve_columns(result: RunRecord) -> list[str]:
    """Return the columns with a curve: f, and accuracy or else ‖∇f‖²."""
    second = "accuracy" if "accuracy" in result.rounds else "grad_norm_sq"
    return [name for name in ("objective", second) if len(finite_values(result.rounds.get(name))) > 1]


def summary_table(result: RunRecord) -> str:
    """Return a table of outcome, cost, and the settings that were changed or matter."""
    recorded = [name for name in DRAWN if len(finite_values(result.rounds.get(name)))]
    rows = [(column_title(result, name), format_span(result.rounds[name])) for name in recorded]
    rows += [("why it ended", result.stop_reason)] if result.stop_reason else []
    if len(result.rounds):
        bytes_sent = [result.rounds[key][-1] for key in ("bytes_up", "bytes_down") if len(result.rounds.get(key, ()))]
        sent = list(map(format_bytes, bytes_sent))
        rows += [("bytes up, down", ", ".join(sent))] if sent else []
        rows.append(("TCT, LCT", f"{format_number(result.tct)} s, {format_number(result.lct)} s"))
    settings = [(key, value) for key, value in summary_settings(result).items() if key not in HEADLINE]
    rows += sorted(settings, key=lambda setting: not setting[0].startswith("algorithm"))[:SHOWN]
    cell = "<tr><td style='text-align:left'>{}</td><td style='text-align:left'>{}</td></tr>"
    cut = ((key, value if len(value) <= LONGEST else value[: LONGEST - 1] + "…") for key, value in rows)
    return f"<table>{''.join(cell.format(escape(key), escape(value)) for key, value in cut)}</table>"


def svg_curve(result: RunRecord, name: str) -> str:
    """Draw a column by round as an SVG."""
    measured = np.flatnonzero(np.isfinite(result.rounds[name]))
    kept = measured[np.unique(np.linspace(0, len(measured) - 1, min(POINTS, len(measured))).astype(int))]
    x, y = (np.asarray(result.rounds[key], float)[kept] for key in ("round", name))
    log = spans_decades([y])
    across = LEFT + (WIDTH - LEFT - RIGHT) * scale(x)
    down = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * scale(np.log10(y) if log else y)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    unit = metric_info(name).unit
    head = metric_title(name, "" if unit == "1" else unit, [result]) + (", logarithmic" if log else "")
    labels = [
        (LEFT - 4, TOP + 8, format_number(y.max()), "end"),
        (LEFT - 4, HEIGHT - BOTTOM, format_number(y.min()), "end"),
        (LEFT, HEIGHT - 5, f"round {x[0]:.0f}", "start"),
        (WIDTH - RIGHT, HEIGHT - 5, f"{x[-1]:.0f}", "end"),
        (LEFT, TOP - 7, head, "start"),
    ]
    words = "".join(
        f"<text x='{a}' y='{b}' font-size='11' text-anchor='{anchor}' fill='currentColor'>{escape(label)}</text>"
        for a, b, label, anchor in labels
    )
    frame = f"M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}' style='max-width:none' role='img' "
        f"aria-label='{escape(head)} by round'><path d='{frame}' fill='none' stroke='currentColor' opacity='0.5'/>"
        f"<polyline points='{points}' fill='none' stroke='#0072b2' stroke-width='1.8'/>{words}</svg>"
    )


def scale(values: Array) -> Array:
    """Scale values linearly to 0 … 1; ½ where all are equal."""
    low, high = values.min(), values.max()
    return np.asarray((values - low) / (high - low) if high > low else np.full(len(values), 0.5))
