"""Every row of the page of agreement is measured anew, and the page has these rows and no others."""

import re

import pytest

from mpifed.core.methods import METHODS
from tests.agreement import page
from tests.agreement.row import CLOSE, Row, apart


@pytest.mark.slow
@pytest.mark.parametrize("group", page.groups())
def test_the_page_has_the_rows_of_a_group(group, tmp_path):
    rows = page.rows_of(group, tmp_path)
    printed = page.read().get(group, {})
    assert rows
    assert len({page.name(row) for row in rows}) == len(rows)
    assert {page.name(row) for row in rows} == printed.keys(), "run python -m tests.agreement"
    wrong = {page.name(row): page.faults(row, printed[page.name(row)]) for row in rows}
    assert not {key: found for key, found in wrong.items() if found}


def test_the_page_has_a_section_for_each_group_and_no_row_twice():
    sections = page.read()
    rows = [row for section in sections.values() for row in section.values()]
    assert list(sections) == page.groups()
    assert len({page.name(row) for row in rows}) == len(rows)
    assert not [page.name(row) for row in rows if not row.reason and (row.x > CLOSE or row.f > CLOSE)]


def test_every_method_has_a_row_or_the_page_says_why_none_can():
    rows = [row for section in page.read().values() for row in section.values()]
    compared = {re.split("[ ,]", row.method)[0] for row in rows}
    assert METHODS.keys() - compared == page.NONE.keys()
    assert all(f"- `{method}`: {why}" in page.PAGE.read_text("utf-8") for method, why in page.NONE.items())


@pytest.mark.parametrize(
    ("x", "reason", "fault"),
    [
        (2e-3, "", "there is no reason"),
        (2e-3, "another start", "the page has another reason"),
        (2e-3, "a start of its own", None),
        (1e-4, "a start of its own", "on the page 3e-3"),
        (2e-1, "a start of its own", "more than 1e-01"),
    ],
)
def test_a_row_that_the_page_does_not_explain_is_a_fault(x, reason, fault):
    printed = Row("gd", "a/b", "1234abcd", "8 rounds", 3e-3, 0.0, "a start of its own")
    found = page.faults(printed._replace(x=x, reason=reason, bound=0.1), printed)
    assert any(fault in one for one in found) if fault else not found


@pytest.mark.parametrize(("measured", "text"), [(0.0, "0"), (1.2e-16, "2e-16"), (9.2e-4, "1e-3"), (3e-2, "3e-2")])
def test_differences_are_rounded_up_to_one_digit(measured, text):
    assert page.rounded(measured) == text
    assert page.number(text) >= measured * (1 - 1e-8)


def test_a_run_that_ends_in_nan_is_not_taken_for_a_program_that_is_not_there():
    with pytest.raises(AssertionError, match="not finite"):
        apart([1.0, float("nan")], [1.0, 2.0])
