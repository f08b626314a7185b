"""Runs whose local steps are all in one launch, on PyTorch's CPU and in the simulator: they have numpy's results."""

import numpy as np
import pytest
import torch

import mpifed as public
from mpifed.algorithms.launched.choice import KINDS, SOLVING, launched
from mpifed.core.arrays import on
from mpifed.core.errors import UserError
from mpifed.data.base import Data
from mpifed.data.blocks import Block, weights
from mpifed.data.cuda.block import CudaBlock
from mpifed.data.cuda.launch import Kernels
from mpifed.federation import device_host
from mpifed.federation.device_host import DeviceHost
from mpifed.federation.local import Local
from mpifed.federation.participation.selection import Uniform
from mpifed.federation.setup import LAUNCHED, Setup
from mpifed.problems.base import Problem
from tests.data.cuda.simulated.test_runs import CPU, HALF, LINREG, STUDIES
from tests.helpers.algorithm_runs import Run, build

pytestmark = pytest.mark.usefixtures("fewest_threads")
OWN = {"name": "sqrt-samples", "a": 0.003}  # a step size for each client
FULL = {"batch_size": 0, "epochs": 2, "lr": 0.05}
PARTIAL = {  # clients of one block with time for one step or two
    "data": LINREG | {"least": 5, "most": 8},
    "system": {"speed": 10.0, "deadline": 1.2, "partial": True},
    "selection": "all",
}
METHODS = {  # and settings that change what a launch is told
    "ditto": {"inner": 2, "lr": 0.05, "lam": 0.5, "k0": 2},
    "fedavg": {"k0": 3},
    "fedbuff": {"k0": 3, "lr": 0.05},
    "feddyn": {"k0": 3, "alpha": 0.5},
    "fednova": {"epochs": 3, "step": OWN},
    "fedopt": {"k0": 3, "server": "fedexp"},
    "fedprox": {"k0": 2, "inner": 2, "mu": 0.7, "begin": "own", "scale": "1/m"},
    "local-gd": {"k0": 3},
    "proxskip": {"p": 0.4},
    "scaffold": {"k0": 3, "step": OWN},
    "fedadmm-deep": FULL | {"rho": 0.5},
    "flame": FULL | {"center": "local"},
    "pfedme": FULL,
    "dgd": {"order": "adapt-combine", "k0": 3},
    "lt-admm": {"tau": 3},
    "accfeddcd": {"solver": {"name": "gd", "steps": 3}},
    "ad-admm": {"solver": {"name": "gd", "steps": 3}},
    "feddcd": {"solver": {"name": "sgd", "batch_size": 0, "epochs": 3, "lr": 0.05}},
}
GRAPHS = ("dgd", "lt-admm")
CONVEX = ("accfeddcd", "feddcd")  # for strongly convex f_i
USUAL = [(name, "logistic" if name in CONVEX else "least squares", {}) for name in METHODS]
OTHERS = [  # further problems and settings of a study
    ("fedavg", "least squares", PARTIAL),
    ("fednova", "least squares", PARTIAL),
    ("fedavg", "softmax", {"objective": {"weights": "samples"}}),
    ("scaffold", "non-convex logistic", {}),
    ("feddyn", "softmax without bias", {}),
    ("fedprox", "softmax", {"asynchronous": {"arrivals": 2}}),
    ("flame", "logistic", {}),
    ("ad-admm", "logistic", {}),
]


@pytest.fixture
def launches(no_gpu, monkeypatch):
    """How many launches of each kind there were, and how many γ of 0."""
    counted = {"steps": 0, "gradients": 0, "rests": 0}

    def counting(name):
        launch = getattr(Kernels, name)

        def call(self, *args, **named):
            counted[name] += 1
            counted["rests"] += int((np.asarray(args[2]) == 0).sum()) if name == "steps" else 0
            return launch(self, *args, **named)

        monkeypatch.setattr(Kernels, name, call)

    counting("steps")
    counting("gradients")
    return counted


def table(method, problem, more):
    """The study of a method on a problem."""
    place = {"graph": "ring"} if method in GRAPHS else {"selection": HALF}
    if "asynchronous" in more:
        place = {"system": {"speed": {"name": "uniform", "low": 50.0, "high": 200.0}}}
    return STUDIES[problem] | {"algorithm": {"name": method} | METHODS[method], "rounds": 2} | place | more


def test_every_method_that_has_them_is_here():
    assert METHODS.keys() == {kind.label() for kind in (*KINDS, *SOLVING)}


@pytest.mark.parametrize(("method", "problem", "more"), [*USUAL, *OTHERS])
def test_have_the_results_of_steps_one_after_the_other(method, problem, more, launches):
    study = table(method, problem, more)
    here = public.run(study, kernels="numpy")
    assert not launches["steps"]
    there = public.run(study, kernels="cuda")
    assert launches["steps"]
    np.testing.assert_allclose(there.x, here.x, 1e-12, 1e-12)
    np.testing.assert_allclose(there.rounds["objective"], here.rounds["objective"], 1e-12, 1e-13)
    assert here.attrs.get("local_steps") is None
    assert there.attrs["local_steps"] == "in one launch"
    assert bool(launches["rests"]) == (more is PARTIAL)


def test_a_round_is_one_launch_for_a_block_of_clients(launches):
    study = STUDIES["logistic"] | {"algorithm": {"name": "fedavg", "k0": 7}, "rounds": 3, "selection": "all"}
    public.run(study | {"rounds": 0}, kernels="cuda")
    blocks = launches["gradients"]  # those of one evaluation
    public.run(study, kernels="cuda")
    assert (launches["steps"], launches["gradients"]) == (3 * blocks, 5 * blocks)


def test_no_bit_depends_on_what_stays_on_the_device(launches):
    data = STUDIES["least squares"]["data"] | {"clients": 8, "least": 4, "most": 4}
    study = table("scaffold", "least squares", {"data": data, "selection": {"name": "uniform", "count": 2}})
    whole = public.run(study, kernels="cuda")
    with pytest.raises(UserError, match=r"so it must be \d+ or more$") as error:
        public.run(study, kernels="cuda", device_bytes=1)
    part = public.run(study, kernels="cuda", device_bytes=int(str(error.value).split()[-3]))
    assert "is copied in every round" in part.attrs["notes"]
    assert part.attrs["local_steps"] == "in one launch"
    assert part.x.tobytes() == whole.x.tobytes()


@pytest.mark.parametrize("options", [{"optimizer": "adam"}, {"batch_size": 2}, {"optimizer": {"clip": 1.0}}])
def test_other_local_steps_are_taken_one_after_the_other(options, launches):
    study = STUDIES["logistic"] | {"algorithm": {"name": "fedavg", "k0": 2} | options, "rounds": 1}
    there = public.run(study, kernels="cuda")
    assert launches["gradients"]
    assert not launches["steps"]
    assert "local_steps" not in there.attrs
    np.testing.assert_allclose(there.x, public.run(study, kernels="numpy").x, 1e-12, 1e-12)


def test_clients_with_factors_of_their_own_take_steps_one_after_the_other(launches):
    """FedDyn is given m p_i f_i in place of f_i."""
    study = table("feddyn", "logistic", {"objective": {"weights": "samples"}})
    there = public.run(study, kernels="cuda")
    assert not launches["steps"]
    np.testing.assert_allclose(there.x, public.run(study, kernels="numpy").x, 1e-12, 1e-12)


@pytest.mark.parametrize("method", ["fedprox", "scaffold"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_have_the_same_bits_on_one_host_and_on_three(method, dtype, monkeypatch):
    monkeypatch.setattr(device_host, "FEW", 2)  # more would take long
    data = Data.build(LINREG, "data").load(0, dtype)

    def host(setup, *place):
        made = DeviceHost(setup._replace(kernels=LAUNCHED), *place, CPU, 3)
        made.use(launched(setup.algorithm))
        return made

    algorithm = build(method, METHODS[method])
    runs = [
        Run(algorithm, data=data, cuts=cuts, dtype=dtype, selection=Uniform(count=3), host=host)
        for cuts in ((0, 4), (0, 1, 2, 4))
    ]
    one, three = (run.rounds(2) for run in runs)
    assert one.dtype == dtype
    assert np.abs(one[-1]).max() > 0
    np.testing.assert_array_equal(one, three, strict=True)


@pytest.mark.parametrize("problem", [{"name": "nonconvex-logistic", "mu": 0.3}, {"name": "softmax", "lam": 0.2}])
def test_a_client_has_the_bits_alone_that_it_has_among_others_and_no_sample_is_copied(problem):
    problem = Problem.build(problem, "problem")
    rng = np.random.default_rng(0)
    d = np.array([4, 1, 3, 2])
    A = rng.standard_normal((4, 4, 3))
    b = rng.integers(0, 2, (4, 4)).astype(float)
    whole = CudaBlock.moved([Block(A, b, d, 3, weights(d, 4, "float64"))], 4, on(CPU))
    algorithm = launched(build("fedprox", {"k0": 2, "inner": 2, "mu": 0.5, "step": OWN}))
    x = torch.tensor(rng.standard_normal(8 if problem.label() == "softmax" else 3))
    study = Setup(problem, algorithm, 0, 4, np.zeros(len(x)))

    def steps(block, ids):
        f = Local(block, study, ids, (1, 0))
        return algorithm.update(f, algorithm.join(f), x, 0)[1]

    W = steps(whole, np.arange(4))
    assert torch.isfinite(W).all()
    for rows in ([2], [3, 0], [1, 1, 2]):
        part = whole.part(np.array(rows))
        found = steps(part, np.array(rows))
        assert "A" not in vars(part)
        assert torch.equal(found, W[rows])
