"""Personal models beside the programs of C. T. Dinh (pFedMe) and T. Li (Ditto)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.agreement.row import Row, apart
from tests.agreement.stored import by_sizes, case, program, replayed

# Local rounds R, the server's β and the mean over the selected alone, which pfedme of mpifed does not have.
ROUNDS = '''
from typing import Annotated

from msgspec import Meta

from mpifed import algorithms
from mpifed.algorithms.pfedme import Client


class Rounds(algorithms.PFedMe):
    """pFedMe with R local rounds and x ← (1 − β)x + β mean of w_i over the selected."""

    R: Annotated[int, Meta(ge=1, description="local rounds R")] = 1
    beta: Annotated[float, Meta(gt=0, description="step size β of the server")] = 1.0

    def round(self, fed, server):
        mean = fed.mean(self.update, server.x, to=fed.select(server.x))
        return server._replace(x=(1 - self.beta) * server.x + self.beta * mean)

    def update(self, f, client, w):
        theta = z = f.xp.tile(w, (len(f), 1))
        for _ in range(self.R):
            theta = self.train(f, theta, z)
            z = z - self.eta * self.lam * (z - theta)
        return Client(theta, z), z
'''
OWN = (
    "the program begins each θ_i at the server's model, as begin = server does; the paper leaves it open, and FLAME's "
    "paper, from which the default is, keeps θ_i"
)


def rows(scratch: Path) -> Iterator[Row]:
    one, some = case("pfedme-dinh", "all-one-local"), case("pfedme-dinh", "uneven-some-beta2")
    (scratch / "rounds.py").write_text(ROUNDS, "utf-8")
    all_six = "all 6 clients, R = β = 1, begin = server; personal models of the last round too"
    row = pfedme(one, scratch, all_six, begin="server")
    yield row.without(OWN, pfedme(one, scratch, all_six))
    more = {"name": f"{scratch / 'rounds.py'}:Rounds", "R": int(some["local_rounds"]), "beta": some["beta"]}
    yield pfedme(some, scratch, "3 of 6 clients replayed, uneven sizes, R = β = 2 by a derived class", **more)
    yield ditto(scratch)


def pfedme(Z: dict[str, Any], scratch: Path, compared: str, **more: Any) -> Row:
    """The weight decay 0.001 of the program's optimiser, which none of its options reaches, is an option here."""
    options = {"lam": Z["lam"], "eta": Z["lr"], "lr": Z["personal_lr"], "epochs": int(Z["K"]), "batch_size": 0}
    algorithm = {"name": "pfedme", "weight_decay": Z["decay"]} | options | more
    found, f = by_sizes(Z, scratch, algorithm=algorithm, record={"models": 1, "personal": True})
    x = apart(found.models["x"], Z["x"])
    # With a cohort all clients of the program train, also those whose w_i it does not average.
    personal = 0.0 if "R" in more else apart(found.personal, Z["theta"][-1])
    return Row("pfedme", *program("pfedme-dinh"), f"25 rounds, {compared}", max(x, personal), apart(f, Z["f"]))


def ditto(scratch: Path) -> Row:
    Z = case("ditto-li", "lam0.3-3-of-6")
    steps = {"k0": Z["steps"], "inner": Z["steps"], "lr": Z["lr"], "step": {"name": "constant", "a": Z["lr"]}}
    found = replayed(
        Z,
        scratch,
        algorithm={"name": "ditto", "lam": Z["lam"]} | steps,
        problem={"name": "logistic", "mu": 0.0},
        record={"models": 1, "personal": True},
    )
    x = max(apart(found.models["x"], Z["x"]), apart(found.personal, Z["personal"][-1]))
    compared = "25 rounds, 3 of 6 clients replayed; personal models of the last round too"
    return Row("ditto", *program("ditto-li"), compared, x, apart(found.rounds["objective"], Z["f"]))
