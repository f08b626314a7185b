"""What computes a run is recorded, by rank too, and a run that goes on with something else says so once."""

from types import SimpleNamespace

import numpy as np
import pytest

import mpifed
from mpifed.experiment import hardware
from mpifed.experiment.hardware import hardware_changes, hardware_differences
from mpifed.experiment.rank_reports import collect_reports, report, report_tables
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.world import World
from mpifed.results.columns import RANKS
from tests.experiment.conftest import run
from tests.helpers.algorithm_runs import M, Run, build

H100 = "NVIDIA H100 80GB HBM3, CUDA 12.8"
CPU = "CPU, AVX2, 1 thread"
BEFORE = {"kernels": "cuda", "torch": "2.12.0", "device": H100, "group": 32, "blas": "openblas 0.3 Zen", "numpy": "2.0"}
OTHERWISE = "on this run is computed otherwise, and its last bits depend on that:"
SAVED = SimpleNamespace(round=7)


def said(now, before=BEFORE, saved=SAVED):
    return hardware_changes(now, SimpleNamespace(attrs=before), saved)


def test_whatever_the_last_bits_depend_on_is_in_one_sentence():
    now = {"kernels": "numpy", "torch": "2.13.0", "device": CPU, "group": 1, "blas": "openblas 0.3 Haswell"}
    (sentence,) = said(now)
    assert sentence.startswith(f"from round 8 {OTHERWISE} ")
    for part in (
        "kernels (cuda → numpy)",
        "torch (2.12.0 → 2.13.0)",
        f"device ({H100} → {CPU})",
        f"numpy (2.0 → {np.__version__})",
        "BLAS (openblas 0.3 Zen → openblas 0.3 Haswell)",
        "clients (in groups of 32 → one at a time)",
    ):
        assert part in sentence


def test_what_is_the_same_or_was_not_recorded_is_not_in_it():
    same = BEFORE | {"numpy": np.__version__}
    assert not said(same, same)
    assert said(same | {"device": CPU}, same)[0].endswith(f": device ({H100} → {CPU})")
    assert not said(same, {"kernels": "cuda"})
    assert not said(BEFORE | {"device": CPU}, same, None)
    assert said({"kernels": "compiled", "numba": "0.62"}, {"kernels": "compiled", "numba": "0.61"})[0].endswith(
        ": numba (0.61 → 0.62)"
    )


def test_ranks_on_other_devices_are_a_note_and_ranks_without_clients_have_none():
    assert not hardware_differences(["a"] * 3, ["", H100, H100])
    (note,) = hardware_differences(["a"] * 3, ["", H100, "NVIDIA A100, CUDA 12.8"])
    assert note.startswith(f"devices of PyTorch differ between the 2 ranks: {H100} on 1, NVIDIA A100, CUDA 12.8 on 1")


@pytest.mark.torch
@pytest.mark.parametrize("words", [["problem=logistic", "kernels=torch"], ["problem=cnn"]])
def test_a_run_that_goes_on_elsewhere_says_so_and_the_file_keeps_both_devices(words, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from mpifed.kernels import torch_device

    path = str(tmp_path / "run.h5")
    here = torch_device.describe_device(torch_device.choose_device("cpu"))
    data = ["data=images", "data.clients=3", "data.samples=10", "data.size=10", "data.channels=1", "data.classes=2"]
    study = [*data, *words, "algorithm=fedavg", "rounds=2", "stop.gradient=0"]
    run("run", *study, "-q", "-o", path)
    first = mpifed.load(path)
    assert first.attrs["device"] == here
    assert first.attrs["torch"] == torch_device.import_torch().__version__
    assert hardware.FIELD not in first.attrs

    monkeypatch.setattr(torch_device, "describe_device", lambda device: H100)
    sentence = f"from round 3 {OTHERWISE} device ({here} → {H100})"
    assert run("resume", path, "rounds=3").err.count(sentence) == 1
    assert mpifed.load(path).attrs["device"] == H100
    assert "otherwise" not in run("resume", path, "rounds=4").err
    result = mpifed.load(path)
    assert result.attrs[hardware.FIELD] == sentence
    assert sentence in result.attrs["notes"]

    monkeypatch.undo()
    run("resume", path, "rounds=5")
    back = f"from round 5 {OTHERWISE} device ({H100} → {here})"
    assert mpifed.load(path).attrs[hardware.FIELD].splitlines() == [sentence, back]


def test_a_rank_reports_its_clients_seconds_and_traffic_under_the_columns_of_ranks():
    run, traffic = Run(build("fedavg")), RankTraffic()
    run.rounds(2)
    traffic.count(100, 200, 3)
    traffic.shared = 4096
    found = report(run.hosts[0], traffic)
    assert set(found) == set(RANKS)
    assert (found["clients"], found["samples"]) == (M, run.data.sizes.sum())
    assert found["compute_seconds"] == run.hosts[0].computed > 0
    assert (found["mpi_calls"], found["mpi_bytes_sent"], found["mpi_bytes_received"]) == (1, 100, 200)
    assert found["mpi_messages_received"] == 3
    assert found["max_rss_bytes"] > 1 << 20
    assert found["shared_bytes"] == 4096
    assert report(None, traffic)["clients"] == 0
    ranks, clients = report_tables(*collect_reports(World(), run.hosts[0], RankTraffic()), run.data, run.fed)
    assert {len(column) for column in ranks.values()} == {1}
    assert {len(column) for column in clients.values()} == {M}
    assert np.array_equal(clients["times_selected"], run.fed.times_selected)
    assert clients["compute_seconds"].sum() > 0
