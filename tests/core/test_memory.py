"""Arrays are checked before they are allocated."""

import pytest

from mpifed.core import memory
from mpifed.core.errors import UserError


def test_what_does_not_fit_into_memory_or_declares_more_than_its_file_can_hold_is_refused(monkeypatch):
    assert 0 < memory.free() < 2**60
    monkeypatch.setattr(memory, "free", lambda: 10**9)
    memory.check_memory(10**9, "X")
    with pytest.raises(UserError, match=r"^X would take 2,000 MB of memory, but only 1,000 MB are free$"):
        memory.check_memory(2 * 10**9, "X")
    memory.check_declared(memory.MOST_PACKED * 10**6, 10**6, "X")
    with pytest.raises(UserError, match=r"^X declares 1,100,000,001 bytes, but its 1,000,000 bytes"):
        memory.check_declared(memory.MOST_PACKED * 10**6 + 1, 10**6, "X")
    memory.check_declared(memory.SMALL, 0, "X")  # too small to matter
    assert (memory.size_of((2**40, 2**40), 8), memory.size_of((), 8)) == (2**83, 8)
