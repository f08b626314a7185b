"""Output whose encoding lacks the marks of mathematics has ASCII in their place, and nothing raises."""

import io
import os
import sys
import unicodedata
from pathlib import Path

import pytest

import mpifed
from mpifed import __main__ as output
from tests.helpers.commands import execute

PACKAGE = Path(mpifed.__file__).parent


def written(text, encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=output.ERRORS)
    stream.write(text)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "wanted"),
    [
        ("‖∇f‖² 1.5 → 2e−3", "ascii", "||grad f||^2 1.5 -> 2e-3"),
        ("‖∇f‖² 1.5 → 2e−3", "latin-1", "||grad f||² 1.5 -> 2e-3"),
        ("10⁻¹², x₁₀, (λ/2)‖x̄ − ŵ‖", "ascii", "10^-12, x_10, (lambda/2)||x - w||"),
        ("γ ≤ Γ, ½", "ascii", "gamma <= Gamma, 1/2"),
        ("Zoë, 東", "ascii", "Zoe, \\u6771"),
    ],
)
def test_what_is_written(text, encoding, wanted):
    assert written(text, encoding) == wanted


def test_every_mark_of_the_package_has_some_ascii():
    found = {c for path in PACKAGE.rglob("*.py") for c in path.read_text("utf-8") if not c.isascii()}
    assert len(found) > 50
    for c in found:
        text = written(c, "ascii")
        assert text.isascii()
        assert "\\" not in text, c
        assert text or unicodedata.combining(c), c


@pytest.mark.parametrize("variables", [{"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_run_under_a_locale_without_utf_8_ends_with_its_summary(variables, tmp_path):
    words = ["run", "data.clients=4", "data.features=3", "rounds=2", "kernels=numpy", "-o", tmp_path / "out.h5"]
    binary = {name: value for name, value in os.environ.items() if name != "LANG"} | {"LC_ALL": "C"}
    done = execute([sys.executable, "-m", "mpifed", *words], **binary | variables)
    assert (done.code, done.err) == (0, "")
    assert "||grad f||" in done.out
    assert done.out.endswith("written to {}\n".format(tmp_path / "out.h5"))
