"""The summary of a result on one screen, for `mpifed show`: settings, outcome, communication, time and ranks."""

import math
import textwrap
from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from mpifed.core.errors import format_count
from mpifed.core.typing import Array
from mpifed.report.certificate import summarise_certificate
from mpifed.report.metrics import AGES, final_metric, finite_values, metric_info, samples_prefix, training_title_prefix
from mpifed.report.settings import summary_settings
from mpifed.report.tables import (
    MARGIN,
    WIDTH,
    Cell,
    align_rows,
    flow_cells,
    format_bytes,
    format_decimals,
    format_number,
    label_section,
)
from mpifed.results.best import find_best
from mpifed.results.columns import EVALUATED_ON, RANKS, ColumnInfo, client_column_info
from mpifed.results.over_clients import client_metrics, worst_tenth_mean
from mpifed.results.result import RunRecord

HEIGHT = 40
ASYNCHRONOUS = (*AGES, "computed_at_once")  # columns of asynchronous runs
NUMBERS = 6  # maximum numbers of clients with a line each
LISTED = 16  # maximum ranks with a row each
BUDGETS = ("epsilon", "epsilon_accounted", "epsilon_pld", "epsilon_rdp")  # privacy spent, if some is guaranteed
DRAWN = ("objective", "grad_norm_sq", "accuracy")  # columns with a curve
BLOCKS = "▁▂▃▄▅▆▇█"
DECADES = 100.0  # largest over smallest value from which on the scale is logarithmic
IN_WORDS = (
    "hostname",
    "threads",
    "cpus",
    "blas",
    "block_bytes",
    "block_bytes_reason",
    "sample_space_clients",
)  # columns shown in words
RARE = ("shared_bytes", "max_device_bytes")  # columns that are listed if one of them is above 0
SPARE = 1.25  # memory to ask for over the measured peak
MIB = 1 << 20  # SLURM's M
ABBREVIATIONS = "CR: rounds · TCT: time without evaluation · LCT: a round's computation, slowest rank"


def show(result: RunRecord, everything: bool = False) -> str:
    """Return settings, outcome, communication, time and ranks of a run, in 40 lines of 100 characters.

    A certificate has more lines. The settings are the names, the options of the method and what is not at its default;
    ``everything``: all.
    """
    drawn = draw_sparklines(result)
    rows = [(column_title(result, name), format_span(result.rounds[name]), curve) for name, curve in drawn.items()]
    named_lines = {
        "configuration": flow_cells(list(summary_settings(result, everything).items()))
        + note_lines(result, everything),
        "outcome": align_rows(rows) + flow_cells(outcome_cells(result, leave=drawn)),
        "certificate": summarise_certificate(result),
        "communication": flow_cells(communication_cells(result) + arrival_cells(result)),
        "time (s)": [*flow_cells(time_cells(result)), ABBREVIATIONS],
    }
    upper = [title_lines(result), *(label_section(name, lines) for name, lines in named_lines.items())]
    for listed, gap in ((LISTED, "\n\n"), (LISTED, "\n"), (1, "\n\n"), (1, "\n")):
        sections = [*upper, rank_lines(result, listed)]
        text = gap.join("\n".join(lines) for lines in sections if lines)
        if text.count("\n") < HEIGHT:
            break
    return text


def title_lines(result: RunRecord) -> list[str]:
    config = result.config
    name, problem, data = (config.get(key, {}).get("name", "?") for key in ("algorithm", "problem", "data"))
    size = [format_count(result.m, "client")] + (
        [format_count(result.x.size, "parameter")] if result.x is not None else []
    )
    status = {"running": "running, or killed"}.get(result.status, result.status)
    reason = f" ({result.stop_reason})" if result.stop_reason else ""
    size.append(format_count(int(result.attrs.get("ranks", 1)), "rank"))
    lines = (
        (f"{name} on {problem} / {data}: {', '.join(size)}", f" · mpifed {result.attrs.get('mpifed_version', '?')}"),
        (
            f"{status}{reason} after {format_count(result.cr, 'round')}",
            f" · started {result.attrs.get('started', '?')}",
        ),
    )
    short = [textwrap.shorten(line, WIDTH, placeholder=" …") for line, _ in lines]
    return [line + more if len(line + more) <= WIDTH else less for (line, more), less in zip(lines, short, strict=True)]


def columns_of(result: RunRecord, part: str) -> dict[str, ColumnInfo]:
    """Return the columns of a result that belong to a section of the summary."""
    meanings = {name: metric_info(name) for name in result.rounds if name != "round" and len(result.rounds[name])}
    return {name: meaning for name, meaning in meanings.items() if meaning.part == part}


def note_lines(result: RunRecord, everything: bool) -> list[str]:
    """Return the notes of a run, whether it asked all clients without a selection, and how it computed."""
    remarks = str(result.attrs.get("notes", "")).splitlines()
    times = result.clients.get("times_selected", np.zeros(0))
    if result.cr and len(times) and not times.any() and not any("selection " in line for line in remarks):
        remarks.append(
            f"{result.config.get('algorithm', {}).get('name', '?')} asks all clients; selection has no effect"
        )
    lines = [line for text in remarks for line in textwrap.wrap(text, WIDTH - MARGIN, subsequent_indent="    ")]
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


def column_title(result: RunRecord, name: str) -> str:
    """Return the name of a column, which says so if it is on training samples."""
    return training_title_prefix(name, [result]) + (metric_info(name).symbol or name)


def draw_sparklines(result: RunRecord) -> dict[str, str]:
    sparklines = {}
    for name in DRAWN:
        values = result.rounds.get(name, np.zeros(0))
        curve, logarithmic = sparkline(values)
        scale = "  log scale" if logarithmic else ""
        if name == "objective" and not logarithmic and (above := gaps_above_smallest(values)) is not None:
            curve = sparkline(above)[0]
            scale = "  log scale of f − least"
        if curve:
            sparklines[name] = f"{curve}{scale}"
    return sparklines


def sparkline(values: Array, width: int = 40) -> tuple[str, bool]:
    """Return at most ``width`` blocks with heights that follow the values, and whether on a logarithmic scale.

    Values that are not finite are left out. No block where fewer than two values are left, or where they are equal.
    """
    values = finite_values(np.asarray(values, float))
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


def gaps_above_smallest(values: Array) -> Array | None:
    """Return how far values are above the smallest; None where a linear scale shows most of them apart.

    Gaps that rounding decides are as large as rounding makes them.
    """
    values = finite_values(np.asarray(values, float))
    if not len(values):
        return None
    above = values - values.min()
    rounding = 4 * np.finfo(float).eps * float(np.abs(values).max())
    if np.median(above) >= above.max() / DECADES or above.max() < DECADES * rounding:
        return None
    return np.asarray(np.maximum(above, max(rounding, above[above > 0].min())))


def outcome_cells(result: RunRecord, leave: Collection[str]) -> list[Cell]:
    """Return first and last value of every evaluated column except those to ``leave`` out."""
    cells = []
    # Without a guarantee, a bare budget would read like one.
    guaranteed = not str(result.attrs.get("privacy", "none")).startswith("none")
    for name in columns_of(result, "outcome"):
        if np.isfinite(result.rounds[name]).any() and name not in leave:
            remark = "" if guaranteed or name not in BUDGETS else " (no guarantee)"
            cells.append((f"{column_title(result, name)}{remark}", format_span(result.rounds[name])))
    if "best_round" in result.attrs:
        best = find_best(result)
        cells.append((f"best round, by {best.by}", f"{best.round}"))
    evaluate = result.config.get("evaluate", {})
    if evaluate.get("clients") or evaluate.get("unseen"):
        cells += client_cells(result)
    if result.config.get("stop", {}).get("gradient_scale") == "m^2" and result.m and "grad_norm_sq" in result.rounds:
        cells.append(("‖∇f‖²/m²", format_span(result.rounds["grad_norm_sq"] / result.m**2)))
    return cells


def client_cells(result: RunRecord) -> list[Cell]:
    """Return the median over clients of their last evaluation, and the mean over the worst tenth."""
    cells = []
    for whose, key, tables in (("", "clients", result.by_client), ("unseen ", "unseen", result.unseen)):
        training = samples_prefix([str(result.attrs.get(EVALUATED_ON[key]))])
        for name in client_metrics(tables):
            values = np.sort(tables[name][-1] * 1.0) if len(tables[name]) else np.zeros(0)
            values = values[~np.isnan(values)]
            if len(values):
                tenth = worst_tenth_mean(values, client_column_info(name).better)
                extremes = f"{format_number(values[0])} … {format_number(values[-1])}"
                spread_words = extremes if np.isnan(tenth) else f"worst tenth {format_number(tenth)}"
                median = format_number(float(np.median(values)))
                cells.append((f"{whose}clients' {training}{name}", f"median {median}, {spread_words}"))
    if len(cells) <= NUMBERS:
        return cells
    return [*cells[: NUMBERS - 1], ("numbers of clients", f"{len(cells)} in all: compare --clients")]


def format_span(values: Array) -> str:
    """Return the first and the last finite value."""
    values = values[np.isfinite(values)]
    first, last = (format_number(values[k]) for k in (0, -1)) if len(values) else ("nan", "nan")
    return last if first == last else f"{first} → {last}"


def communication_cells(result: RunRecord) -> list[Cell]:
    """Return the traffic between server and clients: counts, then bytes."""
    cells = []
    for name, meaning in sorted(columns_of(result, "communication").items(), key=lambda one: one[1].unit == "byte"):
        if name not in ASYNCHRONOUS:
            total = result.rounds[name].sum() if meaning.span == "round" else result.rounds[name][-1]
            text = f"{format_bytes(total)} ({total:,.0f})" if meaning.unit == "byte" else f"{total:,.0f}"
            cells.append((meaning.symbol or name, text))
    return cells


def arrival_cells(result: RunRecord) -> list[Cell]:
    """Return the age of uploads of an asynchronous run, and how many clients computed at once for a request."""
    if not set(ASYNCHRONOUS) <= result.rounds.keys():
        return []
    together = result.rounds["computed_at_once"][1:]
    requests = together[together > 0]
    computed = f"{requests.mean():.1f} a request, {len(requests):,} requests" if len(requests) else "nothing yet"
    age, oldest = (final_metric(result, name) for name in AGES)
    ages = f"{age:.2f}, at most {oldest:.0f}" if len(together) else "nothing yet"
    return [("staleness", ages), ("clients computed", computed)]


def time_cells(result: RunRecord) -> list[Cell]:
    """Return rounds and kernels, and the seconds of each activity, over all rounds; LCT is the mean of a round."""
    cells = [("CR", f"{result.cr:,}"), ("TCT", format_number(result.tct)), ("LCT", format_number(result.lct))]
    columns = columns_of(result, "time")
    if "simulated_seconds" in columns:
        cells.append(("simulated", format_number(result.rounds["simulated_seconds"][-1])))
    rounds = {name: meaning.symbol for name, meaning in columns.items() if meaning.span == "round"}
    cells += [(symbol, format_number(np.nansum(result.rounds[name]))) for name, symbol in rounds.items()]
    kernels = [(name, str(result.attrs[name])) for name in ("kernels", "local_steps") if name in result.attrs]
    return cells + [(name.replace("_", " "), text) for name, text in kernels]


def rank_lines(result: RunRecord, listed: int) -> list[str]:
    """Return the last section of the summary, whose table takes the whole width below its name."""
    size = len(result.ranks.get("rank", ()))
    if not size:
        return []
    hosts = [str(host).partition(".")[0] for host in result.ranks.get("hostname", [""] * size)]
    few = size <= listed
    if few:
        table = [["rank", *map(str, range(size))], ["host", *hosts]]
    else:
        table = [["rank", "min", "median", "max"], ["host", "", f"{len(set(hosts))} hosts", ""]]
    for name, meaning in RANKS.items():
        if name in result.ranks and name not in IN_WORDS and (name not in RARE or np.any(result.ranks[name])):
            values = result.ranks[name] / (1e6 if meaning.unit == "byte" else 1)
            table.append(
                [meaning.symbol or name, *format_decimals(values if few else np.quantile(values, (0, 0.5, 1)))]
            )
    widths = [max(map(len, column)) for column in table]
    spaces = 2 if sum(widths) + 2 * len(widths) - 2 <= WIDTH else 1
    widths[1] = max(4, min(widths[1], WIDTH - sum(widths) + widths[1] - spaces * (len(widths) - 1)))
    table[1] = [host[: widths[1]].ljust(widths[1]) for host in table[1]]
    lines = [(" " * spaces).join(map(str.rjust, row, widths)) for row in zip(*table, strict=True)]
    threads = max(1, int(np.min(result.ranks.get("threads", np.ones(1)))))
    asked = memory_option(peak_memory(result.ranks), threads) if size > 1 else ""
    head = "seconds; MPI calls; MB sent, received and peak memory" + (f"; ask for {asked}" if asked else "")
    return ["ranks".ljust(MARGIN) + head, *binding_line(result), *lines]


def memory_per_cpu(peaks: Array, threads: int = 1) -> int:
    """Return the MiB to ask for, for each CPU of ranks of so many threads, from peaks in bytes of an earlier run.

    A quarter more than the largest peak, rounded up to two digits: SLURM limits a node, not a rank.
    """
    # Two digits, so that runs of similar size ask for the same memory, which batch systems queue together.
    need = SPARE * float(np.max(peaks, initial=0.0)) / MIB / threads
    digit = 10 ** max(0, math.floor(math.log10(max(need, 1.0))) - 1)
    return max(1, math.ceil(need / digit)) * digit


def peak_memory(ranks: Mapping[str, Array]) -> Array:
    """Return the peak of each rank in bytes, from the columns of /ranks; memory that ranks share is divided by them."""
    peak = np.asarray(ranks.get("max_rss_bytes", np.zeros(0)), float)
    if not {"shared_bytes", "hostname"} <= ranks.keys():
        return peak
    _, machine, count = np.unique(ranks["hostname"], return_inverse=True, return_counts=True)
    shared = np.minimum(ranks["shared_bytes"], peak)  # a rank may have used only some of it
    return peak - shared + shared / count[machine]


def memory_option(peaks: Array, threads: int = 1) -> str:
    """Return the option of sbatch for ranks with a CPU for each thread; empty where no peak was measured."""
    return f"--mem-per-cpu={memory_per_cpu(peaks, threads)}M" if np.any(peaks > 0) else ""


def binding_line(result: RunRecord) -> list[str]:
    if not {"threads", "cpus", "hostname"} <= result.ranks.keys():
        return []
    threads = sorted(set(map(int, result.ranks["threads"])))
    each = " a rank" if len(result.ranks["threads"]) > 1 else ""
    number = format_count(threads[0], "thread") if len(threads) == 1 else f"{threads[0]} to {threads[-1]} threads"
    hosts, cpus = (list(map(str, result.ranks[name])) for name in ("hostname", "cpus"))
    line = f"{number}{each}{describe_binding(hosts, cpus)}"
    return [" " * MARGIN + (line if len(line) <= WIDTH - MARGIN else line[: WIDTH - MARGIN - 2] + " …")]


def describe_binding(hosts: list[str], cpus: list[str]) -> str:
    """Return the CPUs of the ranks of each host: separate or, worse, shared; empty where a system did not tell."""
    if not all(cpus):
        return ""
    uses = Counter(zip(hosts, cpus, strict=True))
    (host, shared), ranks = uses.most_common(1)[0]
    where = "" if len(set(hosts)) == 1 else f" on {host.partition('.')[0]}"
    if ranks == 1 and len(cpus) > len(set(hosts)):
        return f"; bound to CPUs {' | '.join(cpus)}"
    if ranks == 1:
        return f"; may use CPUs {cpus[0]}"
    free = "not bound" if len(uses) == len(set(hosts)) else "bound, but not each to its own"
    return f"; {free}: {ranks} ranks share CPUs {shared}{where}"
