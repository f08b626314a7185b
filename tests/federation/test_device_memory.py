"""A device that has no room for all samples and states: the rest is copied there in turn, and no bit changes."""

import weakref

import numpy as np
import pytest

import mpifed as public
from mpifed.core.errors import UserError
from tests.experiment.conftest import run
from tests.federation.test_device_runs import FEW, SMALL, STUDIES

torch = pytest.importorskip("torch")
from mpifed.core.arrays import on  # noqa: E402
from mpifed.data import device_block  # noqa: E402
from mpifed.federation import device_memory  # noqa: E402
from mpifed.federation.device_memory import DeviceMemory, WaitingRows  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
EVEN = {"clients": 24, "least": 20, "most": 20}
LINREG = {"name": "linreg-noniid"} | EVEN
CLASSES = {"name": "synthetic", "features": 8, "classes": 3} | EVEN
TESTED = {"data": CLASSES | {"test": 0.3}, "problem": "softmax"}
BATCHES = {"algorithm": {"name": "scaffold", "batch_size": 5}}
GRAM = {"algorithm": {"name": "fedgia", "H": "gram"}}
BASE = {"algorithm": "fedavg", "kernels": "torch", "problem": "least-squares", "rounds": 4}
NAMES = (
    "masks",
    "asynchronous, last uploads",
    "personal",
    "scores",
    "network",
    "compressed last uploads",
    "partial work",
)
RUNS = {name: STUDIES[name] for name in NAMES}
RUNS |= {"personal": RUNS["personal"] | {"data": CLASSES}, "tests": TESTED, "mini-batches": BATCHES, "inverses": GRAM}
WORDS = [f"data.{key}={value}" for key, value in LINREG.items()]
WORDS += ["problem=least-squares", "selection.share=0.4", "algorithm=scaffold", "kernels=torch"]
NOTE = "what does not fit on the device stays in the memory of the CPU and is copied in every round: "


def least(study):
    """The fewest bytes that a run can be given."""
    with pytest.raises(
        UserError, match=r"^device_bytes = 1 is wrong: samples take .* so it must be \d+ or more$"
    ) as error:
        public.run(study, device_bytes=1)
    return int(str(error.value).split()[-3])


@pytest.mark.parametrize("name", RUNS)
def test_no_bit_depends_on_what_stays_on_the_device(name):
    study = BASE | {"data": LINREG} | RUNS[name]
    if "asynchronous" not in study and study["data"] in (LINREG, CLASSES):
        study |= {"selection": FEW}
    whole = public.run(study)
    few = least(study)
    for size in (3 * few // 2, few):
        part = public.run(study, device_bytes=size)
        assert part.x.tobytes() == whole.x.tobytes()
        for column in ("objective", "grad_norm_sq", "accuracy"):
            if column in whole.rounds:
                assert part.rounds[column].tobytes() == whole.rounds[column].tobytes()
    assert NOTE in part.attrs["notes"]


@pytest.mark.parametrize("more", [{}, TESTED])
def test_what_is_copied_is_never_more_than_the_limit_and_is_freed(more, monkeypatch):
    """Copies are made here, on the CPU too, and their bytes are counted until they are freed.

    Training samples of clients without test samples are copied once more for their accuracy.
    """
    there = {"now": 0, "most": 0, "all": 0}

    def copied(tensor, device):
        made = tensor.clone()
        size = made.nbytes if made.ndim > 1 else 0  # numbers of samples are on the device anyway
        there["now"] += size
        there["all"] += size
        there["most"] = max(there["most"], there["now"])
        weakref.finalize(made, lambda: there.update(now=there["now"] - size))
        return made

    study = BASE | {"data": LINREG, "selection": FEW} | more
    few = least(study)
    monkeypatch.setattr(device_block, "sent", copied)
    public.run(study, device_bytes=few)
    assert 0 < there["most"] <= (2 * few if more else few)
    assert there["all"] > 3 * few
    assert there["now"] == 0


def test_samples_stay_before_states_and_states_as_far_as_there_is_room():
    state = [np.ones((10, 4)), np.ones((10, 2))]
    memory = DeviceMemory(CPU, 1000, True)
    memory.samples = 800
    kinds = [type(field).__name__ for field in memory.rows(state)]
    assert kinds == ["WaitingRows", "DeviceRows"]
    assert memory.told() == "0.0 of 0.0 MB of state"
    assert [type(field).__name__ for field in DeviceMemory(CPU, None, False).rows(state)] == ["DeviceRows"] * 2


def test_rows_that_wait_are_copied_when_they_are_used_and_written_back(monkeypatch):
    sent = []
    monkeypatch.setattr(device_memory, "sent", lambda tensor, device: sent.append(len(tensor)) or tensor.clone())
    rows = WaitingRows(np.arange(12.0).reshape(6, 2), on(CPU))
    picked = rows[np.array([1, 4])]
    assert not sent
    assert picked.there().tolist() == [[2, 3], [8, 9]]
    assert sent == [2]
    copy = rows.copy()
    rows[np.array([1, 4])] = torch.zeros(2, 2)
    assert np.asarray(rows)[:, 0].tolist() == [0, 0, 4, 6, 0, 10]
    assert np.asarray(copy)[:, 0].tolist() == [0, 2, 4, 6, 8, 10]


def test_memory_that_is_copied_to_a_gpu_is_pinned(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "zeros", lambda *_, pin_memory, **__: asked.append(pin_memory))
    card = on(torch.device("cuda", 0))
    device_block.zeros((2, 3), torch.float64, card, False)
    device_block.zeros((2, 3), torch.float64, on(CPU), False)
    assert asked == [True, False]


def test_a_gpu_that_is_full_is_refused_with_its_bytes(monkeypatch):
    monkeypatch.setattr("mpifed.federation.device_host.free_bytes", lambda device: 500)
    with pytest.raises(UserError, match=r"at a time [\d,]+ bytes, but the device has 500 bytes free for them: take"):
        public.run(SMALL, algorithm="fedavg", kernels="torch")


def test_ranks_that_share_a_card_share_what_is_free(monkeypatch):
    from mpifed.problems.torch_device import FILLED, free_bytes

    card = torch.device("cuda", 1)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (1000, 2000))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert free_bytes(card) == FILLED * 1000
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5")
    assert free_bytes(card) == int(FILLED * 1000 / 3)
    assert free_bytes(CPU) is None


def test_a_run_may_be_resumed_with_another_limit(tmp_path):
    study = [*WORDS, "stop.gradient=0", "-q"]
    limit = least(BASE | {"data": LINREG, "selection": FEW})
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    run("run", *study, "rounds=6", "-o", whole)
    run("run", *study, "rounds=3", f"device_bytes={limit}", "-o", part)
    assert NOTE in run("resume", part, "rounds=5").err
    assert NOTE not in run("resume", part, "rounds=6", "device_bytes=10_000_000_000").err
    assert public.load(part).x.tobytes() == public.load(whole).x.tobytes()


def test_hosts_of_several_ranks_have_a_limit_each(tmp_path):
    study = [*WORDS, "rounds=3", "-q"]
    limit = least(BASE | {"data": LINREG, "selection": FEW})
    one, three = tmp_path / "one.h5", tmp_path / "three.h5"
    run("run", *study, "-o", one)
    run("run", *study, f"device_bytes={limit}", "-o", three, ranks=3)
    assert public.load(three).x.tobytes() == public.load(one).x.tobytes()
