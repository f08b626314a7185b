"""Sixty samples of three features with counts, sizes and survival times, known to statsmodels and lifelines."""

import numpy as np

rng = np.random.default_rng(7)
A = rng.standard_normal((60, 3))
SCORES = A @ [0.5, -0.4, 0.3]
COUNTS = rng.poisson(np.exp(1 + SCORES)).astype(float)
SIZES = rng.gamma(2.0, np.exp(1 + SCORES) / 2)
TIMES = np.ceil(8 * rng.exponential(np.exp(-SCORES)))  # 17 times of 41 events
EVENTS = rng.random(60) < 0.7
SURVIVAL = np.where(EVENTS, TIMES, -TIMES)
THREE = np.repeat([0, 1, 2], 20)  # a client each
