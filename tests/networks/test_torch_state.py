"""Networks from a file of parameters, and the final model back as a module."""

import resource
import sys
from types import ModuleType

import h5py
import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from tests.helpers.torch_cases import C, N, at, dataset, network, tables, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn = torch.nn


class Net(nn.Sequential):
    """A frozen layer, batch normalisation that is trained, a head."""

    def __init__(self, seed=None):
        super().__init__(nn.Linear(N, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, C))
        self[0].requires_grad_(False)
        if seed is not None:
            for p in self.parameters():
                p.data = torch.full_like(p, seed)


def saved(folder, module, name="net.pt"):
    torch.save(module.state_dict() if isinstance(module, nn.Module) else module, folder / name)
    return str(folder / name)


def problem(path=None, module="Net", **options):
    return network(f"{__name__}:{module}", **({} if path is None else {"pretrained": path}), **options)


def study(folder, problem, **settings):
    algorithm = {"name": "fedavg", "batch_size": 4, "step": 0.1}
    given = {"data": tables(folder), "problem": problem, "algorithm": algorithm, "rounds": 2}
    return given | {"dtype": "float32"} | settings


OWN = {"name": "torch", "module": f"{__name__}:Net"}
IMAGES = {"name": "images", "clients": 2, "samples": 6, "size": 12, "channels": 1}
CNN = {"name": "cnn", "batched": False}  # groups have to be rehearsed
CONVOLUTIONS = {"data": IMAGES, "problem": CNN, "algorithm": {"name": "fedavg", "step": 0.1}}


@pytest.mark.parametrize("keep_vars", [False, True])
def test_a_run_starts_from_the_parameters_in_a_file_and_its_frozen_ones_are_those_of_the_file(tmp_path, keep_vars):
    f = problem(saved(tmp_path, Net(seed=0.25).state_dict(keep_vars=keep_vars)))
    data = dataset(dtype="float64")
    start = f.initial(data, 5)
    assert np.array_equal(start, np.full(6 + 6 + 6 * C + C, 0.25))
    assert np.array_equal(f.module_of(data.n, start)[0].weight.numpy(), np.full((6, N), 0.25))


@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
def test_a_module_that_a_run_ends_with_is_where_another_one_begins(tmp_path, dtype):
    """The round trip: run, save, run from there; also a lazy layer, which gets its sizes from the data."""
    lazy = {"name": "torch", "module": "torch.nn:LazyLinear", "arguments": {"out_features": C}}
    cases = {"net": study(tmp_path, OWN), "lazy": study(tmp_path, lazy), "cnn": CONVOLUTIONS}
    for name, given in cases.items():
        first = package.run(given, dtype=dtype, rounds=1, progress=False)
        path = saved(tmp_path, first.module(), f"{name}.pt")
        again = package.run(given, {"problem.pretrained": path}, dtype=dtype, rounds=0, progress=False)
        assert again.x.tobytes() == first.x.tobytes()
        assert again.rounds["objective"][0] == first.rounds["objective"][-1]


def test_the_module_of_a_result_has_the_frozen_parameters_of_the_run_and_gives_the_scores_of_its_model(tmp_path):
    result = package.run(study(tmp_path, OWN), progress=False, path=tmp_path / "out.h5")
    module = package.load(tmp_path / "out.h5").module()
    torch.random.manual_seed(0)
    mine = at(Net(), result.x.astype(float)).float()  # frozen random parameters are drawn with the seed 0
    samples = torch.randn(8, N)
    assert not module.training
    assert torch.equal(module[0].weight, mine[0].weight)
    assert torch.allclose(module(samples), mine(samples), rtol=1e-5)
    assert module[3].weight.dtype == torch.float32


def test_the_personal_model_of_a_client_is_a_module_too(tmp_path):
    algorithm = {"name": "flame", "lr": 0.1, "batch_size": 4}
    settings = {"algorithm": algorithm, "record": {"personal": True}, "rounds": 1}
    result = package.run(study(tmp_path, OWN, **settings), progress=False)
    found = torch.cat([p.ravel() for p in result.module(client=3).parameters() if p.requires_grad])
    assert np.array_equal(found.detach().numpy(), result.personal[3])
    with pytest.raises(UserError, match=r"^client = 4 is wrong: there are the clients 0 to 3$"):
        result.module(client=4)


def test_a_file_that_says_far_more_features_than_its_model_has_is_refused_before_a_network_is_made(tmp_path):
    package.run(CONVOLUTIONS, rounds=0, progress=False, path=tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5", "r+") as file:
        file.attrs["features"] = 10**8
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=r"out\.h5 is none of its problem, cnn: a network for 100000000 features has"):
        package.load(tmp_path / "out.h5").module()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_what_no_module_can_be_made_of_is_refused(tmp_path):
    plain = package.run({"data.clients": 4, "data.features": 3}, rounds=0, progress=False)
    with pytest.raises(UserError, match=r"^module\(\) is for networks of PyTorch, .*the model of least-squares is the"):
        plain.module()
    net = package.run(study(tmp_path, OWN, rounds=0), progress=False)
    with pytest.raises(UserError, match=r"^the result has no personal models: .* record\.personal = true$"):
        net.module(client=1)


def changed(**others):
    found = {name: value for name, value in Net().state_dict().items() if name not in others}
    return found | {name: value for name, value in others.items() if value is not None}


WRONG = {
    "nothing": (None, r"there is no such file"),
    "a module": (Net, r"it is no file of tensors alone \(UnpicklingError: .*\): save it with torch\.save\(module.*"),
    "a number": (lambda: 3, r"it holds a int, and not tensors by their names: .*"),
    "a checkpoint": (lambda: {"epoch": 3, "model": Net().state_dict()}, r"it holds epoch, model, and not tensors .*"),
    "less": (lambda: changed(**{"3.bias": None}), r"it lacks 3\.bias of the network"),
    "more": (lambda: changed(head=torch.ones(1)), r"it has head, which the network does not have"),
    "another shape": (lambda: changed(**{"3.weight": torch.ones(4, 6)}), r"its 3\.weight has shape \[4, 6\], and .*"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(tmp_path, name):
    make, sentence = WRONG[name]
    if make is not None:
        torch.save(make(), tmp_path / "net.pt")
    with pytest.raises(UserError, match=rf'^problem\.pretrained = ".*net\.pt" is wrong: {sentence}$'):
        problem(str(tmp_path / "net.pt")).initial(dataset(), 0)


def test_running_statistics_of_trained_normalisation_may_be_absent(tmp_path):
    keys = [f"1.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")]
    path = saved(tmp_path, changed(**dict.fromkeys(keys)))
    assert len(problem(path).initial(dataset(), 0)) == 6 + 6 + 6 * C + C


def test_a_file_of_safetensors_is_read_where_that_is_installed(tmp_path, monkeypatch):
    (tmp_path / "net.safetensors").write_bytes(b"")
    f = problem(str(tmp_path / "net.safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(UserError, match=r"it needs safetensors: pip install safetensors$"):
        f.initial(dataset(), 0)
    monkeypatch.setitem(sys.modules, "safetensors", ModuleType("safetensors"))
    library = ModuleType("safetensors.torch")
    library.load_file = lambda file: Net(seed=2.0).state_dict()
    monkeypatch.setitem(sys.modules, "safetensors.torch", library)
    assert np.array_equal(f.initial(dataset(), 0), np.full(6 + 6 + 6 * C + C, 2.0))


def test_a_path_in_an_experiment_file_is_beside_it(tmp_path):
    (tmp_path / "studies").mkdir()
    saved(tmp_path / "studies", Net(seed=0.5))
    (tmp_path / "studies" / "net.toml").write_text(
        f'rounds = 0\n[data]\nname = "file"\npath = "{tables(tmp_path)["path"]}"\n'
        f'[problem]\nname = "torch"\nmodule = "{__name__}:Net"\npretrained = "net.pt"\n[algorithm]\nname = "fedavg"\n'
    )
    assert set(package.run(tmp_path / "studies" / "net.toml", progress=False).x) == {0.5}
