"""Networks in half precision: what torch.autocast computes, where, and with which bits."""

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from tests.helpers.torch_cases import C, M, N, at, dataset, local, network, point, samples, tensors, torch

pytestmark = pytest.mark.torch
nn = torch.nn


def plain():
    return nn.Sequential(nn.Linear(N, 8), nn.ReLU(), nn.Linear(8, C))


def normed():
    """Batch normalisation, which normalises test samples with the statistics of the training samples."""
    return nn.Sequential(nn.Linear(N, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, C))


def problem(module="plain", **options):
    return network(f"{__name__}:{module}", **options)


def clients(**options):
    return local(problem(**options), dataset(dtype="float32"))


def test_a_gradient_is_that_of_a_training_loop_under_autocast_with_its_loss_in_single_precision():
    f = clients(autocast="bfloat16")
    x = point(f).astype(np.float32)
    found = f.grad(x)
    assert found.dtype == np.float32
    for i in range(M):
        module = at(plain(), x.astype(float)).float()
        A, b = tensors(*samples(dataset(dtype="float32"), i))
        with torch.autocast("cpu", torch.bfloat16):
            scores = module(A)
        assert scores.dtype == torch.bfloat16
        loss = nn.functional.cross_entropy(scores.float(), b)
        wanted = torch.cat([g.ravel() for g in torch.autograd.grad(loss, list(module.parameters()))])
        assert np.linalg.norm(found[i] - wanted.numpy()) < 2e-2 * np.linalg.norm(wanted)
        assert np.isclose(f.value(x)[i], loss.item(), rtol=1e-2)


def test_the_same_bits_alone_among_others_and_for_every_run_and_other_ones_than_in_single_precision():
    f = clients(autocast="bfloat16")
    x = point(f).astype(np.float32)
    whole, single = f.grad(x), clients().grad(x)
    assert f.take(np.array([2])).grad(x).tobytes() == whole[2:3].tobytes()
    assert clients(autocast="bfloat16").grad(x).tobytes() == whole.tobytes()
    assert 1e-5 < np.linalg.norm(single - whole) / np.linalg.norm(single) < 3e-2


def test_test_samples_are_normalised_with_statistics_in_single_precision():
    f, g = (local(problem("normed", **more), dataset(dtype="float32")) for more in ({}, {"autocast": "bfloat16"}))
    x = np.abs(point(f)).astype(np.float32)
    assert np.abs(f.accuracy(x)[1] - g.accuracy(x)[1]).sum() <= 1
    assert g.accuracy(x)[2].tolist() == f.accuracy(x)[2].tolist()


def test_a_convolutional_network_is_trained_in_it():
    data = {"name": "images", "clients": 2, "samples": 10, "size": 10, "channels": 1, "classes": 2}
    algorithm = {"name": "fedavg", "batch_size": 5, "epochs": 1, "step": 0.1}
    study = {"data": data, "problem": {"name": "cnn", "autocast": "bfloat16"}, "algorithm": algorithm}
    result = package.run(study, dtype="float32", rounds=2, progress=False)
    assert result.x.dtype == np.float32
    assert result.rounds["objective"][-1] < result.rounds["objective"][0]


def test_half_precision_is_refused_with_double_precision_and_float16_on_a_cpu():
    given = {"data": {"name": "images", "clients": 2, "size": 12}, "algorithm": "fedavg", "rounds": 1}
    with pytest.raises(UserError, match=r'^problem\.autocast = "bfloat16" is wrong with dtype = "float64": '):
        package.run(given, problem={"name": "cnn", "autocast": "bfloat16"}, progress=False)
    with pytest.raises(UserError, match=r'^problem\.autocast = "float16" is wrong on a CPU: it must be "bfloat16"'):
        package.run(given, problem={"name": "cnn", "autocast": "float16"}, dtype="float32", progress=False)
