"""The command line, ``python -m mpifed``, and its output, where neither a full disk nor a poor encoding ends a run.

Marks of mathematics that the encoding lacks are written in ASCII: ||grad f||^2 for ‖∇f‖².
"""

import codecs
import io
import os
import sys
import unicodedata
from typing import Any

from mpifed.cli.arguments import starts_runs
from mpifed.core import processor, signals
from mpifed.mpi.launcher import read_launcher

ERRORS = "mpifed.ascii"  # name of the handler
MARKS = {
    **{"‖": "||", "∇": "grad ", "√": "sqrt", "∂": "d", "∞": "inf", "µ": "u", "ϱ": "rho", "½": "1/2", "¼": "1/4"},
    **{"−": "-", "·": "*", "×": "x", "±": "+-", "≤": "<=", "≥": ">=", "⪰": ">=", "≠": "!=", "≈": "~", "∝": "~"},
    **{"∈": " in ", "←": "<-", "→": "->", "⟨": "<", "⟩": ">", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")"},
    **{"…": "...", "–": "-", "—": "-", "′": "'", "▕": "|", "▏": "|", "Ł": "L", "ł": "l"},
    **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True)),
}
GREEK = "GREEK SMALL LETTER ", "GREEK CAPITAL LETTER "


class Output(io.TextIOWrapper):
    """A text stream that drops text it cannot write, on a full disk for example; ``write_error`` is the first error.

    Raises BrokenPipeError if nobody reads any more.
    """

    write_error: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self.discard(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self.discard(error)

    def discard(self, error: OSError) -> None:
        """Send all further text to the null device; raise a BrokenPipeError again."""
        # else Python would try to write the waiting text again when it ends
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        if type(error) is BrokenPipeError:
            raise error
        self.write_error = self.write_error or error


def install_streams() -> Any:
    """Replace standard output and error by such streams; return standard output, None if it is closed."""
    sys.stdout = out = wrap_stream(sys.stdout)
    sys.stderr = wrap_stream(sys.stderr)
    return out


def wrap_stream(stream: Any) -> Any:
    """Return an Output in place of ``stream``, which it detaches; None if ``stream`` is closed."""
    if stream is None:
        return None
    form = {name: getattr(stream, name) for name in ("encoding", "line_buffering", "write_through")}
    return Output(stream.detach(), errors=ERRORS, **form)


def replace_missing(error: Any) -> tuple[str, int]:
    """Handle an encoding error: return the ASCII for the characters that the encoding lacks, and where to continue."""
    text = error.object[error.start : error.end]
    before = [script_sign(c) for c in error.object[max(error.start - 1, 0) : error.start]]
    parts = []
    for c in text:
        sign = script_sign(c)
        # one sign for all digits of an exponent: 10^-12
        parts.append(to_ascii(c) if [sign] == before else sign + to_ascii(c))
        before = [sign]
    return "".join(parts), error.end


def script_sign(c: str) -> str:
    """Return ^ for a superscript, _ for a subscript, and "" for other characters."""
    tag = unicodedata.decomposition(c).partition(" ")[0]
    return {"<super>": "^", "<sub>": "_"}.get(tag, "")


def to_ascii(c: str) -> str:
    """Write a character in ASCII: a mark, the name of a Greek letter, a letter without its accent, or its escape."""
    if c in MARKS:
        return MARKS[c]
    name = unicodedata.name(c, "")
    for front, form in zip(GREEK, (str.lower, str.capitalize), strict=True):
        if name.startswith(front):
            return form(name.removeprefix(front).partition(" ")[0]).replace("amda", "ambda")
    parts = unicodedata.normalize("NFKD", c)
    plain = "".join(MARKS.get(part, part) for part in parts).encode("ascii", "ignore").decode()
    return plain or ("" if unicodedata.combining(c) else c.encode("ascii", "backslashreplace").decode())


codecs.register_error(ERRORS, replace_missing)


def entry() -> int:
    """Run the command line with one BLAS thread a rank, set before numpy loads its BLAS."""
    processor.limit_blas_threads()
    out = install_streams()
    # ranks listen only once MPI has started: before, a signal has to end a wait for a rank that never comes
    ranks = read_launcher()[0] is not None
    if starts_runs(sys.argv[1:]) and not ranks:
        signals.listen_for_signals()
    from mpifed.cli.main import main
    from mpifed.core.errors import reason

    code = main(connected=signals.listen_for_signals if ranks else None)
    if out is not None:
        out.flush()
        if out.write_error is not None:
            sys.stderr.write(f"mpifed: what this command prints cannot be written: {reason(out.write_error)}\n")
            code = code or 1
    if "mpifed.mpi.communicator" in sys.modules:
        sys.modules["mpifed.mpi.communicator"].leave(code)
    return code


if __name__ == "__main__":
    sys.exit(entry())
