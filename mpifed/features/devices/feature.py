"""Kernels on a device: samples and state of clients are tensors of PyTorch."""

from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature


class Devices(Feature):
    """Samples and state as tensors on a device."""

    # Tensors hold the same numbers and sums run along the same tree. What cannot compute there does not keep it.
    keeps = Keeps.EVERYTHING
