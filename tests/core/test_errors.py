"""Messages of errors: one line, without control characters, with the most similar name."""

import errno
import os

from mpifed.core.errors import LONGEST, UserError, failure, printable, reason, sentence


def test_a_sentence_is_one_line_of_bounded_length():
    assert sentence("one\ntwo\x1b[2J") == "one\\ntwo\\x1b[2J"
    assert sentence("a" * 10 * LONGEST + "b" * 10 * LONGEST) == "a" * (LONGEST // 2) + " … " + "b" * (LONGEST // 2)
    assert printable("ü\t\n", keep="\n") == "ü\\t\n"


def test_the_reason_of_an_error_of_the_system_is_that_of_the_system_and_a_failure_says_where_it_happened():
    assert reason(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "x.h5")) == "no such file or directory"
    assert reason(ValueError("Bad Value")) == "bad value"
    assert failure(2, UserError("k0 = 0 is wrong")) == "k0 = 0 is wrong"
    try:
        _ = 1 // 0
    except ZeroDivisionError as error:
        text = failure(2, error)
    assert text.startswith("rank 2 on ")
    assert "failed: ZeroDivisionError: " in text.splitlines()[0]
    assert "test_errors.py" in text
