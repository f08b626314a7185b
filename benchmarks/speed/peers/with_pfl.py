"""The rounds of ``benchmarks.speed.peers`` by pfl-research (pip install pfl, and PyTorch): see ``common``.

F. Granqvist et al., "pfl-research: simulation framework for accelerating research in private federated learning",
arXiv:2404.06430 (2024). Its simulated backend trains one user after the other; samples are tensors on the device from
the start, and are not shuffled, which pfl leaves to the data set.
"""

from typing import Any

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.internal.ops import pytorch_ops
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch.nn.functional import cross_entropy

from benchmarks.speed.models import CASES, SMALL, load
from benchmarks.speed.peers.common import Marks, Task, task


class Trained(torch.nn.Module):  # type: ignore[misc]
    """A network with the two methods that pfl asks for."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def loss(self, X: Any, y: Any) -> Any:
        return cross_entropy(self.network(X), y)

    def metrics(self, X: Any, y: Any) -> dict[str, Any]:
        return {}


class Clock(TrainingProcessCallback):  # type: ignore[misc]
    """Marks the end of each round."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks

    def after_central_iteration(self, *args: Any, **others: Any) -> tuple[bool, Any]:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.marks.mark()
        return False, Metrics()


def run(given: Task) -> None:
    """Train, and print what was measured."""
    torch.set_num_threads(1)
    pytorch_ops.get_default_device()
    device = torch.device(given.device)
    network = {"small CNN": SMALL, **CASES}[given.network].make().to(device)
    load(network, torch.from_numpy(given.x).to(device))
    X, y = torch.from_numpy(given.X).to(device), torch.from_numpy(given.y).to(device)
    users = list(range(len(X)))
    trained = Trained(network)
    model = PyTorchModel(trained, torch.optim.SGD, torch.optim.SGD(trained.parameters(), 1.0))
    sampler = get_user_sampler("minimize_reuse", users)
    data = FederatedDataset(lambda i: Dataset([X[i], y[i]], user_id=str(i)), sampler)
    marks = Marks()
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=given.rounds,
            evaluation_frequency=given.rounds + 1,
            train_cohort_size=given.clients,
            val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=given.lr, local_batch_size=given.batch),
        callbacks=[Clock(marks)],
    )
    with torch.no_grad():
        found = [cross_entropy(network(A), b).item() for A, b in zip(X, y, strict=True)]
    marks.tell(float(np.mean(found)))


if __name__ == "__main__":
    run(task())
