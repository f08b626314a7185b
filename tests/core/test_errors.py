"""Messages of errors: one line, without control characters, with the most similar name."""

import errno
import os

import pytest

from mpifed.core.errors import LONGEST, UserError, failure, printable, reason, sentence, unknown


@pytest.mark.parametrize(
    ("name", "known", "path", "message"),
    [
        ("fedadm", ["fedavg", "fedadmm"], "", "unknown algorithm 'fedadm'; did you mean 'fedadmm'?"),
        ("xyz", ["fedavg", "fedadmm"], "", "unknown algorithm 'xyz'; the choices are fedavg, fedadmm"),
        ("k1", [], "algorithm", "unknown algorithm 'algorithm.k1'; there are none here"),
    ],
)
def test_an_unknown_name_is_answered_with_what_there_is(name, known, path, message):
    with pytest.raises(UserError) as caught:
        unknown("algorithm", name, known, path)
    assert str(caught.value) == message


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
