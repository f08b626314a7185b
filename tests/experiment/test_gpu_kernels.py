"""Whether kernels of the extra cuda compute a run on a GPU: what has them, what is recorded, and what resume keeps.

There is no GPU here: PyTorch's CPU is in its place, and nothing is launched.
"""

import io
from types import SimpleNamespace

import numpy as np
import pytest

import mpifed as public
from mpifed.data.cuda import device
from mpifed.experiment import gpu_kernels, hosts
from mpifed.experiment.config import experiment
from mpifed.experiment.job import Job
from mpifed.experiment.kernels import choose
from mpifed.experiment.progress import Progress
from mpifed.federation import device_host
from mpifed.federation.setup import LAUNCHED
from mpifed.mpi.world import World
from mpifed.problems import torch_device
from mpifed.problems.base import Problem
from mpifed.problems.softmax import Softmax
from mpifed.report.summary import show
from mpifed.results.result import load
from tests.experiment.conftest import run

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
GAUSSIAN = {"name": "gaussian", "clients": 5, "features": 4}
SMALL = {"data": GAUSSIAN, "problem": "logistic", "algorithm": "fedavg", "kernels": "cuda"}


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """A GPU on which numba-cuda works, as far as anyone asks."""
    monkeypatch.setattr(torch_device, "device_of", lambda *words: torch.device("cpu"))
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "none")
    monkeypatch.setattr(device, "installed", lambda: True)
    monkeypatch.setattr(device, "unready", lambda *words: None)
    monkeypatch.setattr(gpu_kernels, "version", lambda: "1.2")
    monkeypatch.setattr(device_host, "LAUNCHED", "what no run asks for")
    monkeypatch.setattr(hosts, "local_steps", lambda setup: None)


def chosen(study, world=None, data=None):
    """What is chosen for a study, and what is said."""
    stream = io.StringIO()
    job = Job(experiment(SMALL | study))
    data = job.config.data.load(0, "float64") if data is None else data
    return choose(job, World() if world is None else world, data, Progress(stream)), stream.getvalue()


class Own(Softmax, tag="own-softmax"):
    def slopes(self, Z, b):
        return 2 * super().slopes(Z, b)


PROBLEMS = {"least-squares": True, "logistic": True, "nonconvex-logistic": True, "softmax": True, "svm": False}


def test_problems_say_whether_there_are_kernels():
    found = {name: Problem.build(name, "problem").launches() for name in PROBLEMS}
    assert found == PROBLEMS
    assert not Own().launches()


@pytest.mark.parametrize("problem", ["logistic", "softmax", "svm"])
def test_what_has_no_kernels_is_left_to_pytorch(problem):
    assert chosen({"problem": problem}) == (LAUNCHED if PROBLEMS[problem] else "cuda", "")
    assert chosen({"problem": problem, "kernels": "torch"}) == ("torch", "")


@pytest.mark.parametrize(("changes", "fits"), [({}, True), ({"n": 1 << 22}, False), ({"classes": 5000}, False)])
def test_what_is_too_large_for_them_is_left_to_pytorch(changes, fits):
    data = SimpleNamespace(**{"n": 4, "classes": 10, "sizes": np.array([40, 7]), "sparse": False} | changes)
    assert chosen({"problem": "softmax"}, data=data) == (LAUNCHED if fits else "cuda", "")


def test_without_numba_cuda_pytorch_computes_alone(monkeypatch):
    monkeypatch.setattr(device, "unready", lambda *words: "numba finds no GPU")
    said = "mpifed: PyTorch alone computes on the GPU, for numba-cuda cannot be used here: numba finds no GPU\n"
    assert chosen({}) == ("cuda", said)
    monkeypatch.setattr(device, "installed", lambda: False)
    assert chosen({}) == ("cuda", "")


@pytest.mark.parametrize(("other", "kernels"), [(None, LAUNCHED), ("numba finds no GPU", "cuda")])
def test_all_ranks_launch_or_none_does(other, kernels):
    class Rank(World):
        rank, size = 1, 3
        rest = iter([None, None, other])  # what another rank says to each question: a GPU, resumed, numba-cuda

        def agree(self, mistake):
            return mistake or next(self.rest)

        def share(self, value):
            return "auto"

    assert chosen({}, Rank()) == (kernels, "")


def test_a_run_keeps_its_kernels_when_it_is_resumed(tmp_path, monkeypatch):
    """Whatever is installed by then; where numba-cuda is gone it says what to do."""
    plain, launched = tmp_path / "plain.h5", tmp_path / "launched.h5"
    words = ["data=gaussian", "data.clients=5", "problem=logistic", "algorithm=fedavg", "kernels=cuda", "rounds=2"]
    words += ["checkpoint.keep=true", "-q", "-o"]
    run("run", *words, launched)
    with monkeypatch.context() as patch:
        patch.setattr(device, "installed", lambda: False)
        run("run", *words, plain)
        error = run("resume", launched, "rounds=4", "-q", code=2).err
        keeps = f"mpifed: {launched} began with kernels of numba-cuda and keeps them when it is resumed"
        assert error == f"{keeps}: pip install 'mpifed[cuda]'\n"
        patch.setattr(device, "installed", lambda: True)
        patch.setattr(device, "unready", lambda *words: "numba finds no GPU")
        error = run("resume", launched, "rounds=4", "-q", code=2).err
        assert error == f"{keeps}, which cannot be used here: numba finds no GPU\n"
    run("resume", plain, "rounds=4", "-q")
    run("resume", launched, "rounds=4", "-q")
    found = [load(path).attrs for path in (plain, launched)]
    assert [attrs["kernels"] for attrs in found] == ["cuda", "cuda"]
    assert [attrs.get("numba_cuda") for attrs in found] == [None, "1.2"]


@pytest.mark.parametrize(("options", "told"), [({}, ["in", "one", "launch"]), ({"batch_size": 5}, None)])
def test_whether_local_steps_are_in_one_launch_is_recorded_and_shown(options, told):
    result = public.run(SMALL, algorithm={"name": "fedavg"} | options, rounds=1)
    assert result.attrs.get("local_steps") == (told and " ".join(told))
    lines = [line.split() for line in show(result).splitlines()]
    assert [line[-3:] for line in lines if line[-5:-3] == ["local", "steps"]] == ([told] if told else [])


@pytest.mark.parametrize(("options", "more"), [({}, device.STEPS), ({"optimizer": "adam"}, ())])
def test_the_kernels_of_steps_are_compiled_before_round_one_where_they_are_needed(options, more, monkeypatch):
    asked = []
    monkeypatch.setattr(device, "unready", lambda number, index, kernels: asked.append((number, *kernels)))
    assert chosen({"algorithm": {"name": "fedavg"} | options})[0] == LAUNCHED
    assert asked == [("float64", *device.RUNS, *more)]
