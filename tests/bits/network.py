"""A network for the studies of PyTorch."""

from torch import nn


def small() -> nn.Module:
    """Two layers with dropout between them."""
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Dropout(0.2), nn.Linear(5, 3))
