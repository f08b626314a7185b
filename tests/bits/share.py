"""The studies of numpy that the default tests compare with the record: every method, every feature, and some more."""

from collections import Counter
from zlib import crc32

from tests.bits.pinned import kernels
from tests.bits.record import changed, each, read, row, wrong

COUNT = 200  # less than a minute of the processor


def chosen() -> list[str]:
    """Their names: what brings a method or a feature alone, then by turns a study of each feature, in random order."""
    recorded = read()[1]
    able = [name for name in recorded if kernels(name) == "numpy" and "refused" not in recorded[name]]
    able.sort(key=lambda name: crc32(name.encode()))
    seen: Counter[str] = Counter()
    turns = []
    for name in able:
        method, _, feature = name.split("/")
        new = not (seen[method] and (seen[feature] or "+" in feature))
        turns.append((not new, seen[feature], name))
        seen.update({method, feature})
    return [name for *_, name in sorted(turns)[:COUNT]]


def differing(names: list[str]) -> list[str]:
    """How studies, run in one process, differ from what is recorded of them."""
    one = each(names, 1)
    rows = {name: row(name, one, {}) for name in names}
    return [*wrong(one, {}), *changed(rows, read()[1], whole=False)]
