"""The progress of a run of a Python program: a bar of tqdm, or the line of the command."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from mpifed.core.errors import UserError
from mpifed.experiment.progress import Progress
from mpifed.sweeps.runs import SweepProgress

ProgressOption = str | bool | None
RoundCallback = Callable[[int, Mapping[str, float]], object]

DELAY = 0.5  # seconds that a run takes before its bar appears
STOPPED = "the callback returned True"


def progress(requested: ProgressOption, callback: RoundCallback | None = None) -> Progress:
    """Make the progress display that a caller requests. UserError for an unknown request."""
    bar, stream = choose_display(requested)
    shown = Progress(stream) if bar is None else Bar(bar)
    if callback is None:
        return shown
    if not callable(callback):
        raise UserError(f"callback = {callback!r} is wrong: it must be a function of a round and its row")
    return ProgressWithCallback(shown, callback)


def choose_display(requested: ProgressOption) -> tuple[Any, TextIO | None]:
    """Return the class of a bar, or None for a line, and the stream to write to, or None for silence.

    auto: a bar where tqdm is installed and the output is seen, else the line; True or line: the line; False: nothing.
    """
    if requested is None or requested is False:
        return None, None
    if requested is True or requested == "line":
        return None, sys.stderr
    if requested != "auto":
        raise UserError(f'progress = {requested!r} is wrong: it must be "auto", "line", True or False')
    # from sys.modules: if nobody has imported IPython, this is no notebook
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    in_notebook = shell is not None and "IPKernelApp" in shell.config
    return (tqdm() if in_notebook or sys.stderr.isatty() else None), sys.stderr


def tqdm() -> Any:
    """Return the class of a bar for a terminal or a notebook, None where tqdm is not installed."""
    with warnings.catch_warnings(action="ignore"):  # about missing widgets: a bar of text is fine
        try:
            from tqdm.auto import tqdm as bar
        except ImportError:
            return None
    return bar


class Bar(Progress):
    """A bar of tqdm, which disappears when the run is over."""

    def __init__(self, make: Any) -> None:
        super().__init__(sys.stderr)
        self.make: Any = make
        self.bar: Any = None

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        if self.bar is None:
            self.bar = self.make(total=rounds, initial=round, unit="round", delay=DELAY, leave=False, file=sys.stderr)
        if "objective" in row:
            self.bar.set_postfix_str(f"f {row['objective']:.6g}, ‖∇f‖² {row['grad_norm_sq']:.2e}", refresh=False)
        self.bar.update(round - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class ProgressWithCallback(Progress):
    """The progress ``line`` with a function of the caller, which is called after every round and may end the run."""

    def __init__(self, line: Progress, callback: RoundCallback) -> None:
        super().__init__(None)
        self.line = line
        self.callback = callback

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.line.show(round, rounds, row)
        answer = self.callback(round, dict(row))
        # True itself, also numpy's: a function that returns a count, for example, does not mean to end the run
        if answer is True or answer is np.True_:
            self.stop = STOPPED

    def note(self, text: str) -> None:
        self.line.note(text)

    def close(self) -> None:
        self.line.close()


def sweep_progress(requested: ProgressOption, costs: Sequence[float]) -> SweepProgress:
    """Make the progress display of a sweep with points of these costs, as a caller requests it."""
    bar, stream = choose_display(requested)
    return SweepProgress(stream, costs) if bar is None else SweepBar(bar, costs)


class SweepBar(SweepProgress):
    """A bar of tqdm over the points of a sweep, which disappears when the sweep is over."""

    def __init__(self, make: Any, costs: Sequence[float]) -> None:
        super().__init__(sys.stderr, costs)
        self.bar: Any = make(total=len(costs), unit="run", delay=DELAY, leave=False, file=sys.stderr)

    def count_end(self, cost: float, seconds: float | None) -> None:
        self.done += 1
        self.bar.update(1)

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.bar.set_postfix_str(f"{self.name}: round {round}", refresh=False)
        self.bar.update(0)

    def close(self) -> None:
        if self.done == self.total:
            self.bar.close()
