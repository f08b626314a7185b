"""The convolutional network of section V of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated
learning via ADMM with Moreau envelope", arXiv:2311.06756 (2023)."""

import math
from typing import Annotated, Any

from msgspec import Meta

from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value
from mpifed.kernels.torch_device import import_torch
from mpifed.networks.torch_problem import TorchProblem

WIDTH = 64  # units of the hidden layer
SMALLEST = 10  # pixels a side, of which two convolutions and two poolings leave one


class CNN(TorchProblem, tag="cnn"):
    """Mean cross-entropy of conv32(3×3) – pool – conv16(3×3) – pool – dropout – 64 – C, with ReLU, + (lam/2)‖weights‖².

    No padding, so 64×64 pixels become 62, 31, 29, 14: 16·14·14 = 3136 features before the hidden layer of 64, and
    206,678 parameters for three channels and six classes. Parameters and dropout are those of the problem ``torch``.
    A sample is an image (channels, height, width), row-major; square ones of 1 or 3 channels need no ``shape``.
    Source: section V (CNN on Medical MNIST); errata.
    """

    # Clients are computed side by side and no layer mixes them.
    supports = Supports.EVERYTHING

    dropout: Annotated[float, Meta(ge=0, lt=1, description="share of features that dropout sets to zero")] = 0.2

    def sample_shape(self, n: int) -> tuple[int, ...]:
        """Return the shape (channels, height, width) of a sample."""
        shape = super().sample_shape(n)
        if self.shape is None:
            squares = [(c, math.isqrt(n // c), math.isqrt(n // c)) for c in (3, 1)]
            shape = next((square for square in squares if math.prod(square) == n), shape)
        if len(shape) != 3 or min(shape[1:]) < SMALLEST:
            raise ValueError(
                f"samples of shape {toml_value(shape)} are no images of at least {SMALLEST}×{SMALLEST} pixels; write "
                "shape = [channels, height, width] where images are not square or have neither 1 nor 3 channels"
            )
        return shape

    def classes(self, n: int, size: int) -> int:
        with import_torch().device("meta"):  # computes shapes only: n comes from a file and may be huge
            minimum = sum(p.numel() for p in self.make(n, 1).parameters())
        if size < minimum:
            raise ValueError(f"a network for {n} features has {minimum} parameters or more, and there are {size}")
        return 1 + (size - minimum) // (WIDTH + 1)

    def make(self, n: int, classes: int) -> Any:
        nn = import_torch().nn
        channels, *sides = self.sample_shape(n)
        height, width = (((side - 2) // 2 - 2) // 2 for side in sides)
        return nn.Sequential(
            nn.Conv2d(channels, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(self.dropout),
            nn.Flatten(),
            nn.Linear(16 * height * width, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, classes),
        )
