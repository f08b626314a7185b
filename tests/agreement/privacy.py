"""Private means beside Flower and pfl-research, ε beside Opacus and pfl-research, stored by privacy_programs.py."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mpifed
from mpifed.features.privacy.accounting import GaussianRounds, epsilon_of_rdp, renyi_curve
from tests.agreement.row import CLOSE, Row, apart
from tests.agreement.stored import replayed

STORED = Path(__file__).parent / "private.npz"
FLOWER, PFL, OPACUS = ("adap/flower", "1.42.0"), ("apple/pfl-research", "0.6.0"), ("pytorch/opacus", "1.6.0")
BIT = (
    "the program counts clients that are clipped where the paper, and mpifed, count those that are not, so that its "
    "bound goes away from the quantile: in ten rounds from 0.5 to 1.34, by the paper to 0.24"
)
BOUND = (
    "the program moves its bound before it draws the noise of a round, which has the deviation of the next bound, not "
    "of that to which changes were clipped"
)
SINGLE = "the program has in single precision what clients say of their bound, 1 or −1, and the count that follows"
ORDERS = (
    "at orders that are no whole numbers the divergences of dp-accounting, and so mpifed's, are too large, which is "
    "safe; Opacus' are exact"
)
GRID = (
    "mpifed's grid of losses is coarser, so that each evaluation can have an ε: both are upper bounds, and mpifed's is "
    "not smaller"
)
EXACT = (
    "without sampling mpifed has the exact ε of the Gaussian mechanism, pfl-research that of a grid, and with one ten "
    "times finer it is closer"
)


class Trajectories:
    """The stored numbers, and mpifed's runs beside the trajectories among them."""

    def __init__(self, scratch: Path) -> None:
        stored = np.load(STORED)
        self.Z: dict[str, Any] = {key: stored[key] if stored[key].ndim else stored[key].item() for key in stored}
        self.scratch = scratch

    def run(self, key: str) -> mpifed.Result:
        """Return mpifed's run with the options of a trajectory, which its key names."""
        Z = self.Z
        table = {"clip": Z["clip"], "noise_multiplier": Z["z"] if "noise" in key else 0.0}
        if "noise" in key:
            table["noise_seed"] = Z["seed"]
        if "adaptive" in key:
            table |= {"clip": Z["first_clip"], "quantile": 0.5, "clip_rate": 0.2}
        if "adaptive" in key and "noise" in key:
            table["count_noise"] = Z["count_noise"]
        clients = {"clients": Z["five"]} if "five" in key else {}
        case = {"X": Z["A"], "y": Z["b"], "x0": np.zeros(Z["A"].shape[1])} | clients
        return replayed(
            case | {"sizes": Z["sizes"], "rounds": Z["rounds"]},
            self.scratch,
            algorithm={"name": "fedavg", "k0": Z["steps"], "step": {"name": "constant", "a": Z["rate"]}},
            problem="least-squares",
            privacy=table,
            **({} if clients else {"selection": "all"}),
        )

    def compare(self, key: str) -> float:
        """Return how far apart the models are, and the bounds where they move."""
        found = self.run(key)
        x = apart(found.models["x"], self.Z[f"{key}/x"])
        return max(x, apart(found.rounds["clip"], self.Z[f"{key}/clip"])) if "adaptive" in key else x

    def row(self, key: str, compared: str) -> Row:
        """Return the row of a trajectory."""
        program = FLOWER if key.startswith("flower") else PFL
        kind = "adaptive" if "adaptive" in key else "fixed"
        noise = "the same noise" if "noise" in key else "no noise"
        return Row(
            f"fedavg, privacy with a bound that is {kind}",
            *program,
            f"10 rounds, 12 clients, {noise}{compared}",
            self.compare(key),
            math.nan,
        )


def rows(scratch: Path) -> Iterator[Row]:
    found = Trajectories(scratch)
    five = ", 5 of them replayed"
    clients = ", clipped by its module of clients"
    for noise in ("", ", noise"):
        yield found.row(f"flower fixed{noise}", "")
        yield found.row(f"flower fixed, five{noise}", five)
        yield found.row(f"flower fixed at clients{noise}", clients)
    for side, where in (("", ""), (" at clients", clients)):
        key = f"flower adaptive{side}"
        count = f"{where}, the paper's count in the program"
        yield found.row(f"{key}, bit", count).without(BIT, found.row(key, where))
        row = found.row(f"{key}, noise, bit and bound", f"{count} and the bound of the round")
        yield row.without(BOUND, found.row(f"{key}, noise, bit", count))
    yield found.row("pfl fixed", "")
    yield found.row("pfl fixed, five", five)
    yield found.row("pfl fixed, noise", "")
    for noise in ("", ", noise"):
        row = found.row(f"pfl adaptive{noise}, double", ", double precision in the program")
        yield row.without(SINGLE, found.row(f"pfl adaptive{noise}", ""))
    yield from epsilons(found.Z)


def epsilons(Z: dict[str, Any]) -> Iterator[Row]:
    """Return a row of each setting and accountant; x is the relative difference of ε."""
    for by, program, key in (("rdp", OPACUS, "opacus"), ("pld", PFL, "pfl")):
        for k, (z, q, rounds, delta) in enumerate(Z["settings"].tolist()):
            ours = GaussianRounds(z, q).epsilon(int(rounds), delta, by)
            compared = f"z = {z:g}, q = {q:g}, {rounds:g} rounds, δ = {delta:g}: ε = {ours:.4g}"
            row = Row(f'ε by "{by}"', *program, compared, apart([ours], Z[key][[k]]), math.nan)
            if row.x > CLOSE and by == "rdp":
                orders, curve = renyi_curve(z, q)
                whole = orders == np.floor(orders)
                found = epsilon_of_rdp(orders[whole], rounds * curve[whole], delta)
                x = apart([found], Z["opacus whole"][[k]])
                row = row._replace(compared=f"{compared}, whole orders here and in the program", x=x).without(
                    ORDERS, row
                )
            elif row.x > CLOSE:
                x, grid = apart([ours], Z["pfl grid"][[k]]), "mpifed's" if q < 1 else "a finer"
                other = row._replace(
                    compared=f"{compared}, {grid} grid in the program", x=x, bound=CLOSE if q < 1 else 1e-9
                )
                row = other.without(GRID if q < 1 else EXACT, row)
            yield row
