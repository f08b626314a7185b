"""docs/studies/outcomes.md and rows.md: verdicts counted from committed rows, reasons of the benchmark files, and
what of the papers was not attempted, of coverage.toml."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # python docs/build.py does not look for benchmarks in the folder above

from benchmarks import bench, outcome, tally  # noqa: E402
from benchmarks.outcome import PRINTED, PROGRAMS, THEORY, Outcome  # noqa: E402
from benchmarks.verdict import TIME  # noqa: E402

BENCHMARKS = HERE.parent / "benchmarks"
HEADS = {
    PRINTED: "Cells that the papers print",
    PROGRAMS: "Cells of other programs and of authors' traces",
    THEORY: "Rates from theory",
}
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]


def lines(table: Table) -> list[str]:
    """The page of outcomes; ``table`` writes one in Markdown."""
    told = tomllib.loads((HERE / "outcomes.toml").read_text("utf-8"))
    found = [told["introduction"].strip(), ""]
    for folder, paper in told["paper"].items():
        own = [one for name, one in counted().items() if name.split("/")[0] == folder]
        found.append(f"- **[{paper['title']}](#{anchor(paper['title'])})**: {paper['verdict'].strip()} {summary(own)}")
    found += ["", "## Counts", "", told["counting"].strip()]
    found += [*absent(), *counts(table)]
    for folder, paper in told["paper"].items():
        found += ["", f"## {paper['title']}", "", f"![{paper['caption']}](pictures/{folder}.png)", ""]
        found += [paper["more"].strip(), *uncovered(table, folder), *reasons(folder)]
    return found


def anchor(title: str) -> str:
    """The anchor of a heading."""
    return title.lower().replace(" ", "-")


@cache
def counted() -> dict[str, Outcome]:
    """The outcomes of all benchmarks by their committed rows."""
    return {name: outcome.committed(name) for name in bench.names()}


def summary(found: Sequence[Outcome]) -> str:
    """For example "Counted: printed by the papers: 19 cells agree, 13 off; claims: 40 hold"."""
    parts = []
    for source in HEADS:
        kinds = Counter(kind for one in found if one.rows.runs for where, kind in one.kinds() if where == source)
        text = ", ".join(f"{kinds[kind]} {word}" for kind, word in tally.CELLS.items() if kinds[kind])
        parts += [f"{source}: {text}"] * bool(text)
    claims = Counter(finding.kind for one in found if one.rows.runs for finding in one.findings)
    text = ", ".join(f"{claims[kind]} {word}" for kind, word in tally.CLAIMS.items() if claims[kind])
    parts += [f"claims: {text.replace('claims hold', 'hold')}"] * bool(text)
    return f"Counted: {'; '.join(parts)}." if parts else "No rows at this version: nothing is counted."


def absent() -> Iterator[str]:
    """Which benchmarks of the tables below have no rows, and what they would have counted."""
    found = []
    for name, one in counted().items():
        numbers = {"cell": sum(kind != TIME for _, kind in one.kinds()), "claim": len(one.findings)}
        what = [f"{number} {word}{'s' * (number > 1)}" for word, number in numbers.items() if number]
        if what and not one.rows.runs:
            found.append(f"{link(name)} ({', '.join(what)})")
    if found:
        yield from ("", f"No rows at this version, and so not counted: {'; '.join(found)}.")


def counts(table: Table) -> Iterator[str]:
    """The tables of counts: cells by whose numbers they are compared with, claims of papers and sentences of theory."""
    run = {name: one for name, one in counted().items() if one.rows.runs}
    for source, head in HEADS.items():
        own = {name: Counter(kind for where, kind in one.kinds() if where == source) for name, one in run.items()}
        yield from sums(table, head, own, tally.CELLS)
        if seconds := sum(kinds[TIME] for kinds in own.values()):
            yield from ("", f"{seconds} more cells are seconds of different machines and not judged.")
    found = {name: Counter(finding.kind for finding in one.findings) for name, one in run.items()}
    for head, theory in (("Claims of the papers", False), ("Sentences about all methods, most of them theory", True)):
        own = {name: kinds for name, kinds in found.items() if name.startswith("beyond/") == theory}
        yield from sums(table, head, own, tally.CLAIMS)


def sums(table: Table, head: str, found: Mapping[str, Counter[str]], words: Mapping[str, str]) -> Iterator[str]:
    """A table with a line for each benchmark with its seeds, and their sums; nothing where all are 0."""
    kinds = [kind for kind in words if any(own[kind] for own in found.values())]
    rows = [
        [link(name), tally.repetitions(counted()[name]), *(str(own[kind] or "") for kind in kinds)]
        for name, own in found.items()
        if any(own[kind] for kind in kinds)
    ]
    total = [str(sum(own[kind] for own in found.values())) for kind in kinds]
    if rows:
        yield from ("", f"### {head}")
        yield from table(["", "seeds", *(words[kind] for kind in kinds)], [*rows, ["all", "", *total]])


def link(name: str) -> str:
    return f"[{name}](../../benchmarks/{name}.toml)"


def coverage() -> dict[str, dict[str, dict[str, Any]]]:
    """Folder of a paper -> table, figure or theorem -> what is about it (``by``), and what is not (``lacks``)."""
    return tomllib.loads((HERE / "coverage.toml").read_text("utf-8"))


def uncovered(table: Table, folder: str) -> Iterator[str]:
    """What of a paper was not attempted, and why."""
    if own := coverage().get(folder):
        rows = [
            [part, ", ".join(by(folder, name) for name in one.get("by", [])) or "nothing", one["lacks"]]
            for part, one in own.items()
            if "lacks" in one
        ]
        whole = [part for part, one in own.items() if "lacks" not in one]
        yield from ("", f"Not attempted of its tables, figures and theorems; attempted as a whole: {', '.join(whole)}.")
        yield from table(["", "run", "not attempted, and why"], [[*row[:2], literal(row[2])] for row in rows])


def by(folder: str, name: str) -> str:
    """A link to a benchmark of the paper's folder, or to a file."""
    path = name if "/" in name else f"benchmarks/{folder}/{name}.toml"
    return f"[{Path(path).stem}](../../{path})"


def origins(table: Table) -> list[str]:
    """The page of rows: what stands behind the numbers of each study."""
    told = tomllib.loads((HERE / "outcomes.toml").read_text("utf-8"))["rows"]
    rows = []
    for page, one in told["page"].items():
        names = [name for key in one.get("of", []) for name in counted() if key in (name, name.split("/")[0])]
        rows.append([f"[{page}]({page}.md)", standing(names) or one["rows"], f"`{command(names, one)}`"])
    found = [told["introduction"].strip(), *table(["page", "rows", "command"], rows), "", "## Files", ""]
    kept = [
        [link(name), f"{len(one.rows.runs)}", origin.mpifed, f"`{origin.commit[:8]}`", origin.machine, origin.days]
        for name, one in counted().items()
        if one.rows.runs and (origin := one.rows.origin)
    ]
    return [*found, told["files"].strip(), *table(["", "runs", "mpifed", "commit", "machine", "days"], kept)]


def command(names: Sequence[str], one: Mapping[str, Any]) -> str:
    """The command that prints or writes the numbers of a page."""
    return one.get("command") or f"python -m benchmarks tables {' '.join(one['of'])}"


def standing(names: Sequence[str]) -> str:
    """Which of the benchmarks behind a page have rows; "" for a page without benchmarks."""
    with_rows = [name for name in names if counted()[name].rows.runs]
    if len(with_rows) == len(names):
        return "of all its benchmarks" if names else ""
    without = ", ".join(name.rsplit("/")[-1] for name in names if name not in with_rows)
    return f"none yet of {without}"


def reasons(folder: str) -> Iterator[str]:
    """What is off, open, a tie or fails in the benchmarks of a folder, and why: one line for each reason."""
    for file in sorted((BENCHMARKS / folder).glob("*.toml")):
        one = tomllib.loads(file.read_text("utf-8"))
        found: dict[str, list[str]] = {}
        for what, why in [*cells(one), *claims(one)]:
            found.setdefault(" ".join(why.split()).rstrip("."), []).append(what)
        if found:
            name = one["title"].partition(": ")[0]
            yield from ("", f"**[{name}](../../benchmarks/{folder}/{file.name})**", "")
            yield from (f"- {'; '.join(what)}: {literal(why)}." for why, what in found.items())


def cells(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Block and rows of cells that are off, open or in sample, and why; rows of one reason stand together."""
    for block, (key, kind) in product(one["block"], {"why": "", "fitted": "in sample: "}.items()):
        found: dict[tuple[str, str], list[str]] = {}
        for name, why in block.get(key, {}).items():
            for measure, reason in (why if isinstance(why, dict) else {"": why}).items():
                found.setdefault((measure, reason), []).append(name)
        for (measure, reason), names in found.items():
            yield f"{block['name']}, {', '.join(names)}{', ' * bool(measure)}{measure}", f"{kind}{reason}"


def claims(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Sentences that do not hold everywhere, and why."""
    for claim in one.get("claim", []):
        if claim.get("why"):
            yield f"“{claim['text'].strip().rstrip('.')}”", claim["why"]


def literal(text: str) -> str:
    """Text in which Markdown finds no emphasis."""
    return text.replace("*", "\\*").replace("<", "\\<")
