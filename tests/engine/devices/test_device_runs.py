"""Runs whose clients live on a device, here PyTorch's CPU: the results of runs in memory, whatever else a study has."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed as public
from mpifed.core.errors import UserError
from tests.experiment.conftest import chosen, goes_on, run
from tests.helpers.killed_runs import content

torch = pytest.importorskip("torch")
from mpifed.engine.devices import device_host  # noqa: E402
from mpifed.engine.devices.device_host import DeviceHost  # noqa: E402
from mpifed.kernels.torch_device import USED_FRACTION, free_bytes  # noqa: E402

pytestmark = pytest.mark.torch

LINREG = {"name": "linreg-noniid", "clients": 12}
CLASSES = {"name": "synthetic", "clients": 6, "features": 8, "classes": 3}
SMALL = {"data": LINREG, "problem": "least-squares", "rounds": 4}
IMAGES = {"name": "images", "clients": 4, "samples": 9, "size": 10, "channels": 1}
DECAYED = {"name": "momentum", "decay": "weights", "weight_decay": 0.1}
COUNTS = public.arrays(np.linspace(-1, 1, 240).reshape(60, 4), 1.0 + np.arange(60) % 5, [10] * 6)
FEW = {"name": "uniform", "share": 0.4}
TIMED = {"asynchronous": {"arrivals": 4}, "system": {"speed": 100.0}}
STUDIES = {
    "selection": {"selection": FEW},
    "float32": {"selection": FEW, "dtype": "float32"},
    "biased selection": {"selection": {"name": "biased", "share": 0.4}},
    "importance": {"selection": {"name": "importance", "share": 0.4}},
    "error feedback": {"compress": {"up": {"name": "topk", "k": 5}}, "selection": FEW},
    "compressed last uploads": {"compress": {"up": {"name": "randk", "k": 5}}, "algorithm": "fedadmm"},
    "masks": {"masks": {"sums": "masked"}, "selection": FEW},
    "asynchronous": TIMED,
    "asynchronous, last uploads": TIMED | {"algorithm": "fedadmm"},
    "partial work": {"system": {"speed": 100.0, "deadline": 3.0, "partial": True}, "algorithm": "fednova"},
    "softmax": {"data": CLASSES, "problem": "softmax"},
    "svm": {"data": CLASSES, "problem": "svm"},
    "logistic": {"data": CLASSES | {"classes": 2}, "problem": "logistic"},
    "non-convex logistic": {"data": CLASSES | {"classes": 2}, "problem": "nonconvex-logistic", "algorithm": "fedgia"},
    "personal": {
        "data": CLASSES,
        "problem": "softmax",
        "algorithm": "pfedme",
        "record": {"personal": True},
        "rounds": 2,
    },
    "weights": {"objective": {"weights": "samples"}, "selection": FEW},
    "weights of last uploads": {"objective": {"weights": "samples"}, "algorithm": "fedadmm-deep"},
    "huber": {"problem": "huber"},
    "poisson": {"problem": "poisson", "data": COUNTS, "algorithm": {"name": "fedavg", "step": 0.05}},
    "gamma": {"problem": "gamma", "data": COUNTS, "algorithm": {"name": "fedavg", "step": 0.05}},
    "clipped": {"algorithm": {"name": "fedavg", "optimizer": {"name": "momentum", "clip": 0.5}}},
    "decay of weights": {"data": IMAGES, "problem": "cnn", "algorithm": {"name": "fedavg", "optimizer": DECAYED}},
    "network": {"data": IMAGES, "problem": "cnn", "algorithm": {"name": "scaffold", "batch_size": 5}},
    "network, one at a time": {"data": IMAGES, "problem": {"name": "cnn", "batched": False}},
    "scores": {
        "algorithm": {"name": "feddcd", "solver": {"name": "gd", "steps": 4}},
        "data": {"name": "quadratic", "clients": 12},
        "problem": "quadratic",
        "selection": {"name": "greedy", "share": 0.4},
    },
}
DEFAULT = (
    *("selection", "float32", "biased selection", "error feedback", "masks", "asynchronous, last uploads"),
    *("partial work", "softmax", "personal", "weights", "poisson", "clipped", "network", "scores"),
)
EXACT = ("objective", "grad_norm_sq", "accuracy", "accuracy_pooled", "personal_objective", "personal_accuracy")


@pytest.mark.parametrize("name", chosen(STUDIES, *DEFAULT))
def test_a_run_on_a_device_has_the_results_of_one_in_memory_and_says_what_computed(name):
    study = {"algorithm": "fedavg"} | SMALL | STUDIES[name]
    here, there = (public.run(study, kernels=kernels) for kernels in ("numpy", "torch"))
    rtol = 1e-4 if study.get("dtype") == "float32" else 1e-9
    np.testing.assert_allclose(there.x, here.x, rtol, rtol * abs(here.x).max())
    for column in set(EXACT) & set(here.rounds):
        np.testing.assert_allclose(there.rounds[column], here.rounds[column], rtol, err_msg=column)
    if here.personal is not None:
        np.testing.assert_allclose(there.personal, here.personal, rtol, rtol)
    assert there.rounds["bytes_up"].tolist() == here.rounds["bytes_up"].tolist()
    assert there.attrs["kernels"] == "torch"
    assert there.attrs["torch"]


@pytest.mark.parametrize("ranks", [None, pytest.param(3, marks=pytest.mark.slow)])
def test_neither_ranks_nor_a_stop_change_a_bit(ranks, tmp_path):
    study = ["data.clients=9", "algorithm=fedadmm", "selection=uniform", "selection.count=5", "kernels=torch"]
    goes_on(tmp_path, study)
    if ranks is None:
        return
    several = tmp_path / "ranks.h5"
    run("run", *study, "rounds=6", "-q", "-o", several, ranks=ranks)
    assert content(several) == content(tmp_path / "whole.h5")


def sparse():
    return public.arrays(sp.csr_array(np.eye(20, 100)), np.arange(20) % 2.0, [4] * 5)


REFUSED = {
    "newton needs the matrices ∇²f_i": {"algorithm": "newton"},
    "feddcd needs products with ∇²f_i": STUDIES["scores"] | {"algorithm": "feddcd"},
    "mlp does not compute with tensors on a device": {"data": CLASSES, "problem": "mlp"},
    "cnn computes with sparse data in memory alone": {"data": sparse(), "problem": "cnn"},
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_a_device_does_not_have_is_refused(why):
    study = SMALL | {"algorithm": "fedavg"} | REFUSED[why]
    with pytest.raises(UserError, match=f'^kernels = "torch" is wrong: {why}.* so it must be "auto"'):
        public.run(study, kernels="torch")
    assert public.run(study, kernels="auto", rounds=1).status == "finished"


def test_networks_live_on_the_gpu_that_their_problem_asks_for(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("mpifed.kernels.torch_device.describe_device", lambda device: "a card")
    monkeypatch.setattr("mpifed.kernels.torch_device.choose_device", lambda *_: torch.device("cpu"))
    study = SMALL | {"algorithm": "fedavg", "data": IMAGES}
    there = public.run(study, problem={"name": "cnn", "device": "auto"})
    assert (there.attrs["kernels"], there.attrs["device"]) == ("cuda", "a card")
    assert public.run(study, problem={"name": "cnn"}).attrs["kernels"] == "numpy"


def test_samples_that_do_not_fit_on_the_device_and_cuda_without_a_gpu_are_one_sentence(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("mpifed.kernels.tensor_products.TensorProducts.move_blocks", full)
    with pytest.raises(UserError, match=r"^the samples of clients 0 to 11 do not fit into the memory of the device: "):
        public.run(SMALL, algorithm="fedavg", kernels="torch")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    wrong = 'PyTorch finds no GPU on a node of this run: write "auto", or "torch" for PyTorch on the CPU'
    with pytest.raises(UserError, match=f'^kernels = "cuda" is wrong: {wrong}$'):
        public.run(SMALL, algorithm="fedavg", kernels="cuda")


OWN = """
from typing import NamedTuple
import numpy as np
from mpifed.extend import Algorithm, Array, Supports

class Client(NamedTuple):
    g: Array

class Server(NamedTuple):
    x: Array

class Signs(Algorithm):
    supports = Supports.DEVICES
    def init_client(self, f):
        return Client(f.zeros())
    def init_server(self, fed):
        return Server(fed.initial())
    def round(self, fed, server):
        return Server(server.x - 0.01 * fed.mean(self.signs, server.x, to=fed.select(server.x)))
    def signs(self, f, client, x):
        s = LIBRARY.sign(f.grad(x))
        return Client(s), s
"""


def own(folder, library, upload="LIBRARY.sign(f.grad(x))"):
    path = folder / f"own_{library.replace('.', '')}.py"
    path.write_text(OWN.replace("LIBRARY.sign(f.grad(x))", upload).replace("LIBRARY", library))
    return SMALL | {"algorithm": f"{path}:Signs", "selection": FEW}


def test_a_method_of_ones_own_with_f_xp_runs_on_both_and_with_numpy_is_told_of_it(tmp_path):
    study = own(tmp_path, "f.xp")
    here, there = (public.run(study, kernels=kernels) for kernels in ("numpy", "torch"))
    np.testing.assert_allclose(there.x, here.x, 1e-9)
    study = own(tmp_path, "np", "np.asarray(f.grad(x))")
    wrong = "signs returns a numpy array where its clients' arrays are on a device: use f.xp in place of np"
    with pytest.raises(UserError, match=f"^the client method {wrong}"):
        public.run(study, kernels="torch")
    assert public.run(study, kernels="numpy").status == "finished"


def test_torch_is_not_imported_where_arrays_are_in_memory_nor_by_those_who_name_a_network():
    code = "import mpifed, sys; mpifed.run(rounds=1, algorithm='fedavg'); from mpifed.experiment import config; "
    code += "config.experiment({'problem': 'cnn'}); assert not {'torch', 'array_api_compat'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


CPU = torch.device("cpu")
TESTED = {"name": "synthetic", "clients": 24, "features": 8, "classes": 3, "test": 0.3}
SPARSE = public.arrays(sp.random_array((120, 30), density=0.2, rng=0, format="csr"), np.arange(120) % 2.0, [10] * 12)
CROWDED = {
    "dense": SMALL,
    "with tests": SMALL | {"data": TESTED, "problem": "softmax"},
    "CSR": SMALL | {"data": SPARSE, "problem": "logistic"},
}


def needed(study, monkeypatch):
    """The bytes that the samples of a study take, by the sum that a run compares with what is free."""
    found = []
    plain = device_host.SameSizeClients.bytes
    monkeypatch.setattr(device_host.SameSizeClients, "bytes", lambda alike: found.append(plain(alike)) or found[-1])
    monkeypatch.setattr(device_host, "free_bytes", lambda device: 1 << 40)
    public.run(study, algorithm="fedavg", kernels="torch", rounds=0)
    return sum(found)


@pytest.mark.parametrize("name", CROWDED)
def test_a_gpu_that_is_full_is_refused_with_its_bytes_and_one_that_has_just_enough_is_not(name, monkeypatch):
    study = CROWDED[name]
    room = needed(study, monkeypatch)
    monkeypatch.setattr(device_host, "free_bytes", lambda device: room)
    assert public.run(study, algorithm="fedavg", kernels="torch", rounds=1).cr == 1
    monkeypatch.setattr(device_host, "free_bytes", lambda device: room - 1)
    with pytest.raises(UserError, match=r"^samples take [\d.]+ MB on the device, which has [\d.]+ MB free for them: "):
        public.run(study, algorithm="fedavg", kernels="torch")


def test_dense_samples_take_the_bytes_that_are_counted(monkeypatch):
    made = []
    plain = DeviceHost._group
    monkeypatch.setattr(DeviceHost, "_group", lambda *args: made.append(plain(*args)) or made[-1])
    room = needed(SMALL, monkeypatch)
    assert room == sum(getattr(group.full, name).nbytes for group in made for name in ("A", "b", "w"))


def test_ranks_that_share_a_card_share_what_is_free(monkeypatch):
    card = torch.device("cuda", 1)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (1000, 2000))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert free_bytes(card) == USED_FRACTION * 1000
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5")
    assert free_bytes(card) == int(USED_FRACTION * 1000 / 3)
    assert free_bytes(CPU) is None
