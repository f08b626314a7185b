"""The page docs/studies/outcomes.md: outcomes.toml has verdicts and counts, the benchmark files have the reasons."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent / "benchmarks"
CELLS = ("agree", "off", "open", "not available")
CLAIMS = ("hold", "tie", "fail", "not decided")
HEAD = ("", "seeds", "cells agree", "off", "open", "not available", "claims hold", "tie", "fail", "not decided")

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]


def lines(table: Table) -> list[str]:
    """The page; ``table`` writes one in Markdown."""
    told = tomllib.loads((HERE / "outcomes.toml").read_text("utf-8"))
    found = [told["introduction"].strip(), ""]
    found += [
        f"- **[{paper['title']}](#{anchor(paper['title'])})**: {paper['verdict'].strip()}"
        for folder, paper in told["paper"].items()
    ]
    found += ["", "## Counts", "", told["counting"].strip()]
    rows = [
        row(f"{paper['title']}, {name}", count)
        for paper in told["paper"].values()
        for name, count in paper["count"].items()
    ]
    found += table(HEAD, [*rows, total(told)])
    for folder, paper in told["paper"].items():
        found += ["", f"## {paper['title']}", "", f"![{paper['caption']}](pictures/{folder}.png)", ""]
        found += [paper["more"].strip(), *reasons(folder)]
    return found


def anchor(title: str) -> str:
    """The anchor of a heading."""
    return title.lower().replace(" ", "-")


def row(name: str, count: dict[str, Any]) -> list[str]:
    """A row of the table of counts."""
    return [name, str(count["seeds"]), *(str(count.get(kind, "")) for kind in (*CELLS, *CLAIMS))]


def total(told: dict[str, Any]) -> list[str]:
    """The sums of all rows."""
    counts = [count for paper in told["paper"].values() for count in paper["count"].values()]
    return ["all", "", *(str(sum(count.get(kind, 0) for count in counts)) for kind in (*CELLS, *CLAIMS))]


def reasons(folder: str) -> Iterator[str]:
    """What is off, open, a tie or fails in the benchmarks of a folder, and why: one line for each reason."""
    for file in sorted((BENCHMARKS / folder).glob("*.toml")):
        bench = tomllib.loads(file.read_text("utf-8"))
        found: dict[str, list[str]] = {}
        for what, why in [*cells(bench), *claims(bench)]:
            found.setdefault(" ".join(why.split()).rstrip("."), []).append(what)
        if found:
            name = bench["title"].partition(": ")[0]
            yield from ("", f"**[{name}](../../benchmarks/{folder}/{file.name})**", "")
            yield from (f"- {'; '.join(what)}: {literal(why)}." for why, what in found.items())


def cells(bench: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Block and rows of cells that are off or open, and why; rows of one reason stand together."""
    for block in bench["block"]:
        found: dict[tuple[str, str], list[str]] = {}
        for name, why in block.get("why", {}).items():
            for measure, reason in (why if isinstance(why, dict) else {"": why}).items():
                found.setdefault((measure, reason), []).append(name)
        for (measure, reason), names in found.items():
            yield f"{block['name']}, {', '.join(names)}{', ' * bool(measure)}{measure}", reason


def claims(bench: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Sentences that do not hold everywhere, and why."""
    for claim in bench.get("claim", []):
        if claim.get("why"):
            yield f"“{claim['text'].strip().rstrip('.')}”", claim["why"]


def literal(text: str) -> str:
    """Text in which Markdown finds no emphasis."""
    return text.replace("*", "\\*").replace("<", "\\<")
