"""What became of each claim, as a sentence with its numbers that can be read alone."""

import math
from collections.abc import Sequence

from benchmarks import expressions
from benchmarks.claims import Case, Finding
from benchmarks.differences import FAILS, HOLDS, TIE, UNDECIDED
from benchmarks.outcome import Outcome
from benchmarks.parts import ON_OTHER_DATA, Claim
from benchmarks.verdict import OTHER
from mpifed.report.names import setting_title

PARTLY = "partly"
MARKS = {HOLDS: "✓", TIE: "≈", FAILS: "✗", PARTLY: "~", OTHER: ON_OTHER_DATA, UNDECIDED: "?"}
SHOWN = 3  # most cases whose numbers are written out, of those that agree and of those that do not


def said(found: Outcome) -> list[str]:
    """A sentence for each claim of a benchmark."""
    columns = found.bench.columns
    return [sentence(finding, setting_title(columns.short) if columns else "") for finding in found.findings]


def sentence(finding: Finding, along: str) -> str:
    """For example: ✗ “A is fast”, page 1, does not hold in either case, tested as CR of A < B: Example 1 (A 12, …"""
    claim = finding.claim
    begin = ", ".join(
        filter(None, (f"{MARKS[mark(finding)]} “{claim.text.rstrip('.')}”", claim.where, outcome(finding)))
    )
    why = (
        f" Why: {claim.why.rstrip('.')}."
        if claim.why and len(finding.agreeing) < finding.cases + len(finding.open)
        else ""
    )
    if not finding.cases:
        return f"{begin}.{why}"
    lists = [listed(finding.agreeing)] * bool(finding.agreeing)
    lists += [f"but not {listed(finding.against)}" if lists else listed(finding.against)] * bool(finding.against)
    lists += [f"tied: {listed(finding.ties)}" if lists else listed(finding.ties)] * bool(finding.ties)
    return f"{begin}, tested as {test(claim, along)}: {'; '.join(lists)}.{why}"


def outcome(finding: Finding) -> str:
    """Whether a claim holds: holds in 3 of 4 cases, 1 not decided."""
    if not finding.cases:
        return f"is not decided: {', '.join(dict.fromkeys(finding.open))}" if finding.open else "is not available"
    ties = len(finding.ties)
    left = f", {len(finding.open)} not decided" if finding.open else ""
    tied = f", {ties} tie{'s' * (ties > 1)}" if ties and ties < finding.cases else ""
    every = {1: "the only case", 2: "both cases"}.get(finding.cases, f"all {finding.cases} cases")
    if not finding.against and not ties:
        return f"holds in {every}{left}"
    if ties == finding.cases:
        return f"is a tie in {every}{left}"
    if not finding.agreeing and ties:
        return f"fails in {len(finding.against)} of {finding.cases} cases{tied}{left}"
    if not finding.agreeing:
        cases = {1: "the only case", 2: "either case"}.get(finding.cases, f"any of {finding.cases} cases")
        return f"does not hold in {cases}{left}"
    return f"holds in {len(finding.agreeing)} of {finding.cases} cases{tied}{left}"


def mark(finding: Finding) -> str:
    """The kind of a finding; PARTLY where some cases hold and others do not."""
    return PARTLY if finding.kind == FAILS and finding.agreeing else finding.kind


def test(claim: Claim, along: str) -> str:
    """What a claim asks of the means."""
    measure = expressions.title(claim.measure)
    if claim.order:
        return f"{measure} of {' < '.join(claim.order)}"
    if claim.equal:
        return f"equal {measure} up to {100 * claim.within:g} %"
    if claim.below:
        return f"{measure} of at most {claim.bound:g}"
    if claim.flat:
        return f"{measure} the same up to {100 * claim.within:g} % with {along}"
    return f"{measure} {'falling' if claim.falls else 'rising'} with {along}"


def listed(cases: Sequence[Case]) -> str:
    """The first cases with their numbers."""
    shown = [described(case) for case in cases[:SHOWN]]
    more = len(cases) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def described(case: Case) -> str:
    """A case with its numbers: Example V.1, k0 = 5 (FedGiA 3, FedAvg 112)."""
    numbers = ", ".join(f"{name}{':' * (' = ' in name)} {number(mean)}".strip() for name, mean in case.means.items())
    return f"{case.name} ({numbers})" if case.name else f"({numbers})"


def number(mean: float) -> str:
    """A mean; never where a run did not meet the condition."""
    return "never" if math.isinf(mean) else f"{mean:.4g}"


def literal(text: str) -> str:
    """Text in which Markdown finds nothing to interpret."""
    return "".join(f"\\{sign}" if sign in "\\*`<[" else sign for sign in text)
