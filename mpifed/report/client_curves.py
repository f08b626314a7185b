"""`mpifed plot --clients`: numbers of clients by round, of all clients one by one, and of those that never train."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.by_client import MODELS, evaluated, numbers_of, stored, training
from mpifed.report.overlap import ABOVE
from mpifed.report.settings import label, select_runs, study
from mpifed.report.style import DOUBLE, Wishes, framed, paper, text
from mpifed.results.columns import of_client
from mpifed.results.over_clients import client_columns, over_clients
from mpifed.results.result import Result

SHARES = np.linspace(0, 1, 101)
NOTE = "with markers: mean over clients; thin: worst tenth"
TOLD = ("server's\nmodel", "after own\nsteps", "personal\nmodel")


class Line(NamedTuple):
    """The runs of a group, and how they are drawn."""

    runs: Sequence[Result]
    look: dict[str, Any]


def clients(results: Sequence[Result], y: Sequence[str] | None = None, **wishes: Unpack[Wishes]) -> Any:
    """A row of panels for each number ``y`` (default: the first that results have): its mean and worst tenth by round;
    the clients of the last evaluation by rising number; and, where some never train, their mean and worst tenth at the
    server's model, after steps of their own and at personal models. Of several runs of a group the mean is drawn.

    UserError where no result has numbers of clients, or none of this name.
    """
    results, note = select_runs(results, wishes.get("everything", False))
    there = numbers_of(results, y)
    names = list(y or there[:1])
    groups = study(results, rename=wishes.get("rename") or ())
    looks = palette.looks([group.settings.get("algorithm", "") for group in groups.groups])
    orders = [{"zorder": ABOVE + palette.GAPS[look["linestyle"]]} for look in looks]
    lines = [Line(group.runs, look | order) for group, look, order in zip(groups.groups, looks, orders, strict=True)]
    labels = [label(group, groups) for group in groups.groups]
    runs = [run for group in groups.groups for run in group.runs]
    trained = any(name in stored(run, "trained") for run in runs for name in names)
    unseen = any(name in stored(run, "unseen") for run in runs for name in names)
    drawn = [*([by_round, by_rank] if trained else []), *([by_model] if unseen else [])]
    width = paper(wishes.get("width"), DOUBLE)
    words = (wishes.get("title"), NOTE, note)
    with framed(width, (len(names), len(drawn)), labels, looks, words) as (figure, places):
        for row, name in zip(places, names, strict=True):
            for axis, panel in zip(row, drawn, strict=True):
                panel(axis, lines, name)
                of = training(runs, "unseen" if panel is by_model else "trained")
                axis.set_ylabel(text(groups.names.of(of + (of_client(name).symbol or name.replace("_", " ")), name)))
    return figure


def thin(look: dict[str, Any]) -> dict[str, Any]:
    return {key: look[key] for key in ("color", "linestyle", "zorder")} | {"linewidth": 0.6}


def turn(number: int, lines: Sequence[Line], step: int) -> tuple[int, int]:
    """Every how many points a curve has a marker: curves in turn, so that none hides that of another."""
    return number * step // len(lines), step


def by_round(axis: Any, lines: Sequence[Line], name: str) -> None:
    """Mean and worst tenth over the rounds that all runs of a group have evaluated."""
    axis.set_xlabel("round")
    for number, (runs, look) in enumerate(lines):
        found = [over_clients(stored(run, "trained"), name) for run in evaluated(runs, "trained", name)]
        if found:
            count = min(len(one["round"]) for one in found)
            alike = np.all([one["round"][:count] == found[0]["round"][:count] for one in found], axis=0)
            rounds = found[0]["round"][:count][alike]
            mean, worst = (
                np.mean([one[key][:count][alike] for one in found], axis=0) for key in ("mean", "worst_tenth")
            )
            axis.plot(rounds, mean, **look, markevery=turn(number, lines, max(1, len(rounds) // 8)))
            axis.plot(rounds, worst, **thin(look))


def by_rank(axis: Any, lines: Sequence[Line], name: str) -> None:
    """The clients of the last evaluation by rising number: their quantiles, of several runs the mean of these."""
    axis.set_xlabel("clients (%), by rising number")
    for number, (runs, look) in enumerate(lines):
        rows = [last(run, "trained", name) for run in evaluated(runs, "trained", name)]
        if rows:
            shares = np.mean([np.quantile(row, SHARES) for row in rows], axis=0)
            axis.plot(100 * SHARES, shares, **look, markevery=turn(number, lines, 12))


def by_model(axis: Any, lines: Sequence[Line], name: str) -> None:
    """Mean and worst tenth of the clients that never train, over the models at which they are tested."""
    have = {column for runs, _ in lines for run in runs for column in client_columns(stored(run, "unseen"))}
    there = [form for form in MODELS if form.format(name) in have]
    if len(there) < 2:  # a number at models of clients' own
        axis.remove()
    axis.set_xticks(range(len(there)), [told for form, told in zip(MODELS, TOLD, strict=True) if form in there])
    axis.set(xlim=(-0.3, len(there) - 0.7), xlabel="clients that never train")
    for runs, look in lines:
        for key, style in (("mean", look), ("worst_tenth", thin(look))):
            points = []
            for column in [form.format(name) for form in there]:
                own = evaluated(runs, "unseen", column)
                found = [over_clients(stored(run, "unseen"), column)[key][-1] for run in own]
                points.append(float(np.mean(found)) if found else np.nan)
            axis.plot(range(len(there)), points, **style)


def last(run: Result, who: str, name: str) -> Array:
    """The number of each client in the last evaluation, of those that have it."""
    row = stored(run, who)[name][-1]
    return row[~np.isnan(row)] if not np.isnan(row).all() else np.full(1, np.nan)
