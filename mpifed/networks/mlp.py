"""Fully connected networks with ReLU, section V of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated
learning via ADMM with Moreau envelope", arXiv:2311.06756 (2023)."""

from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import count_classes
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem
from mpifed.problems.softmax import cross_entropy


class MLP(Problem, tag="mlp"):
    """Mean cross-entropy of a network features – hidden … – C with ReLU between its layers, + (lam/2)‖weights‖².

    The parameters are flat, layer by layer, [W row-major (out × in) | bias]; they start uniform in ±1/√in, drawn from
    the seed. Labels 0 … C−1.  Source: section V (784–100–10: 79,510 parameters).
    """

    # Layers do not mix clients, and their products are numpy's.
    supports = Supports.EVERYTHING & ~Supports.DEVICES

    hidden: Annotated[
        tuple[Annotated[int, Meta(ge=1)], ...], Meta(min_length=1, description="widths of the hidden layers")
    ] = (100,)
    lam: Annotated[float, Meta(ge=0, description="regularisation λ of the weights, not of the biases")] = 0.0

    def dim(self, data: Dataset) -> int:
        return sum((a + 1) * b for a, b in self.shapes(data))

    def shapes(self, data: Dataset) -> list[tuple[int, int]]:
        """Return (in, out) for every layer."""
        return list(pairwise((data.n, *self.hidden, count_classes(data))))

    def decay_mask(self, data: Dataset) -> Array:
        return np.concatenate([np.arange((a + 1) * b) < a * b for a, b in self.shapes(data)])

    def parameter_sizes(self, data: Dataset) -> dict[str, int]:
        """Return the sizes of hidden.0.weight, hidden.0.bias, …, and of the last layer, head.weight and head.bias."""
        names = [*(f"hidden.{k}" for k in range(len(self.hidden))), "head"]
        layers = zip(names, self.shapes(data), strict=True)
        return {
            name: size for layer, (a, b) in layers for name, size in ((f"{layer}.weight", a * b), (f"{layer}.bias", b))
        }

    def takes(self) -> Literal["classes"]:
        return "classes"

    def initial(self, data: Dataset, seed: int) -> Array:
        rng = stream(seed, "model")
        return np.concatenate([rng.uniform(-1, 1, (a + 1) * b) / np.sqrt(a) for a, b in self.shapes(data)])

    def predict(self, block: Block, X: Array) -> Array:
        """Return the class with the largest score, the lowest at a tie: (c, D)."""
        return np.argmax(self.forward(block, X)[-1], axis=-1)

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        layers = self.layers(block, X)
        outputs = self.forward(block, X)
        loss, R = cross_entropy(outputs[-1], block.b)
        f = np.vecdot(block.w, loss)
        R = R * block.w[:, :, None]
        slopes = np.empty((len(block), X.shape[-1]), R.dtype)
        slope_layers = self.layers(block, slopes)
        for k in range(len(layers) - 1, -1, -1):
            W = layers[k][0]
            G, bias = slope_layers[k]
            # the first layer multiplies the samples themselves, which may be sparse
            if k:
                np.matmul(R.mT, outputs[k - 1], out=G)
            else:
                block.put_tmatmat(R, G)
            np.sum(R, axis=1, out=bias)
            if self.lam:
                f = f + self.lam / 2 * np.sum(W * W, axis=(-2, -1))
                G += self.lam * W
            if k:
                R = np.matmul(R, W) * (outputs[k - 1] > 0)
        return f, slopes

    def value_predict(self, block: Block, X: Array) -> tuple[Array, Array]:
        scores = self.forward(block, X)[-1]
        f = np.vecdot(block.w, cross_entropy(scores, block.b)[0])
        for W, _ in self.layers(block, X) if self.lam else []:
            f = f + self.lam / 2 * np.sum(W * W, axis=(-2, -1))
        return f, np.argmax(scores, axis=-1)

    def forward(self, block: Block, X: Array) -> list[Array]:
        """Return the outputs of the layers: after ReLU (c, D, width), and the scores (c, D, C) last."""
        outputs: list[Array] = []
        for W, bias in self.layers(block, X):
            # ReLU overwrites the scores: it is 0 where its slope is 0, which is all that value_grad needs later
            Z = np.matmul(np.maximum(outputs[-1], 0, out=outputs[-1]), W.mT) if outputs else block.matmat(W)
            outputs.append(Z + bias[..., None, :])
        return outputs

    def layers(self, block: Block, X: Array) -> list[tuple[Array, Array]]:
        """Split X into W (…, out, in) and bias (…, out) for every layer."""
        hidden = sum((width + 1) * out for width, out in pairwise((block.n, *self.hidden)))
        classes = (X.shape[-1] - hidden) // (self.hidden[-1] + 1)
        layers = []
        begin = 0
        for width, out in pairwise((block.n, *self.hidden, classes)):
            end = begin + out * width
            layers.append((X[..., begin:end].reshape(*X.shape[:-1], out, width), X[..., end : end + out]))
            begin = end + out
        return layers
