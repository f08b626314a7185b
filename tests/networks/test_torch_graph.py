"""Graphs of traced passes: fewer operations and arrays, the same bits."""

import pytest

from mpifed.networks import torch_replay
from tests.helpers.torch_cases import torch

pytestmark = pytest.mark.torch
aten = torch.ops.aten


def traced(function, *arrays):
    """The graph module of a function, improved, and the names of its operations."""
    from torch.fx.experimental.proxy_tensor import make_fx

    made = make_fx(function)(*arrays)
    before = [array.clone() for array in arrays]
    expected = function(*before)
    torch_replay.overwrite(made.graph, aten)
    made.recompile()
    for _ in range(2):
        assert all(torch.equal(one, other) for one, other in zip(made(*arrays), expected, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(arrays, before, strict=True))
    return [
        getattr(node.target, "__name__", "").split(".")[0] for node in made.graph.nodes if node.op == "call_function"
    ]


X, Y = torch.randn(3, 4), torch.randn(3, 4)


def test_a_sum_takes_the_place_of_an_argument_that_nothing_reads_afterwards_and_that_is_not_given():
    assert traced(lambda x, y: (torch.relu(x * y + y),), X, Y) == ["mul", "add_", "relu_"]
    assert traced(lambda x, y: (x + x * y,), X, Y) == ["mul", "add_"]


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, y: (x + y,), id="what is given"),
        pytest.param(lambda x, y: (x.view(12) + y.view(12),), id="a view of what is given"),
        pytest.param(lambda x, y: ((s := x.exp()) + y, s), id="what is found"),
        pytest.param(lambda x, y: ((s := x.exp()) + y, s.sin()), id="what is read later"),
        pytest.param(lambda x, y: ((s := x.exp()) + y, s.view(12).sin()), id="what is read later as a view"),
        pytest.param(lambda x, y: ((s := (x @ x.mT).exp()) + s.mT, y.exp()), id="what is read in another order"),
        pytest.param(lambda x, y: (x.sum(0, keepdim=True) + y,), id="a smaller array"),
        pytest.param(lambda x, y: ((s := x.exp().split(1))[0] + y[:1], s[1].sin()), id="part of what is read later"),
    ],
)
def test_no_other_array_is_overwritten(function):
    names = traced(function, X, Y)
    assert "add" in names
    assert not any(name.endswith("_") for name in names)
