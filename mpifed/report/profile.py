"""The picture of `mpifed plot --profile`: on which fraction of the instances a method is near the best one."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import UserError, format_count, raise_unknown
from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.axes import ABOVE, find_piles
from mpifed.report.curves import require_drawable
from mpifed.report.settings import RunGroups, group_label, group_runs
from mpifed.report.statistics import BootstrapBand, bootstrap_band, cost_ratios, performance_profile
from mpifed.report.style import RC, SINGLE, PictureOptions, check_width, figure_with_legend
from mpifed.results.result import RunRecord

FACTORS = 200  # points of a curve
WIDE = 10.0  # minimum end of the axis of factors
WIDER = 1.1  # its end over the largest ratio
LARGEST = 1000.0
TICKS = (1, 2, 5)  # and their tenfolds
MARKED = 6  # markers of a curve
BANDS = ("none", "bootstrap")
ASIDE = ("algorithm", "ranks")  # settings that do not distinguish instances


class Costs(NamedTuple):
    """The costs to compare: a name and a method for each column; costs (instances, methods) of each group."""

    labels: Sequence[str]
    methods: Sequence[str]
    groups: Sequence[Array]
    unfinished: int = 0  # number of unfinished runs, which have no cost


def plot_profile(costs: Costs, what: str, **wishes: Unpack[PictureOptions]) -> Any:
    """Draw a curve for each method, and bands of the bootstrap over groups and instances.

    Source: Dolan and Moré, cited in ``report.statistics``.
    """
    kind = wishes.get("band") or "bootstrap"
    if kind not in BANDS:
        raise_unknown("band", kind, BANDS)
    relative = cost_ratios(np.concatenate(list(costs.groups)))
    require_drawable(bool(np.isfinite(relative).any()), f"no run has a value of {what}")
    factors = np.geomspace(1, np.clip(WIDER * relative[np.isfinite(relative)].max(), WIDE, LARGEST), FACTORS)
    width = check_width(wishes.get("width"), SINGLE)
    looks = palette.curve_styles(costs.methods)
    bands = "" if kind == "none" else "; bands: 95 % of bootstrap draws"
    never = f"did not finish and count as never there: {format_count(costs.unfinished, 'run')}"
    misses = never if costs.unfinished else ""
    words = (wishes.get("title"), f"{sum(map(len, costs.groups))} instances{bands}", misses)
    with figure_with_legend(width, (1, 1), costs.labels, looks, words) as (figure, panels):
        axis = panels[0, 0]
        axis.set(xlabel=f"{what}, over that of the best", ylabel="share of instances", ylim=(-0.02, 1.02))
        set_factor_axis(axis)
        reach = bootstrap_band(costs.groups, lambda one: performance_profile(one, factors), 400)
        draw_curves(axis, factors, reach, looks)
        if kind != "none":
            for low, high, look in zip(reach.low, reach.high, looks, strict=True):
                axis.fill_between(factors, low, high, color=look["color"], alpha=0.12, linewidth=0)
    return figure


def draw_curves(axis: Any, factors: Array, reach: BootstrapBand, looks: Sequence[dict[str, Any]]) -> None:
    """Draw the fractions of all methods; where curves coincide, one leaves gaps and the other is wider."""
    blank = [palette.GAPS[look["linestyle"]] for look in looks]
    overlaps = find_piles([(factors, fractions) for fractions in reach.middle], False, blank)
    step = FACTORS // MARKED
    for k, (fractions, look, pile) in enumerate(zip(reach.middle, looks, overlaps, strict=True)):
        style = look | {"zorder": ABOVE + blank[k], "linewidth": pile.width(RC["lines.linewidth"])}
        axis.plot(factors, fractions, **style, markevery=(k * step // len(looks), step), drawstyle="steps-post")


def set_factor_axis(axis: Any) -> None:
    """Make the axis of factors logarithmic, with the numbers 1, 2, 5, 10, 20 …"""
    from matplotlib import ticker

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=TICKS, numticks=20))
    axis.xaxis.set_major_formatter(lambda value, index: f"{value:g}")
    axis.xaxis.set_minor_locator(ticker.NullLocator())


def collect_costs(results: Sequence[RunRecord], values: Sequence[float], rename: Sequence[str] = ()) -> Costs:
    """Return the costs of runs, one ``value`` each: a column for each setting, a group for each data set.

    The rows of a group are seeds. UserError where methods did not run on the same data with the same seeds.
    """
    if any(cost < 0 for cost in values):
        raise UserError("a profile is of a cost, of which less is better and which is never below 0, such as rounds")
    groups = group_runs(results, rename=rename)
    value = {id(result): cost for result, cost in zip(results, values, strict=True)}
    columns = runs_by_method(groups)
    instances = {key for column in columns.values() for key in column}
    incomplete = [name for name, column in columns.items() if set(column) != instances]
    if incomplete or len(columns) < 2:
        which = f"{incomplete[0]} lacks some" if incomplete else "there is one method"
        raise UserError(f"a profile needs several methods with runs on the same data and seeds: {which}")
    rows: dict[Any, list[list[float]]] = {}
    for key in sorted(instances):
        rows.setdefault(key[0], []).append([value[id(column[key])] for column in columns.values()])
    methods = [next(iter(column.values())).config["algorithm"]["name"] for column in columns.values()]
    unfinished = sum(run.status != "finished" for run in results)
    return Costs(list(columns), methods, list(map(np.array, rows.values())), unfinished)


def runs_by_method(groups: RunGroups) -> dict[str, dict[tuple[Any, str], RunRecord]]:
    """Return name of a method with its settings -> (all other settings, seed) -> run."""
    method_keys = [key for key in groups.keys if key.split(".")[0] == "algorithm"]
    of_methods = groups._replace(keys={key: groups.keys[key] for key in method_keys})
    runs: dict[str, dict[tuple[Any, str], RunRecord]] = {}
    for group in groups.groups:
        column = runs.setdefault(group_label(group, of_methods) or group.settings["algorithm"], {})
        rest = tuple(part for part in sorted(group.settings.items()) if part[0].split(".")[0] not in ASIDE)
        for run in group.runs:
            column[rest, str(run.config.get("seed", 0))] = run
    return runs
