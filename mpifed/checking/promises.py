"""Checks of promises that a class says it keeps, as far as a small study can show them."""

from importlib.util import find_spec

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking.algorithms import ROUNDING
from mpifed.checking.case import Case, difference
from mpifed.checking.table import Check, Found, Open, place
from mpifed.checking.trace import NEEDS, Watch, Watching, watching
from mpifed.core.promises import Keeps, said
from mpifed.experiment.housing import federation
from mpifed.experiment.rounds import played
from mpifed.federation.participation.selection import Selection

OF_DATA = NEEDS | {name: name for name in ("value", "grad", "value_grad")}  # what tells of a client's samples


def claimed(case: Case, promise: Keeps, words: str) -> None:
    """Open where a class does not say that it keeps a promise."""
    if not said(case.component) & promise:
        raise Open(f"it does not say that it keeps {words}: keeps = mpifed.Keeps.{words.upper()}")


def on_tensors(case: Case) -> str:
    """The models of a run with PyTorch's tensors in place of numpy's arrays."""
    claimed(case, Keeps.DEVICES, "devices")
    if find_spec("torch") is None:
        raise Open("PyTorch is not installed")
    first = case.repeated()
    apart = difference(first, case.run(kernels="torch"), ROUNDING)
    if apart:
        raise Found(f"with tensors of PyTorch in place of arrays: {apart}", place(case.component))
    return "tensors of PyTorch: the same to rounding"


def private_start(case: Case) -> str:
    """Before round one, nothing that a client computes from its samples is asked for."""
    claimed(case, Keeps.PRIVACY, "privacy")
    algorithm = case.config.algorithm
    case.host.join()
    fed = federation(case.config, Watching(case.host), case.prepared)
    watch = Watch(case, fed, OF_DATA)
    with watching(watch):
        played(algorithm, fed, 0, None, 0)
    for name, method in watch.called.items():
        raise Found(
            f"asks clients for f.{name} before round one, which no noise hides: take it from an option",
            place(algorithm, method),
        )
    return "nothing is asked of samples before round one"


def private_selector(case: Case) -> str:
    """The selector asks clients for no number of their data."""
    claimed(case, Keeps.PRIVACY, "privacy")
    parts = case.prepared
    if not parts.selector.kept(parts.setup.m).keeps & Keeps.CLIENTS:
        raise Found("its Selector asks clients for numbers of their data", place(case.component, "selector"))
    return "its selector asks clients for nothing"


EVERY: list[Check] = [("on tensors", on_tensors)]
PRIVATE: dict[str, list[Check]] = {
    Algorithm.kind: [("privacy before round one", private_start)],
    Selection.kind: [("privacy of selections", private_selector)],
}
