"""Dropout with masks that are functions of a client, a step and a position, whoever is computed beside it.

The mask of the ℓ-th layer keeps position i of a client's activation where hash(seed, ℓ, i) mod 2³² ≥ p·2³². The seed is
that of the client and the local step (``federation.seeded``). All arithmetic is that of whole numbers modulo 2⁶⁴: no
result depends on the order of sums, on the device or on the number of ranks.
"""

from typing import Any

from mpifed.core.streams import FIRST, GOLDEN, SECOND, mixed, wrapped
from mpifed.kernels.torch_device import pytorch

# the fewest axes of an array of several samples; one with fewer is a single sample. Channels live or die as a whole
SEVERAL = {"Dropout": None, "Dropout1d": 3, "Dropout2d": 2, "Dropout3d": 5}


class Masked:
    """The forward pass of a dropout layer, whose buffer ``seed`` holds the seed of the client and step."""

    def __init__(self, layer: Any, number: int) -> None:
        self.layer = layer
        self.number = number
        self.several = SEVERAL[type(layer).__name__]
        self.calls = 0  # of this forward pass of the network: a layer that is used twice has two masks

    def __call__(self, values: Any) -> Any:
        p = self.layer.p
        if not self.layer.training or not p:
            return values
        self.calls += 1
        shape = values.shape
        if self.several is not None:
            own = 2 if values.ndim >= self.several else 1  # axes of samples and channels
            shape = shape[:own] + (1,) * (values.ndim - own)
        # not torch's dropout: its generator draws along the batch, so that a mask depends on who is beside a client
        torch = pytorch()
        start = self.layer.seed + wrapped((self.number + 1000 * self.calls) * FIRST)
        hashed = mixed(start + GOLDEN * torch.arange(shape.numel(), device=values.device))
        # 32 bits as a whole number: compared as floats, devices might round the share differently
        kept = (hashed & 0xFFFFFFFF) >= int(p * 2**32)
        factor = 0.0 if p == 1 else 1 / (1 - p)
        return values * (kept.to(values.dtype) * factor).view(shape)


def replace(module: Any) -> dict[str, Masked]:
    """Give the dropout layers of a module masks of this kind; the names of their seeds, and the layers."""
    torch = pytorch()
    found: dict[str, Masked] = {}
    for name, part in module.named_modules():
        if type(part).__module__ == "torch.nn.modules.dropout" and type(part).__name__ in SEVERAL:
            part.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)
            part.forward = found[f"{name}.seed".lstrip(".")] = Masked(part, len(found))
    return found


def of_piece(seed: Any, k: int) -> Any:
    """The seeds for the k-th piece of the samples."""
    return seed + wrapped(k * SECOND)
