"""`mpifed plot --profile`: on which share of the instances is a method within a factor of the best one."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import UserError, counted, unknown
from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.overlap import ABOVE, piles
from mpifed.report.settings import Study, label, study
from mpifed.report.statistics import Band, band, profile, ratios
from mpifed.report.style import RC, SINGLE, Wishes, framed, paper
from mpifed.results.result import Result

FACTORS = 200  # points of a curve
WIDE = 10.0  # the axis of factors goes so far at least
WIDER = 1.1  # and so many times the largest ratio
LARGEST = 1000.0
TICKS = (1, 2, 5)  # and their tenfolds
MARKED = 6  # markers of a curve
BANDS = ("none", "bootstrap")
ASIDE = ("algorithm", "ranks")  # settings that do not tell one instance from another


class Costs(NamedTuple):
    """What is compared: a name and a method for each column; costs (instances, methods) of every group of instances."""

    labels: Sequence[str]
    methods: Sequence[str]
    groups: Sequence[Array]
    unfinished: int = 0  # runs that did not finish, which have no cost


def draw(costs: Costs, what: str, **wishes: Unpack[Wishes]) -> Any:
    """A figure with a curve for each method, and bands of the bootstrap over groups and instances.

    Source: Dolan and Moré, see ``statistics.ratios``.
    """
    kind = wishes.get("band") or "bootstrap"
    if kind not in BANDS:
        unknown("band", kind, BANDS)
    found = ratios(np.concatenate(list(costs.groups)))
    if not np.isfinite(found).any():
        raise UserError(f"there is nothing to draw: no run has a value of {what}")
    factors = np.geomspace(1, np.clip(WIDER * found[np.isfinite(found)].max(), WIDE, LARGEST), FACTORS)
    width = paper(wishes.get("width"), SINGLE)
    looks = palette.looks(costs.methods)
    bands = "" if kind == "none" else "; bands: 95 % of bootstrap draws"
    lost = f"did not finish and count as never there: {counted(costs.unfinished, 'run')}" if costs.unfinished else ""
    words = (wishes.get("title"), f"{sum(map(len, costs.groups))} instances{bands}", lost)
    with framed(width, (1, 1), costs.labels, looks, words) as (figure, places):
        axis = places[0, 0]
        axis.set(xlabel=f"{what}, over that of the best", ylabel="share of instances", ylim=(-0.02, 1.02))
        along(axis)
        reach = band(costs.groups, lambda one: profile(one, factors), 400)
        curves(axis, factors, reach, looks)
        if kind != "none":
            for low, high, look in zip(reach.low, reach.high, looks, strict=True):
                axis.fill_between(factors, low, high, color=look["color"], alpha=0.12, linewidth=0)
    return figure


def curves(axis: Any, factors: Array, reach: Band, looks: Sequence[dict[str, Any]]) -> None:
    """Draw the shares of all methods; a curve that lies on another leaves gaps, and the other is wider."""
    blank = [palette.GAPS[look["linestyle"]] for look in looks]
    found = piles([(factors, shares) for shares in reach.middle], False, blank)
    step = FACTORS // MARKED
    for k, (shares, look, pile) in enumerate(zip(reach.middle, looks, found, strict=True)):
        own = look | {"zorder": ABOVE + blank[k], "linewidth": pile.width(RC["lines.linewidth"])}
        axis.plot(factors, shares, **own, markevery=(k * step // len(looks), step), drawstyle="steps-post")


def along(axis: Any) -> None:
    """Make the axis of factors logarithmic, with the numbers 1, 2, 5, 10, 20 …"""
    from matplotlib import ticker

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=TICKS, numticks=20))
    axis.xaxis.set_major_formatter(lambda value, index: f"{value:g}")
    axis.xaxis.set_minor_locator(ticker.NullLocator())


def collected(results: Sequence[Result], values: Sequence[float], rename: Sequence[str] = ()) -> Costs:
    """The costs of runs, one ``value`` each: a column for each setting, a group for each data set, a row for each seed.

    UserError where the rows are not complete: every method must have run on the same data with the same seeds.
    """
    if any(cost < 0 for cost in values):
        raise UserError("a profile is of a cost, of which less is better and which is never below 0, such as rounds")
    groups = study(results, rename=rename)
    value = {id(result): cost for result, cost in zip(results, values, strict=True)}
    columns = columns_of(groups)
    where = {key for column in columns.values() for key in column}
    lacking = [name for name, column in columns.items() if set(column) != where]
    if lacking or len(columns) < 2:
        which = f"{lacking[0]} lacks some" if lacking else "there is one method"
        raise UserError(f"a profile needs several methods with runs on the same data and seeds: {which}")
    tasks = sorted({key[0] for key in where})
    rows = [
        np.array([[value[id(column[key])] for column in columns.values()] for key in sorted(where) if key[0] == own])
        for own in tasks
    ]
    methods = [next(iter(column.values())).config["algorithm"]["name"] for column in columns.values()]
    return Costs(list(columns), methods, rows, sum(run.status != "finished" for run in results))


def columns_of(groups: Study) -> dict[str, dict[tuple[Any, str], Result]]:
    """Name of a method with its settings -> (all other settings, seed) -> run."""
    apart = [key for key in groups.keys if key.split(".")[0] == "algorithm"]
    own = groups._replace(keys={key: groups.keys[key] for key in apart})
    found: dict[str, dict[tuple[Any, str], Result]] = {}
    for group in groups.groups:
        column = found.setdefault(label(group, own) or group.settings["algorithm"], {})
        rest = tuple(part for part in sorted(group.settings.items()) if part[0].split(".")[0] not in ASIDE)
        for run in group.runs:
            column[rest, str(run.config.get("seed", 0))] = run
    return found
