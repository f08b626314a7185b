"""q-FedAvg and q-FedSGD beside the program of T. Li, which adds 1e-10 to every f_i."""

from collections.abc import Iterator
from pathlib import Path

from tests.agreement.row import Row, apart
from tests.agreement.stored import case, program, replayed

ADDED = '''
from mpifed import algorithms


class QFedAvg(algorithms.QFedAvg):
    """With f_i + 1e-10 in the place of f_i."""

    def losses(self, f, x):
        return super().losses(f, x) + 1e-10
'''
WHY = "the program adds 1e-10 to every f_i, which the paper does not"
CASES = [(folder, f"q{q}-6-of-6") for folder in ("q-fedavg", "q-fedsgd") for q in (1, 5)]


def rows(scratch: Path) -> Iterator[Row]:
    (scratch / "added.py").write_text(ADDED, "utf-8")
    for folder, name in CASES:
        shipped = beside(folder, name, "q-fedavg", "", scratch)
        own = f"{scratch / 'added.py'}:QFedAvg"
        yield beside(folder, name, own, ", f_i + 1e-10 by a derived class", scratch).without(WHY, shipped)


def beside(folder: str, name: str, method: str, more: str, scratch: Path) -> Row:
    """q-FedSGD is one full gradient step of q-FedAvg."""
    Z = case(folder, name)
    algorithm = {"name": method, "q": Z["q"], "lr": Z["lr"], "k0": Z["steps"]}
    found = replayed(Z, scratch, algorithm=algorithm, problem={"name": "logistic", "mu": 0.0})
    steps = "one gradient" if folder == "q-fedsgd" else f"{Z['steps']} local steps"
    compared = f"{Z['rounds']} rounds, {len(Z['sizes'])} clients, q = {Z['q']:g}, {steps}{more}"
    x, f = apart(found.models["x"], Z["x"]), apart(found.rounds["objective"], Z["f"])
    return Row("q-fedavg", *program(folder), compared, x, f)
