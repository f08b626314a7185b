"""How far apart two colours look, also to readers without one kind of cone."""

from functools import lru_cache

import numpy as np

from mpifed.core.typing import Array

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A physiologically-based model for simulation of color vision
# deficiency", doi:10.1109/TVCG.2009.113 (2009): linear RGB as it is seen without red, green or blue cones
BLIND = (
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
)
SEEN = np.array([np.eye(3), *BLIND])
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
DARK = 0.008856  # share of white up to which CIELAB is linear


@lru_cache(maxsize=1024)
def seen(colour: str) -> Array:
    """CIELAB coordinates of #RRGGBB to each kind of reader, (4, 3)."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    share = np.clip(SEEN @ linear, 0, 1) @ XYZ.T / WHITE
    x, y, z = np.where(share > DARK, np.cbrt(share), 7.787 * share + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def apart(a: str, b: str) -> float:
    """The distance of two colours in CIELAB to the kind of reader who sees them closest together."""
    return float(np.linalg.norm(seen(a) - seen(b), axis=1).min())
