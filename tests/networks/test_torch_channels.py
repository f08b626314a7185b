"""Convolutions and poolings of groups with channels last: the numbers of torch's own functions, and where used."""

import numpy as np
import pytest

from mpifed.networks import torch_channels
from tests.helpers.torch_cases import N, dataset, local, network, torch
from tests.networks.conftest import slow

pytestmark = pytest.mark.torch
nn, F = torch.nn, torch.nn.functional
CLIENTS = 5


def images(*layers):
    """Every way to write the arguments of the functions."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=(1, 2), bias=False),
        nn.ReLU(),
        nn.Conv2d(4, 6, 2, dilation=(1, 2), groups=2),
        nn.MaxPool2d(2, stride=1, padding=1),
        nn.GroupNorm(3, 6, eps=0.1),
        nn.Conv2d(6, 3, 3, padding="same"),
        nn.MaxPool2d((3, 2), ceil_mode=True),
        *layers,
        nn.Flatten(),
        nn.Linear(18, 4),
        nn.Linear(4, 2, bias=False),
    )


def convolved(channels, behind):
    return nn.Sequential(nn.Unflatten(1, (1, N, 1)), nn.Conv2d(1, channels, (3, 1)), behind, nn.Flatten())


def pooled(channels):
    return convolved(channels, nn.MaxPool2d((2, 1)))


def normalised():
    """Torch's function that normalises groups takes channels last nowhere under vmap."""
    return convolved(4, Functional())


class Functional(nn.Module):
    def forward(self, samples):
        return F.group_norm(samples, 2)


def gradients(module, replaced, frozen=False):
    """Those of the sum of squares by parameters and samples, for each of some clients."""
    torch.manual_seed(0)
    samples = torch.randn(CLIENTS, 3, 2, 11, 9, requires_grad=True)
    shapes = {name: (*(() if frozen else (CLIENTS,)), *p.shape) for name, p in module.named_parameters()}
    P = {name: torch.randn(shape, requires_grad=True) for name, shape in shapes.items()}

    def loss(P, samples):
        with torch_channels.channels_last(replaced):
            return torch.func.functional_call(module, P, (samples,)).square().sum()

    losses = torch.func.vmap(loss, (None if frozen else 0, 0))(P, samples)
    return torch.autograd.grad(losses.sum(), [*P.values(), samples])


@pytest.mark.parametrize("frozen", [False, True], ids=["own weights", "the same weights"])
def test_numbers_are_those_of_torch_for_every_client(frozen):
    mine, theirs = (gradients(images(), replaced, frozen) for replaced in (True, False))
    for one, other in zip(mine, theirs, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-3 * float(other.abs().max()))
    assert not all(torch.equal(one, other) for one, other in zip(mine, theirs, strict=True))


def test_arguments_by_name_are_those_by_place():
    x, w, b = torch.randn(2, 4, 8, 8), torch.randn(6, 2, 3, 3), torch.randn(6)
    plain = F.conv2d(x, w, b, padding=1, groups=2)
    with torch_channels.channels_last(True):
        found = [F.conv2d(x, w, b, 1, 1, 1, 2), F.conv2d(input=x, weight=w, bias=b, groups=2, padding=1)]
        pooled = [F.max_pool2d(x, 3, 2), torch.max_pool2d(x, kernel_size=3, stride=2)]
        values, places = F.max_pool2d(x, 2, return_indices=True)
        w, b = torch.randn(4), torch.randn(4)
        normed = [F.group_norm(x, 2, w, b), F.group_norm(input=x, num_groups=2, weight=w, bias=b)]
        averaged = [F.adaptive_avg_pool2d(x, sides) for sides in (1, (1, 1), (None, 1))]
    assert torch.equal(*found)
    assert torch.allclose(found[0], plain, rtol=1e-4, atol=1e-5)
    assert torch.equal(*pooled)
    assert torch.equal(pooled[0], F.max_pool2d(x, 3, 2))
    assert values.shape == places.shape
    assert torch.equal(*normed)
    assert torch.allclose(normed[0], F.group_norm(x, 2, w, b), rtol=1e-4, atol=1e-5)
    assert [part.shape for part in averaged] == [(2, 4, 1, 1), (2, 4, 1, 1), (2, 4, 8, 1)]
    assert torch.equal(averaged[0], F.adaptive_avg_pool2d(x, 1))


def groups(name, **arguments):
    problem = network(f"{__name__}:{name}", loss=f"{__name__}:squares", arguments=arguments)
    f = local(problem, dataset(dtype="float32"))
    return problem, f, problem._built(f.block.n, f.n)[1]


def squares(scores, targets):
    return (scores.flatten(1) - targets[:, None]).square().sum(1)


def same_alone(problem, f):
    """Whether a client has the same bits in groups of others."""
    X = np.random.default_rng(3).standard_normal((len(f), f.n)).astype("float32")
    whole = problem.grad(f.block, X)
    subsets = (np.array([2]), np.array([3, 0, 1]))
    return all(problem.grad(f.block.take(rows), X[rows]).tobytes() == whole[rows].tobytes() for rows in subsets)


@pytest.mark.parametrize("channels", [slow(3), 8])
def test_a_client_has_the_same_bits_in_every_group(channels):
    problem, f, found = groups("pooled", channels=channels)
    assert torch_channels.suits(found.net)
    assert not found.first_reason(N, f.block.b.dtype)
    assert not found.without_channels
    assert same_alone(problem, f)


def test_places_that_matter_with_channels_last_are_found_by_the_rehearsal(monkeypatch):
    """As with kernels that round the channels of the first client otherwise than those of the others."""
    stacked = torch_channels.stack_clients

    def rounded(weights, at, c):
        whole = stacked(weights, at, c)
        whole[: len(whole) // c] *= 1 + 1e-6
        return whole

    monkeypatch.setattr(torch_channels, "stack_clients", rounded)
    problem, f, found = groups("pooled", channels=6)  # another one: networks that were built before are kept
    assert torch_channels.suits(found.net)
    assert not found.first_reason(N, f.block.b.dtype)
    assert {form.train for form in found.without_channels} == {True, False}
    assert same_alone(problem, f)


def test_what_vmap_cannot_compute_with_channels_last_is_in_groups_without():
    problem, f, found = groups("normalised")
    assert not found.first_reason(N, f.block.b.dtype)
    assert {form.train for form in found.without_channels} == {True, False}
    X = np.random.default_rng(3).standard_normal((len(f), f.n)).astype("float32")
    alone = network(f"{__name__}:normalised", loss=f"{__name__}:squares", batched=False)
    assert np.allclose(problem.grad(f.block, X), alone.grad(f.block, X), rtol=1e-3, atol=1e-3)
