"""A device that has no room for the samples of a rank: the run is refused with their bytes and its own."""

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed as public
from mpifed.core.errors import UserError
from tests.federation.test_device_runs import SMALL

torch = pytest.importorskip("torch")
from mpifed.federation import device_memory  # noqa: E402
from mpifed.federation.device_host import DeviceHost  # noqa: E402
from mpifed.problems.torch_device import FILLED, free_bytes  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
CLASSES = {"name": "synthetic", "clients": 24, "features": 8, "classes": 3, "test": 0.3}
SPARSE = public.arrays(sp.random_array((120, 30), density=0.2, rng=0, format="csr"), np.arange(120) % 2.0, [10] * 12)
STUDIES = {
    "dense": SMALL,
    "with tests": SMALL | {"data": CLASSES, "problem": "softmax"},
    "CSR": SMALL | {"data": SPARSE, "problem": "logistic"},
}


def needed(study, monkeypatch):
    """The bytes that the samples of a study take, by the sum that a run compares with what is free."""
    found = []
    plain = device_memory.Alike.bytes
    monkeypatch.setattr(device_memory.Alike, "bytes", lambda alike: found.append(plain(alike)) or found[-1])
    monkeypatch.setattr(device_memory, "free_bytes", lambda device: 1 << 40)
    public.run(study, algorithm="fedavg", kernels="torch")
    return sum(found)


@pytest.mark.parametrize("name", STUDIES)
def test_a_gpu_that_is_full_is_refused_with_its_bytes_and_one_that_has_just_enough_is_not(name, monkeypatch):
    study = STUDIES[name]
    room = needed(study, monkeypatch)
    monkeypatch.setattr(device_memory, "free_bytes", lambda device: room)
    assert public.run(study, algorithm="fedavg", kernels="torch").cr == 4
    monkeypatch.setattr(device_memory, "free_bytes", lambda device: room - 1)
    with pytest.raises(UserError, match=r"^samples take [\d.]+ MB on the device, which has [\d.]+ MB free for them: "):
        public.run(study, algorithm="fedavg", kernels="torch")


def test_dense_samples_take_the_bytes_that_are_counted(monkeypatch):
    made = []
    plain = DeviceHost._grouped
    monkeypatch.setattr(DeviceHost, "_grouped", lambda *args: made.append(plain(*args)) or made[-1])
    room = needed(SMALL, monkeypatch)
    assert room == sum(getattr(group.whole, name).nbytes for group in made for name in ("A", "b", "w"))


def test_ranks_that_share_a_card_share_what_is_free(monkeypatch):
    card = torch.device("cuda", 1)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (1000, 2000))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert free_bytes(card) == FILLED * 1000
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5")
    assert free_bytes(card) == int(FILLED * 1000 / 3)
    assert free_bytes(CPU) is None
