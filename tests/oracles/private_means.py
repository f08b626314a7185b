"""Means of clipped changes with noise, in place of the plain mean of a method."""

import math

import numpy as np

from .local_steps import FedAvg


class PrivateFedAvg(FedAvg):
    """FedAvg whose server adds noise to the sum of clipped changes; the bound is fixed, or follows a quantile.

    Sources: H. B. McMahan et al., "Learning differentially private recurrent language models", 2018, arXiv 1710.06963,
    Algorithm 1 with flat clipping and the fixed denominator; with a ``quantile`` G. Andrew et al., "Differentially
    private learning with adaptive clipping", 2021, arXiv 1905.03871, Algorithm 1. ``normals`` (rounds, n + 1) are
    standard normal numbers: the noise of a round, and that of its count.
    """

    clip = 1.0
    noise_multiplier = 0.0
    quantile = None
    clip_rate = 0.2
    count_noise = 0.0
    normals = None
    round = 0

    def step(self, uploads, ages):
        changes = [w - self.x for w in uploads.values()]
        total = sum(v * min(1.0, self.clip / np.linalg.norm(v)) for v in changes)
        fits = sum(np.linalg.norm(v) <= self.clip for v in changes)
        z = self.noise_multiplier
        if z:
            *noise, count = self.normals[self.round]
            if self.quantile is not None:
                z = (z**-2 - (2 * self.count_noise) ** -2) ** -0.5
                fits += self.count_noise * count
            total = total + z * self.clip * np.array(noise)
        self.x = self.x + total / len(changes)
        if self.quantile is not None:
            self.clip *= math.exp(-self.clip_rate * (fits / len(changes) - self.quantile))
        self.round += 1

    def shows(self):
        return {"clip": self.clip}
