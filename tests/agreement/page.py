"""docs/studies/agreement.md: what it says, and a section of rows for each file of this folder that has any."""

import importlib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.agreement.row import CLOSE, Row
from tests.helpers.commands import ROOT

PAGE = ROOT / "docs" / "studies" / "agreement.md"
HEAD = """# Agreement

<!-- Written by `python -m tests.agreement`: change tests/agreement, not this page. -->

mpifed beside other people's programs. Both have the same data, start and random choices, and compared are the model and
f after every round, or at the end where a row says so: the largest difference of any coordinate over the largest
coordinate. Where a program departs from its paper, mpifed follows the paper; why and by how much stands
below the table.

Not covered: speed; the papers' own experiments, which the [outcomes](outcomes.md) are about; methods without a public
program, and what these programs have that mpifed has not; FedDCD.jl and u-FedNL, which were not run; and whatever is
not in the column *compared*.
Trajectories of repositories were recorded once, in double precision, those of MATLAB programs under Octave, and so was
what Flower, pfl-research and Opacus compute; other packages run beside mpifed. The numbers are those of one machine,
rounded up to one digit, and on others the last bits differ: the test of this page allows for ten times as much.
"""
COLUMNS = ("method", "program", "commit", "compared", "x", "f", "reason")
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def groups() -> list[str]:
    """The files of this folder that have rows."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem for file in files if re.search(r"^def rows\(", file.read_text("utf-8"), re.M)]


def rows_of(group: str, scratch: Path) -> list[Row]:
    """The rows of a file, compared here and now."""
    return list(importlib.import_module(f"tests.agreement.{group}").rows(scratch))


def name(row: Row) -> tuple[str, str, str]:
    """What no two rows share."""
    return row.method, row.program, row.compared


def missing(row: Row) -> bool:
    """Is there nothing to measure it with here?"""
    return math.isnan(row.x) and math.isnan(row.f)


def rounded(difference: float) -> str:
    """Up to one digit, so that what is printed bounds what was measured."""
    if math.isnan(difference):
        return "–"
    if difference == 0:
        return "0"
    power = math.floor(math.log10(difference))
    digit = math.ceil(difference / 10.0**power * (1 - 1e-9))
    return f"1e{power + 1}" if digit == 10 else f"{digit}e{power}"


def number(cell: str) -> float:
    """What ``rounded`` printed."""
    return math.nan if cell == "–" else float(cell)


def write(measured: Mapping[str, Iterable[Row]]) -> None:
    """The page with these rows; other groups, and rows whose program is not here, keep what is on it."""
    before = read()
    sections = {}
    for group in groups():
        old = before.get(group, {})
        new = {name(row): row for row in measured[group]} if group in measured else old
        sections[group] = [old.get(key, row) if missing(row) else row for key, row in new.items()]
    PAGE.write_text("\n".join([HEAD, *(printed(group, section) for group, section in sections.items())]), "utf-8")


def printed(group: str, rows: list[Row]) -> str:
    """A section: the table, and the reasons that its last column names by number."""
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    lines = [f"## {group.replace('_', ' ').capitalize()}\n", f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        link = (
            f"[{row.program}](https://github.com/{row.program})" if REPOSITORY.fullmatch(row.program) else row.program
        )
        why = str(reasons.index(row.reason) + 1) if row.reason else ""
        cells = (row.method, link, row.commit, row.compared, rounded(row.x), rounded(row.f), why)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
    return "\n".join(lines).rstrip() + "\n"


def read() -> dict[str, dict[tuple[str, str, str], Row]]:
    """The rows of the page by group and name, with the numbers that are printed."""
    found: dict[str, dict[tuple[str, str, str], Row]] = {}
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = section.partition("\n")
        reasons = dict(re.findall(r"^(\d+)\. (.*)$", body, re.M))
        table = found[title.strip().lower().replace(" ", "_")] = {}
        for line in re.findall(r"^\| (.*) \|$", body, re.M)[1:]:
            method, program, commit, compared, x, f, why = line.split(" | ")
            program = re.sub(r"\[(.*)\]\(.*\)", r"\1", program)
            row = Row(method, program, commit, compared, number(x), number(f), reasons.get(why.strip(), ""))
            assert name(row) not in table, f"{name(row)} is there twice"
            table[name(row)] = row
    return found


def faults(row: Row, page: Row | None) -> list[str]:
    """What is wrong with a row that was measured here, beside what the page prints of it."""
    if page is None:
        return ["it is not on the page"]
    found = ["the page has another reason"] if row.reason != page.reason else []
    if missing(row):
        return found
    if REPOSITORY.fullmatch(row.program) and row.commit != page.commit:
        found.append(f"commit {row.commit}, on the page {page.commit}")
    for what, difference, before in (("x", row.x, page.x), ("f", row.f, page.f)):
        if math.isnan(difference) != math.isnan(before):
            found.append(f"{what} is {rounded(difference)}, on the page {rounded(before)}")
        if difference > row.bound:
            found.append(f"{what} differs by {difference:.1e}, more than {row.bound:.0e}")
        if difference > CLOSE and not row.reason:
            found.append(f"{what} differs by {difference:.1e}, and there is no reason")
        if max(difference, before) > CLOSE and not before / 20 <= difference <= 10 * before:
            found.append(f"{what} differs by {difference:.1e}, on the page {rounded(before)}")
    return found
