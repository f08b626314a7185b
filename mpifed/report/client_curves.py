"""The picture of `mpifed plot --clients`: numbers of clients by round, in order, and of clients that never train."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.by_client import MODELS, client_metric_names, client_tables, runs_with_metric, training_prefix
from mpifed.report.overlap import ABOVE
from mpifed.report.settings import group_label, group_runs, select_runs
from mpifed.report.style import DOUBLE, PictureOptions, check_width, escape_dollars, figure_with_legend
from mpifed.results.columns import client_column_info
from mpifed.results.over_clients import client_metrics, summarise_clients
from mpifed.results.result import RunRecord

QUANTILES = np.linspace(0, 1, 101)
NOTE = "with markers: mean over clients; thin: worst tenth"
MODEL_NAMES = ("server's\nmodel", "after own\nsteps", "personal\nmodel")


class GroupLine(NamedTuple):
    """The runs of a group, with the style of their curves."""

    runs: Sequence[RunRecord]
    look: dict[str, Any]


def plot_clients(results: Sequence[RunRecord], y: Sequence[str] | None = None, **wishes: Unpack[PictureOptions]) -> Any:
    """Draw a row of panels for each number ``y``, by default the first that results have.

    The panels are its mean and worst tenth by round; the clients of the last evaluation by rising number; and, where
    some never train, their mean and worst tenth at the server's model, after local steps and at personal models. Of
    several runs of a group the mean is drawn. UserError where no result has numbers of clients, or none of this name.
    """
    results, note = select_runs(results, wishes.get("everything", False))
    recorded = client_metric_names(results, y)
    names = list(y or recorded[:1])
    groups = group_runs(results, rename=wishes.get("rename") or ())
    looks = palette.curve_styles([group.settings.get("algorithm", "") for group in groups.groups])
    orders = [{"zorder": ABOVE + palette.GAPS[look["linestyle"]]} for look in looks]
    lines = [
        GroupLine(group.runs, look | order) for group, look, order in zip(groups.groups, looks, orders, strict=True)
    ]
    labels = [group_label(group, groups) for group in groups.groups]
    runs = [run for group in groups.groups for run in group.runs]
    trained = any(name in client_tables(run, "trained") for run in runs for name in names)
    unseen = any(name in client_tables(run, "unseen") for run in runs for name in names)
    drawn = [*([draw_by_round, draw_by_rank] if trained else []), *([draw_by_model] if unseen else [])]
    width = check_width(wishes.get("width"), DOUBLE)
    words = (wishes.get("title"), NOTE, note)
    with figure_with_legend(width, (len(names), len(drawn)), labels, looks, words) as (figure, panels):
        for row, name in zip(panels, names, strict=True):
            for axis, panel in zip(row, drawn, strict=True):
                panel(axis, lines, name)
                prefix = training_prefix(runs, "unseen" if panel is draw_by_model else "trained")
                axis.set_ylabel(
                    escape_dollars(
                        groups.names.of(prefix + (client_column_info(name).symbol or name.replace("_", " ")), name)
                    )
                )
    return figure


def thin_style(look: dict[str, Any]) -> dict[str, Any]:
    return {key: look[key] for key in ("color", "linestyle", "zorder")} | {"linewidth": 0.6}


def marker_positions(number: int, lines: Sequence[GroupLine], step: int) -> tuple[int, int]:
    """Return offset and step of the markers of a curve, in turn, so that none hides a marker of another."""
    return number * step // len(lines), step


def draw_by_round(axis: Any, lines: Sequence[GroupLine], name: str) -> None:
    """Draw mean and worst tenth over the rounds that all runs of a group have evaluated."""
    axis.set_xlabel("round")
    for number, (runs, look) in enumerate(lines):
        tables = [
            summarise_clients(client_tables(run, "trained"), name) for run in runs_with_metric(runs, "trained", name)
        ]
        if tables:
            count = min(len(table["round"]) for table in tables)
            equal = np.all([table["round"][:count] == tables[0]["round"][:count] for table in tables], axis=0)
            rounds = tables[0]["round"][:count][equal]
            mean, worst = (
                np.mean([table[key][:count][equal] for table in tables], axis=0) for key in ("mean", "worst_tenth")
            )
            axis.plot(rounds, mean, **look, markevery=marker_positions(number, lines, max(1, len(rounds) // 8)))
            axis.plot(rounds, worst, **thin_style(look))


def draw_by_rank(axis: Any, lines: Sequence[GroupLine], name: str) -> None:
    """Draw the quantiles over the clients of the last evaluation; of several runs the mean of their quantiles."""
    axis.set_xlabel("clients (%), by rising number")
    for number, (runs, look) in enumerate(lines):
        rows = [last_values(run, "trained", name) for run in runs_with_metric(runs, "trained", name)]
        if rows:
            quantiles = np.mean([np.quantile(row, QUANTILES) for row in rows], axis=0)
            axis.plot(100 * QUANTILES, quantiles, **look, markevery=marker_positions(number, lines, 12))


def draw_by_model(axis: Any, lines: Sequence[GroupLine], name: str) -> None:
    """Draw mean and worst tenth of the clients that never train, over the models at which they are tested."""
    columns = {column for runs, _ in lines for run in runs for column in client_metrics(client_tables(run, "unseen"))}
    forms = [form for form in MODELS if form.format(name) in columns]
    if len(forms) < 2:  # there are no other models than the server's
        axis.remove()
    axis.set_xticks(
        range(len(forms)), [words for form, words in zip(MODELS, MODEL_NAMES, strict=True) if form in forms]
    )
    axis.set(xlim=(-0.3, len(forms) - 0.7), xlabel="clients that never train")
    for runs, look in lines:
        for key, style in (("mean", look), ("worst_tenth", thin_style(look))):
            points = []
            for column in [form.format(name) for form in forms]:
                counted = runs_with_metric(runs, "unseen", column)
                values = [summarise_clients(client_tables(run, "unseen"), column)[key][-1] for run in counted]
                points.append(float(np.mean(values)) if values else np.nan)
            axis.plot(range(len(forms)), points, **style)


def last_values(run: RunRecord, who: str, name: str) -> Array:
    """Return the number of each client in the last evaluation, without the clients that have none."""
    row = client_tables(run, who)[name][-1]
    return row[~np.isnan(row)] if not np.isnan(row).all() else np.full(1, np.nan)
