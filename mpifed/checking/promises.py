"""Checks of promises that a class declares, as far as a small study can show them."""

from importlib.util import find_spec

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking.algorithms import ROUNDING
from mpifed.checking.case import Case, difference
from mpifed.checking.table import Check, CheckFailure, Inconclusive, locate
from mpifed.checking.trace import NEEDS, CallRecorder, RecordingTransport, profiling
from mpifed.core.promises import Supports, declared_promises
from mpifed.experiment.housing import build_federation
from mpifed.experiment.rounds import play_round
from mpifed.federation.participation.selection import Selection

OF_DATA = NEEDS | {name: name for name in ("value", "grad", "value_grad")}  # they depend on a client's samples


def require_claim(case: Case, promise: Supports, words: str) -> None:
    """Raise Inconclusive unless a class declares a promise."""
    if not declared_promises(case.component) & promise:
        raise Inconclusive(f"it does not say that it keeps {words}: supports = mpifed.Supports.{words.upper()}")


def check_tensors(case: Case) -> str:
    """Compare the models of a run with PyTorch's tensors with those of numpy's arrays."""
    require_claim(case, Supports.DEVICES, "devices")
    if find_spec("torch") is None:
        raise Inconclusive("PyTorch is not installed")
    first = case.reproducible_result()
    text = difference(first, case.run(kernels="torch"), ROUNDING)
    if text:
        raise CheckFailure(f"with tensors of PyTorch in place of arrays: {text}", locate(case.component))
    return "tensors of PyTorch: the same to rounding"


def check_private_start(case: Case) -> str:
    """Test that before round one no result of the samples of a client is requested."""
    require_claim(case, Supports.PRIVACY, "privacy")
    algorithm = case.config.algorithm
    case.host.join()
    fed = build_federation(case.config, RecordingTransport(case.host), case.spec)
    watch = CallRecorder(case, fed, OF_DATA)
    with profiling(watch):
        play_round(algorithm, fed, 0, None, 0)
    for name, method in watch.callers.items():
        raise CheckFailure(
            f"asks clients for f.{name} before round one, which no noise hides: take it from an option",
            locate(algorithm, method),
        )
    return "nothing is asked of samples before round one"


def check_private_selector(case: Case) -> str:
    """Test that the selector asks clients for no number of their data."""
    require_claim(case, Supports.PRIVACY, "privacy")
    parts = case.spec
    if not parts.selector.supported_promises(parts.setup.m).supports & Supports.CLIENTS:
        raise CheckFailure("its Selector asks clients for numbers of their data", locate(case.component, "selector"))
    return "its selector asks clients for nothing"


EVERY: list[Check] = [("on tensors", check_tensors)]
PRIVATE: dict[str, list[Check]] = {
    Algorithm.kind: [("privacy before round one", check_private_start)],
    Selection.kind: [("privacy of selections", check_private_selector)],
}
