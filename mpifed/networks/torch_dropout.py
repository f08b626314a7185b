"""Dropout with masks that depend on client, step and position only, not on who is computed beside the client.

The mask of the ℓ-th layer keeps position i of a client's activation if hash(seed, ℓ, i) mod 2³² ≥ p·2³². The seed is
that of the client and the local step (``features.network_training.dropout``). All arithmetic is that of whole numbers
modulo 2⁶⁴: no result depends on the order of sums, on the device or on the number of ranks.
"""

from typing import Any

from mpifed.core.streams import FIRST, GOLDEN, SECOND, mix_bits, to_signed_64
from mpifed.kernels.torch_device import import_torch

# the fewest axes of a batch: an array with fewer is a single sample. Whole channels are kept or dropped
BATCH_NDIM = {"Dropout": None, "Dropout1d": 3, "Dropout2d": 2, "Dropout3d": 5}


class MaskedDropout:
    """The forward pass of a dropout layer, whose buffer ``seed`` holds the seed of the client and step."""

    def __init__(self, layer: Any, number: int) -> None:
        self.layer = layer
        self.number = number
        self.batch_ndim = BATCH_NDIM[type(layer).__name__]
        self.calls = 0  # in this pass of the network: a layer that is used twice has two masks

    def __call__(self, values: Any) -> Any:
        p = self.layer.p
        if not self.layer.training or not p:
            return values
        self.calls += 1
        shape = values.shape
        if self.batch_ndim is not None:
            leading = 2 if values.ndim >= self.batch_ndim else 1  # axes of samples and channels
            shape = shape[:leading] + (1,) * (values.ndim - leading)
        # not torch's dropout: its generator draws along the batch, so a mask would depend on the clients beside
        torch = import_torch()
        start = self.layer.seed + to_signed_64((self.number + 1000 * self.calls) * FIRST)
        hashed = mix_bits(start + GOLDEN * torch.arange(shape.numel(), device=values.device))
        # whole numbers of 32 bits: as floats, devices might round p differently
        mask = (hashed & 0xFFFFFFFF) >= int(p * 2**32)
        factor = 0.0 if p == 1 else 1 / (1 - p)
        return values * (mask.to(values.dtype) * factor).view(shape)


def replace_dropout(module: Any) -> dict[str, MaskedDropout]:
    """Give the dropout layers of a module such masks; return the layers by the names of their seeds."""
    torch = import_torch()
    layers: dict[str, MaskedDropout] = {}
    for name, part in module.named_modules():
        if type(part).__module__ == "torch.nn.modules.dropout" and type(part).__name__ in BATCH_NDIM:
            part.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)
            part.forward = layers[f"{name}.seed".lstrip(".")] = MaskedDropout(part, len(layers))
    return layers


def piece_seeds(seed: Any, k: int) -> Any:
    """Return the seeds for the k-th piece of the samples."""
    return seed + to_signed_64(k * SECOND)
