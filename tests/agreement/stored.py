"""A stored case of a program, run by mpifed on the same samples, from the same model and with the same clients."""

import io
import lzma
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mpifed

# Arrays of folder/case/name, and folder/program, its name and the first digits of its commit or its version. One array
# is there in several cases; compressed as one stream it takes its place once.
TRAJECTORIES = Path(__file__).parent / "trajectories.npz.xz"

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


@cache
def trajectories() -> dict[str, np.ndarray]:
    """All stored arrays by folder/case/name."""
    return dict(np.load(io.BytesIO(lzma.decompress(TRAJECTORIES.read_bytes()))))


def case(folder: str, name: str) -> dict[str, Any]:
    """The arrays of a case, single numbers as numbers of Python."""
    prefix = f"{folder}/{name}/"
    found = {key.removeprefix(prefix): array for key, array in trajectories().items() if key.startswith(prefix)}
    assert found, f"{TRAJECTORIES.name} has no case {prefix}"
    return {key: array if array.ndim else array.item() for key, array in found.items()}


def program(folder: str) -> tuple[str, str]:
    """Repository and the first digits of its commit, or package and version."""
    name, version = trajectories()[f"{folder}/program"].tolist()
    return name, version


def saved(Z: Mapping[str, Any], path: Path) -> str:
    """The arrays of a case as a file, for plug-ins that read one."""
    np.savez(path, **Z)
    return str(path)


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
