"""Dropout whose masks depend on client, step, layer and position alone."""

import pytest

from mpifed.networks import torch_layers
from tests.helpers.torch_cases import torch

pytestmark = pytest.mark.torch
nn = torch.nn


def dropped(layer, seed, shape):
    """Which numbers of ones of a shape the layer sets to zero."""
    masks = torch_layers.replace_dropout(layer)
    layer.seed = torch.tensor(seed)
    for mask in masks.values():
        mask.calls = 0
    return layer.train()(torch.ones(shape)) == 0


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_share_that_is_dropped_is_p_and_the_mean_stays(p):
    layer = nn.Dropout(p)
    struck = dropped(layer, 12345, (200, 500))
    assert abs(struck.float().mean() - p) < 0.005
    assert (struck.float().mean(0) - p).abs().max() < 0.2
    values = layer(torch.ones(200, 500))
    assert torch.allclose(values[values > 0], torch.tensor(1 / (1 - p)))


def test_masks_differ_between_seeds_layers_and_calls_and_are_the_same_again():
    network = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5))
    masks = torch_layers.replace_dropout(network).values()

    def both(seed):
        for layer, mask in zip(network, masks, strict=True):
            layer.seed = torch.tensor(seed)
            mask.calls = 0
        ones = torch.ones(64)
        return [part(ones).numpy().tobytes() for part in (*network, network[0])]

    assert len({*both(1), *both(2)}) == 6
    assert both(1) == both(1)


WHOLE = [(nn.Dropout1d, (20, 30, 4)), (nn.Dropout2d, (20, 30, 4, 4)), (nn.Dropout3d, (20, 30, 4, 4, 4))]
WHOLE += [(nn.Dropout1d, (600, 4)), (nn.Dropout2d, (20, 30, 4)), (nn.Dropout3d, (600, 4, 4, 4))]


@pytest.mark.parametrize(("kind", "shape"), WHOLE)
def test_whole_channels_are_dropped_where_the_layer_says_so(kind, shape):
    """Of a single sample too; torch reads three axes as samples, channels and a length where the layer is Dropout2d."""
    struck = dropped(kind(0.5), 7, shape).reshape(600, -1)
    assert torch.equal(struck.all(1), struck.any(1))
    assert 5 < struck[:30, 0].sum() < 25
    assert abs(struck.float().mean() - 0.5) < 0.1


def test_without_training_or_with_p_0_nothing_is_dropped_with_p_1_all_and_it_does_not_depend_on_other_samples():
    layer = nn.Dropout(0.5)
    dropped(layer, 1, (3,))
    assert torch.equal(layer.eval()(torch.ones(9)), torch.ones(9))
    assert not dropped(nn.Dropout(0.0), 1, (99,)).any()
    assert dropped(nn.Dropout(1.0), 1, (99,)).all()
    assert torch.equal(dropped(nn.Dropout(0.5), 3, (8, 10))[:5], dropped(nn.Dropout(0.5), 3, (5, 10)))
