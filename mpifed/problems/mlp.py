"""Fully connected networks with ReLU, section V of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated
learning via ADMM with Moreau envelope", arXiv:2311.06756 (2023)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array, Count
from mpifed.data.base import Dataset
from mpifed.data.blocks import Block
from mpifed.data.labels import Kind
from mpifed.problems.base import Problem
from mpifed.problems.classifier import whole_labels
from mpifed.problems.softmax import cross_entropy


class MLP(Problem, tag="mlp"):
    """Mean cross-entropy of a network features – hidden … – C with ReLU between its layers, + (lam/2)‖weights‖².

    Parameters flat, layer by layer, [W row-major (out × in) | bias]; at first uniform in ±1/√in, from the seed.
    Labels 0 … C−1.  Source: section V (784–100–10: 79,510 parameters).
    """

    hidden: Annotated[tuple[Count, ...], Meta(min_length=1, description="widths of the hidden layers")] = (100,)
    lam: Annotated[float, Meta(ge=0, description="regularisation λ of the weights, not of the biases")] = 0.0

    def dim(self, data: Dataset) -> int:
        if data.classes < 2:
            raise ValueError("labels must be whole numbers 0, 1 … C−1 of at least 2 classes")
        widths = (data.n, *self.hidden, data.classes)
        return sum((a + 1) * b for a, b in pairwise(widths))

    def takes(self) -> Kind:
        return "classes"

    def labels(self, b: Array) -> Array:
        return whole_labels(b)

    def initial(self, data: Dataset, seed: int) -> Array:
        self.dim(data)
        rng = stream(seed, "model")
        widths = (data.n, *self.hidden, data.classes)
        return np.concatenate([rng.uniform(-1, 1, (a + 1) * b) / np.sqrt(a) for a, b in pairwise(widths)])

    def predict(self, block: Block, X: Array) -> Array:
        """The class with the largest score, the lowest at a tie: (c, D)."""
        return np.argmax(self.forward(block, X)[-1], axis=-1)

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        layers, outputs = self.layers(block, X), self.forward(block, X)
        loss, R = cross_entropy(outputs[-1], block.b)
        f = np.vecdot(block.w, loss)
        R = R * block.w[:, :, None]
        parts: list[Array] = []
        for k in range(len(layers) - 1, -1, -1):
            W, _ = layers[k]
            G = block.tmatmat(R) if k == 0 else np.matmul(R.mT, outputs[k - 1])
            if self.lam:
                f = f + self.lam / 2 * np.sum(W * W, axis=(-2, -1))
                G = G + self.lam * W
            parts[:0] = [G.reshape(len(block), -1), R.sum(axis=1)]
            if k:
                R = np.matmul(R, W) * (outputs[k - 1] > 0)
        return f, np.concatenate(parts, axis=1)

    def forward(self, block: Block, X: Array) -> list[Array]:
        """The outputs of the layers: after ReLU (c, D, width), the last one scores (c, D, C)."""
        outputs: list[Array] = []
        for W, bias in self.layers(block, X):
            Z = np.matmul(np.maximum(outputs[-1], 0, out=outputs[-1]), W.mT) if outputs else block.matmat(W)
            outputs.append(Z + bias[..., None, :])
        return outputs

    def layers(self, block: Block, X: Array) -> list[tuple[Array, Array]]:
        """W (…, out, in) and bias (…, out) of every layer."""
        found, at, width = [], 0, block.n
        classes = (
            X.shape[-1] - sum((a + 1) * b for a, b in zip((width, *self.hidden[:-1]), self.hidden, strict=True))
        ) // (self.hidden[-1] + 1)
        for out in (*self.hidden, classes):
            W = X[..., at : at + out * width].reshape(*X.shape[:-1], out, width)
            found.append((W, X[..., at + out * width : at + out * (width + 1)]))
            at, width = at + out * (width + 1), out
        return found
