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

**{all} comparisons with {programs} programs of other people; in {close} of them mpifed and the program are at most
1e-12 apart.** In {shipped} both are as they come: a method of mpifed by its name and settings, beside the program as it
is; in {stored} of these, mpifed gets the random numbers that the program drew, or its selections. In the other
{changed} something is changed, in mpifed by a class derived from the method or in the program, as the row says: these
stand in a second table.

To rebuild this page: `python -m tests.agreement`, in a clone, after `pip install -e ".[mpich,dev]"`. Trajectories of
{recorded} programs are files of `tests/agreement`, recorded once, in double precision, those of MATLAB programs under
Octave; {live} packages run beside mpifed, and where one is not installed the command says so and keeps its rows.

Both have the same data, start and random choices, and compared are the model and f after every round, or at the end
where a row says so: the largest difference of any coordinate over the largest coordinate. Where a program departs from
its paper, mpifed follows the paper; the reason below the table says what is otherwise, the row has that too and agrees,
and *otherwise* is how far the two are apart without it. The numbers are those of one machine, rounded up to one digit,
and on others the last bits differ: the test of this page allows for ten times as much.

{every}

Not covered: speed; the papers' own experiments, which the [outcomes](outcomes.md) are about; what these programs have
that mpifed has not; and whatever is not in the column *compared*.
"""
CHANGED = "Changed, in mpifed or in the program, as the row says:"
LIVE = ("scikit-learn", "scipy", "statsmodels", "lifelines", "torch")  # the rest is recorded
# Methods without a row, and why none can be.
NONE: dict[str, str] = {}
COLUMNS = ("method", "program", "commit", "compared", "x", "f", "otherwise", "reason")
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
    return math.nan if cell in ("–", "") else float(cell)


def write(measured: Mapping[str, Iterable[Row]]) -> None:
    """The page with these rows; other groups, and rows whose program is not here, keep what is on it."""
    before = read()
    sections = {}
    for group in groups():
        old = before.get(group, {})
        new = {name(row): row for row in measured[group]} if group in measured else old
        sections[group] = [old.get(key, row) if missing(row) else row for key, row in new.items()]
    text = [head([row for section in sections.values() for row in section])]
    text += [printed(group, section) for group, section in sections.items()]
    if NONE:
        text.append(
            "\n".join(["## Methods without a row\n", *(f"- `{method}`: {why}" for method, why in NONE.items()), ""])
        )
    PAGE.write_text("\n".join(text), "utf-8")


def head(rows: list[Row]) -> str:
    """What the page says of all rows."""
    programs = {row.program for row in rows}
    shipped = [row for row in rows if row.shipped]
    return HEAD.format(
        all=len(rows),
        programs=len(programs),
        close=sum(max(number(rounded(x)) for x in (row.x, row.f) if not math.isnan(x)) <= CLOSE for row in rows),
        shipped=len(shipped),
        stored=sum(bool(re.search("stored|replayed|same noise", row.compared)) for row in shipped),
        changed=len(rows) - len(shipped),
        recorded=len(programs - set(LIVE)),
        live=len(programs & set(LIVE)),
        every="Some methods have no row, and the end of this page says why." if NONE else "Every method has a row.",
    )


def printed(group: str, rows: list[Row]) -> str:
    """A section: tables of rows as shipped and of others, and the reasons that the last column names by number."""
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    lines = [f"## {group.replace('_', ' ').capitalize()}\n"]
    for shipped in (True, False):
        some = [line(row, reasons) for row in rows if row.shipped == shipped]
        title = [] if shipped else [f"{CHANGED}\n"]
        header = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        lines += [*title, *header, *some, ""] if some else []
    lines += [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines).rstrip() + "\n"


def line(row: Row, reasons: list[str]) -> str:
    """A line of a table."""
    link = f"[{row.program}](https://github.com/{row.program})" if REPOSITORY.fullmatch(row.program) else row.program
    numbers = (rounded(row.x), rounded(row.f), rounded(row.otherwise) if row.reason else "")
    why = str(reasons.index(row.reason) + 1) if row.reason else ""
    return f"| {' | '.join((row.method, link, row.commit, row.compared, *numbers, why))} |"


def read() -> dict[str, dict[tuple[str, str, str], Row]]:
    """The rows of the page by group and name, with the numbers that are printed."""
    found: dict[str, dict[tuple[str, str, str], Row]] = {}
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    for section in re.split(r"^## ", text.partition("## Methods without")[0], flags=re.M)[1:]:
        title, _, body = section.partition("\n")
        reasons = dict(re.findall(r"^(\d+)\. (.*)$", body, re.M))
        table = found[title.strip().lower().replace(" ", "_")] = {}
        for cells in re.findall(r"^\| (?!method \|)(.*) \|$", body, re.M):
            method, program, commit, compared, x, f, otherwise, why = cells.split(" | ")
            program = re.sub(r"\[(.*)\]\(.*\)", r"\1", program)
            reason, far = reasons.get(why.strip(), ""), number(otherwise.strip())
            row = Row(method, program, commit, compared, number(x), number(f), reason, otherwise=far)
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
    for what in ("x", "f", "otherwise"):
        difference, before = getattr(row, what), getattr(page, what)
        if math.isnan(difference) != math.isnan(before):
            found.append(f"{what} is {rounded(difference)}, on the page {rounded(before)}")
        if what != "otherwise" and difference > row.bound:
            found.append(f"{what} differs by {difference:.1e}, more than {row.bound:.0e}")
        if what != "otherwise" and difference > CLOSE and not row.reason:
            found.append(f"{what} differs by {difference:.1e}, and there is no reason")
        if max(difference, before) > CLOSE and not before / 20 <= difference <= 10 * before:
            found.append(f"{what} differs by {difference:.1e}, on the page {rounded(before)}")
    return found
