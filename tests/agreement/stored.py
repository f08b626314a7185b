"""A stored case of a program, run by mpifed on the same samples, from the same model and with the same clients."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import mpifed
from tests.agreement.row import FOLDER

# The f of each client, so that f without weights is there beside means of models by sizes; weight decay on all of x.
PROBLEMS = '''
from mpifed import problems


class Recording:
    def client_measures(self):
        return {"loss": self.value}


class LeastSquares(Recording, problems.LeastSquares):
    """Least squares that records the f_i of each client."""


class Softmax(Recording, problems.Softmax):
    """The same of softmax regression with (decay/2)‖x‖² in f_i, the bias in it."""

    decay: float = 0.0

    def _value(self, block, X, loss):
        return super()._value(block, X, loss) + self.decay / 2 * (X * X).sum(axis=-1)

    def pull(self, block, R, X):
        return super().pull(block, R, X) + self.decay * X
'''


def case(folder: str, name: str) -> dict[str, Any]:
    """The arrays of a case, single numbers as numbers of Python, and its path."""
    path = (FOLDER / folder / f"{name}.npz").resolve()
    arrays = np.load(path)
    return {"path": path} | {key: arrays[key] if arrays[key].ndim else arrays[key].item() for key in arrays}


def replayed(Z: Mapping[str, Any], scratch: Path, **study: Any) -> mpifed.Result:
    """mpifed on a case; its start and its selections, where some are stored, come from files in ``scratch``."""
    start, chosen = scratch / "start.npz", scratch / "selected.npz"
    np.savez(start, x=Z["x0"] if "x0" in Z else Z["x"][0])
    study = {"rounds": Z["rounds"], "start": str(start), "record": {"models": 1}, "stop": {"gradient": 0.0}} | study
    selected = Z.get("clients", Z.get("selected"))
    if selected is not None:
        np.savez(chosen, sel=numbers(selected))
        study["selection"] = {"name": "replay", "path": str(chosen)}
    found = mpifed.run(study, data=mpifed.arrays(Z["X"], Z["y"], Z["sizes"]))
    assert found is not None
    return found


def numbers(selected: np.ndarray) -> np.ndarray:
    """Clients of each round by number, from masks or numbers: (rounds, most), −1 behind them."""
    if selected.dtype != bool:
        return selected
    return np.sort(np.where(selected, np.arange(selected.shape[1]), -1), axis=1)[:, ::-1]


def by_sizes(
    Z: Mapping[str, Any], scratch: Path, problem: str = "Softmax", **study: Any
) -> tuple[mpifed.Result, np.ndarray]:
    """The same with means of models by sizes unless ``study`` says otherwise, and (1/m) Σ f_i after every round."""
    (scratch / "problems.py").write_text(PROBLEMS, "utf-8")
    table = {"name": f"{scratch / 'problems.py'}:{problem}"}
    if Z.get("weight_decay"):
        table["decay"] = Z["weight_decay"]
    study = {"objective": {"weights": "samples"}, "evaluate": {"clients": ["loss"]}} | study
    found = replayed(Z, scratch, problem=table, **study)
    return found, np.asarray(found.by_client["loss"]).mean(axis=1)
