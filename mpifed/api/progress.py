"""How a run of a Python program shows its progress: a bar of tqdm, or the line of the command."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from mpifed.core.errors import UserError
from mpifed.experiment.progress import Progress
from mpifed.sweeps.runs import Overall

Wish = str | bool | None
Callback = Callable[[int, Mapping[str, float]], object]

DELAY = 0.5  # seconds that a run takes before its bar appears
STOPPED = "the callback returned True"


def progress(wish: Wish, callback: Callback | None = None) -> Progress:
    """The progress that a caller wishes. UserError for an unknown wish."""
    bar, stream = wished(wish)
    shown = Progress(stream) if bar is None else Bar(bar)
    if callback is None:
        return shown
    if not callable(callback):
        raise UserError(f"callback = {callback!r} is wrong: it must be a function of a round and its row")
    return Watched(shown, callback)


def wished(wish: Wish) -> tuple[Any, TextIO | None]:
    """The class of a bar, or None for a line, and where it is written, or None for nothing.

    auto: a bar where tqdm is installed and somebody looks, else the line; True or line: the line; False: nothing.
    """
    if wish is None or wish is False:
        return None, None
    if wish is True or wish == "line":
        return None, sys.stderr
    if wish != "auto":
        raise UserError(f'progress = {wish!r} is wrong: it must be "auto", "line", True or False')
    # not imported: where nobody has, this is no notebook
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    in_notebook = shell is not None and "IPKernelApp" in shell.config
    return (tqdm() if in_notebook or sys.stderr.isatty() else None), sys.stderr


def tqdm() -> Any:
    """The class of a bar for a terminal or a notebook, None where tqdm is not installed."""
    with warnings.catch_warnings(action="ignore"):  # that widgets are not installed: a bar of text does too
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


class Watched(Progress):
    """The progress ``line``, and a function of the caller that hears of every round and may end the run."""

    def __init__(self, line: Progress, callback: Callback) -> None:
        super().__init__(None)
        self.line = line
        self.callback = callback

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.line.show(round, rounds, row)
        answer = self.callback(round, dict(row))
        # True itself, also numpy's: who returns anything else, such as a count, does not mean to end the run
        if answer is True or answer is np.True_:
            self.stop = STOPPED

    def note(self, text: str) -> None:
        self.line.note(text)

    def close(self) -> None:
        self.line.close()


def over_all(wish: Wish, costs: Sequence[float]) -> Overall:
    """The progress of a sweep whose points cost so much, as a caller wishes it."""
    bar, stream = wished(wish)
    return Overall(stream, costs) if bar is None else Points(bar, costs)


class Points(Overall):
    """A bar of tqdm over the points of a sweep, which disappears when the sweep is over."""

    def __init__(self, make: Any, costs: Sequence[float]) -> None:
        super().__init__(sys.stderr, costs)
        self.bar: Any = make(total=len(costs), unit="run", delay=DELAY, leave=False, file=sys.stderr)

    def over(self, cost: float, seconds: float | None) -> None:
        self.done += 1
        self.bar.update(1)

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.bar.set_postfix_str(f"{self.name}: round {round}", refresh=False)
        self.bar.update(0)

    def close(self) -> None:
        if self.done == self.total:
            self.bar.close()
