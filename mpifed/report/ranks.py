"""The ranks of a run in its summary: what each did, their threads and CPUs, and how much memory to ask for."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from mpifed.core.errors import counted
from mpifed.core.typing import Array
from mpifed.report.layout import MARGIN, WIDTH, decimals
from mpifed.results.columns import RANKS
from mpifed.results.result import Result

TOLD = ("hostname", "threads", "cpus", "blas", "block_bytes", "block_bytes_reason")  # columns that are told in words
RARE = ("shared_bytes", "max_device_bytes")  # that are listed where one of them is above 0
SPARE = 1.25  # what a rank asks for : the measured peak
MIB = 1 << 20  # SLURM's M


def ranks(result: Result, listed: int) -> list[str]:
    """The last part of the summary, whose table takes the whole width below its name."""
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
        if name in result.ranks and name not in TOLD and (name not in RARE or np.any(result.ranks[name])):
            values = result.ranks[name] / (1e6 if meaning.unit == "byte" else 1)
            table.append([meaning.symbol or name, *decimals(values if few else np.quantile(values, (0, 0.5, 1)))])
    widths = [max(map(len, column)) for column in table]
    apart = 2 if sum(widths) + 2 * len(widths) - 2 <= WIDTH else 1
    widths[1] = max(4, min(widths[1], WIDTH - sum(widths) + widths[1] - apart * (len(widths) - 1)))
    table[1] = [host[: widths[1]].ljust(widths[1]) for host in table[1]]
    lines = [(" " * apart).join(map(str.rjust, row, widths)) for row in zip(*table, strict=True)]
    threads = max(1, int(np.min(result.ranks.get("threads", np.ones(1)))))
    asked = option(peaks(result.ranks), threads) if size > 1 else ""
    head = "seconds; MPI calls; MB sent, received and peak memory" + (f"; ask for {asked}" if asked else "")
    return ["ranks".ljust(MARGIN) + head, *binding(result), *lines]


def per_cpu(peaks: Array, threads: int = 1) -> int:
    """MiB to ask for, for each CPU of ranks of so many threads, from the peaks in bytes of an earlier run's ranks.

    A quarter more than the largest peak, rounded up to two digits: SLURM limits a node, not a rank.
    """
    # Two digits, so that runs of about the same size ask for the same, which batch systems queue together.
    need = SPARE * float(np.max(peaks, initial=0.0)) / MIB / threads
    digit = 10 ** max(0, math.floor(math.log10(max(need, 1.0))) - 1)
    return max(1, math.ceil(need / digit)) * digit


def peaks(ranks: Mapping[str, Array]) -> Array:
    """The peak of each rank in bytes, from the columns of /ranks; what ranks of a machine share is divided by them."""
    found = np.asarray(ranks.get("max_rss_bytes", np.zeros(0)), float)
    if not {"shared_bytes", "hostname"} <= ranks.keys():
        return found
    _, machine, count = np.unique(ranks["hostname"], return_inverse=True, return_counts=True)
    shared = np.minimum(ranks["shared_bytes"], found)  # not all of it need have been used
    return found - shared + shared / count[machine]


def option(peaks: Array, threads: int = 1) -> str:
    """The option of sbatch for ranks with a CPU for each thread; empty where no peak was measured."""
    return f"--mem-per-cpu={per_cpu(peaks, threads)}M" if np.any(peaks > 0) else ""


def binding(result: Result) -> list[str]:
    if not {"threads", "cpus", "hostname"} <= result.ranks.keys():
        return []
    threads = sorted(set(map(int, result.ranks["threads"])))
    each = " a rank" if len(result.ranks["threads"]) > 1 else ""
    number = counted(threads[0], "thread") if len(threads) == 1 else f"{threads[0]} to {threads[-1]} threads"
    line = f"{number}{each}{bound(list(map(str, result.ranks['hostname'])), list(map(str, result.ranks['cpus'])))}"
    return [" " * MARGIN + (line if len(line) <= WIDTH - MARGIN else line[: WIDTH - MARGIN - 2] + " …")]


def bound(hosts: list[str], cpus: list[str]) -> str:
    """Which CPUs the ranks of each host may use: their own or, worse, the same; empty where no system told them."""
    if not all(cpus):
        return ""
    places = Counter(zip(hosts, cpus, strict=True))
    (host, most), ranks = places.most_common(1)[0]
    where = "" if len(set(hosts)) == 1 else f" on {host.partition('.')[0]}"
    if ranks == 1 and len(cpus) > len(set(hosts)):
        return f"; bound to CPUs {' | '.join(cpus)}"
    if ranks == 1:
        return f"; may use CPUs {cpus[0]}"
    free = "not bound" if len(places) == len(set(hosts)) else "bound, but not each to its own"
    return f"; {free}: {ranks} ranks share CPUs {most}{where}"
