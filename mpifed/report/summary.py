"""`mpifed show`: a result on one screen."""

import textwrap
from collections.abc import Collection

import numpy as np

from mpifed.core.errors import counted
from mpifed.core.typing import Array
from mpifed.report.certificate import brief
from mpifed.report.layout import MARGIN, WIDTH, Cell, aligned, amount, columns, number, part
from mpifed.report.metrics import AGES, before, column, final, finite, of_training
from mpifed.report.ranks import ranks
from mpifed.report.settings import shown
from mpifed.results.columns import EVALUATED_ON, Column, of_client
from mpifed.results.over_clients import client_columns, worst_tenth
from mpifed.results.result import Result

HEIGHT = 40
ASYNCHRONOUS = (*AGES, "computed_at_once")  # columns of asynchronous runs
NUMBERS = 6  # most numbers of clients that have a line each
LISTED = 16  # most ranks that have a row each
BUDGETS = ("epsilon", "epsilon_accounted")  # privacy spent, where any is guaranteed
DRAWN = ("objective", "grad_norm_sq", "accuracy")  # columns with a curve
BLOCKS = "▁▂▃▄▅▆▇█"
DECADES = 100.0  # largest value : least value from which on the scale is logarithmic
ABBREVIATIONS = "CR: rounds · TCT: time without evaluation · LCT: a round's computation, slowest rank"


def show(result: Result, everything: bool = False) -> str:
    """Settings, outcome, communication, time and ranks of a run, in 40 lines of 100 characters. A certificate has more.

    The settings are the names, the options of the method and what is not at its default; ``everything``: all.
    """
    drawn = curves(result)
    told = [(called(result, name), span(result.rounds[name]), curve) for name, curve in drawn.items()]
    parts = {
        "configuration": columns(list(shown(result, everything).items())) + notes(result, everything),
        "outcome": aligned(told) + columns(outcome(result, leave=drawn)),
        "certificate": brief(result),
        "communication": columns(communication(result) + arrivals(result)),
        "time (s)": [*columns(times(result)), ABBREVIATIONS],
    }
    upper = [title(result), *(part(name, lines) for name, lines in parts.items())]
    for listed, gap in ((LISTED, "\n\n"), (LISTED, "\n"), (1, "\n\n"), (1, "\n")):
        whole = [*upper, ranks(result, listed)]
        text = gap.join("\n".join(lines) for lines in whole if lines)
        if text.count("\n") < HEIGHT:
            break
    return text


def title(result: Result) -> list[str]:
    config = result.config
    name, problem, data = (config.get(key, {}).get("name", "?") for key in ("algorithm", "problem", "data"))
    size = [counted(result.m, "client")] + ([counted(result.x.size, "parameter")] if result.x is not None else [])
    status = {"running": "running, or killed"}.get(result.status, result.status)
    reason = f" ({result.stop_reason})" if result.stop_reason else ""
    size.append(counted(int(result.attrs.get("ranks", 1)), "rank"))
    lines = (
        (f"{name} on {problem} / {data}: {', '.join(size)}", f" · mpifed {result.attrs.get('mpifed_version', '?')}"),
        (f"{status}{reason} after {counted(result.cr, 'round')}", f" · started {result.attrs.get('started', '?')}"),
    )
    short = [textwrap.shorten(line, WIDTH, placeholder=" …") for line, _ in lines]
    return [line + more if len(line + more) <= WIDTH else less for (line, more), less in zip(lines, short, strict=True)]


def recorded(result: Result, part: str) -> dict[str, Column]:
    """The columns of a result that belong to a part of the summary."""
    found = {name: column(name) for name in result.rounds if name != "round" and len(result.rounds[name])}
    return {name: meaning for name, meaning in found.items() if meaning.part == part}


def notes(result: Result, everything: bool) -> list[str]:
    """What the run said of itself, whether it asked all clients without a selection, and how it computed."""
    told = str(result.attrs.get("notes", "")).splitlines()
    times = result.clients.get("times_selected", np.zeros(0))
    if result.cr and len(times) and not times.any() and not any("selection " in line for line in told):
        told.append(f"{result.config.get('algorithm', {}).get('name', '?')} asks all clients; selection has no effect")
    lines = [line for text in told for line in textwrap.wrap(text, WIDTH - MARGIN, subsequent_indent="    ")]
    if "block_bytes" in result.attrs:
        size = int(result.attrs["block_bytes"])
        lines.append(f"blocks of {size:,} bytes, because {result.attrs.get('block_bytes_reason', '?')}")
    if "group" in result.attrs:
        size = int(result.attrs["group"])
        how = f"in groups of {size}" if size > 1 else "one at a time"
        lines += textwrap.wrap(f"clients {how}, because {result.attrs.get('group_reason', '?')}", WIDTH - MARGIN)
    if everything and result.attrs.get("reduction"):
        lines.append(f"sums over clients: {result.attrs['reduction']}")
    return lines


def called(result: Result, name: str) -> str:
    """The name of a column, which says so where it is over training samples."""
    return of_training(name, [result]) + (column(name).symbol or name)


def curves(result: Result) -> dict[str, str]:
    found = {}
    for name in DRAWN:
        values = result.rounds.get(name, np.zeros(0))
        curve, logarithmic = sparkline(values)
        scale = "  log scale" if logarithmic else ""
        if name == "objective" and not logarithmic and (above := gaps(values)) is not None:
            curve = sparkline(above)[0]
            scale = "  log scale of f − least"
        if curve:
            found[name] = f"{curve}{scale}"
    return found


def sparkline(values: Array, width: int = 40) -> tuple[str, bool]:
    """At most ``width`` blocks whose heights follow the values, from the first to the last, and whether in logarithms.

    Values that are not finite are left out. No block where fewer than two values are left, or where they are equal.
    """
    values = finite(np.asarray(values, float))
    if len(values) < 2 or values.min() == values.max():
        return "", False
    logarithmic = float(values.max()) >= DECADES * float(values.min()) > 0
    if len(values) > width:
        values = values[np.linspace(0, len(values) - 1, width).round().astype(int)]
    heights = np.log(values) if logarithmic else values
    heights = heights / 2 - heights.min() / 2  # halves: no overflow
    if not heights.max():
        return "", False
    steps = (heights / heights.max() * len(BLOCKS)).astype(int)
    return "".join(BLOCKS[min(step, len(BLOCKS) - 1)] for step in steps), logarithmic


def gaps(values: Array) -> Array | None:
    """How far values are above their least; None where most of them can be told apart on a linear scale.

    Gaps that rounding decides are as large as rounding makes them.
    """
    values = finite(np.asarray(values, float))
    if not len(values):
        return None
    above = values - values.min()
    rounding = 4 * np.finfo(float).eps * float(np.abs(values).max())
    if np.median(above) >= above.max() / DECADES or above.max() < DECADES * rounding:
        return None
    return np.asarray(np.maximum(above, max(rounding, above[above > 0].min())))


def outcome(result: Result, leave: Collection[str]) -> list[Cell]:
    """First and last value of every evaluated column but those to ``leave`` out."""
    cells = []
    # A budget beside a method that guarantees nothing would read like a guarantee.
    guaranteed = not str(result.attrs.get("privacy", "none")).startswith("none")
    for name in recorded(result, "outcome"):
        if np.isfinite(result.rounds[name]).any() and name not in leave:
            remark = "" if guaranteed or name not in BUDGETS else " (no guarantee)"
            cells.append((f"{called(result, name)}{remark}", span(result.rounds[name])))
    evaluate = result.config.get("evaluate", {})
    if evaluate.get("clients") or evaluate.get("unseen"):
        cells += by_client(result)
    if result.config.get("stop", {}).get("gradient_scale") == "m^2" and result.m and "grad_norm_sq" in result.rounds:
        cells.append(("‖∇f‖²/m²", span(result.rounds["grad_norm_sq"] / result.m**2)))
    return cells


def by_client(result: Result) -> list[Cell]:
    """Of what was last evaluated of each client: the median, and the mean over the tenth of clients with the worst."""
    cells = []
    for whose, key, tables in (("", "clients", result.by_client), ("unseen ", "unseen", result.unseen)):
        training = before([str(result.attrs.get(EVALUATED_ON[key]))])
        for name in client_columns(tables):
            values = np.sort(tables[name][-1] * 1.0) if len(tables[name]) else np.zeros(0)
            values = values[~np.isnan(values)]
            if len(values):
                tenth = worst_tenth(values, of_client(name).better)
                least = f"{number(values[0])} … {number(values[-1])}"
                told = least if np.isnan(tenth) else f"worst tenth {number(tenth)}"
                cells.append(
                    (f"{whose}clients' {training}{name}", f"median {number(float(np.median(values)))}, {told}")
                )
    if len(cells) <= NUMBERS:
        return cells
    return [*cells[: NUMBERS - 1], ("numbers of clients", f"{len(cells)} in all: compare --clients")]


def span(values: Array) -> str:
    """The first and the last finite value."""
    values = values[np.isfinite(values)]
    first, last = (number(values[k]) for k in (0, -1)) if len(values) else ("nan", "nan")
    return last if first == last else f"{first} → {last}"


def communication(result: Result) -> list[Cell]:
    """What travelled between server and clients: counts, then bytes."""
    cells = []
    for name, meaning in sorted(recorded(result, "communication").items(), key=lambda one: one[1].unit == "byte"):
        if name not in ASYNCHRONOUS:
            total = result.rounds[name].sum() if meaning.span == "round" else result.rounds[name][-1]
            text = f"{amount(total)} ({total:,.0f})" if meaning.unit == "byte" else f"{total:,.0f}"
            cells.append((meaning.symbol or name, text))
    return cells


def arrivals(result: Result) -> list[Cell]:
    """Of an asynchronous run: how old uploads were, and how many clients each request to compute let work at once."""
    if not set(ASYNCHRONOUS) <= result.rounds.keys():
        return []
    together = result.rounds["computed_at_once"][1:]
    requests = together[together > 0]
    told = f"{requests.mean():.1f} a request, {len(requests):,} requests" if len(requests) else "nothing yet"
    age, oldest = (final(result, name) for name in AGES)
    ages = f"{age:.2f}, at most {oldest:.0f}" if len(together) else "nothing yet"
    return [("staleness", ages), ("clients computed", told)]


def times(result: Result) -> list[Cell]:
    """Rounds, and where the time went, in seconds over all of them; LCT is the mean of a round. And what computed."""
    cells = [("CR", f"{result.cr:,}"), ("TCT", number(result.tct)), ("LCT", number(result.lct))]
    columns = recorded(result, "time")
    if "simulated_seconds" in columns:
        cells.append(("simulated", number(result.rounds["simulated_seconds"][-1])))
    rounds = {name: meaning.symbol for name, meaning in columns.items() if meaning.span == "round"}
    cells += [(symbol, number(np.nansum(result.rounds[name]))) for name, symbol in rounds.items()]
    told = [(name, str(result.attrs[name])) for name in ("kernels", "local_steps") if name in result.attrs]
    return cells + [(name.replace("_", " "), text) for name, text in told]
