"""python -m benchmarks.fedgia.pool: f* of Example V.1 over fresh data sets, and over divisions of one pool of samples.

Table IV prints the objective 1.744 for every method. Either each of its 20 trials drew its own samples, or all of them
divided one pool anew; the paper does not say. This prints how far 1.744 lies from f* in both cases, by closed form.
"""

import numpy as np

from mpifed.data.sources.linreg_noniid import LinregNoniid
from mpifed.extend import Array

PRINTED = 1.744  # Table IV, Example V.1, all methods and k0
TRIALS = 20
FRESH = 60  # seeds, of which the first ten are also pools
POOLS = 10
LEAST = 50  # fewest samples of a client


def least_squares(A: Array, b: Array, sizes: Array) -> float:
    """The minimum of (1/m) Σ_i ‖A_i x − b_i‖²/(2d_i), the rows of client i one after another: A (d, n), b (d,)."""
    w = np.repeat(1 / (sizes * len(sizes)), sizes)
    Ab = A.T @ (w * b)
    return float(0.5 * (w * b @ b - Ab @ np.linalg.solve((A.T * w) @ A, Ab)))


def samples(seed: int, most: int) -> tuple[Array, Array, Array]:
    """A, b and the sizes d_i of the data set of a seed."""
    data = LinregNoniid(clients=128, features=100, most=most).load(seed, "float64")
    A, b = data.rows(0, data.m)
    return np.asarray(A).reshape(-1, data.n), np.asarray(b).ravel(), np.asarray(data.sizes)


def division(total: int, m: int, most: int, rng: np.random.Generator) -> Array:
    """Sizes of m clients, uniform in [LEAST, most] and then changed by ones until they add up to ``total``."""
    sizes = rng.integers(LEAST, most + 1, m)
    while left := total - sizes.sum():
        i = rng.integers(m)
        sizes[i] = np.clip(sizes[i] + np.sign(left), LEAST, most)
    return sizes


def divided(A: Array, b: Array, m: int, most: int, rng: np.random.Generator) -> list[float]:
    """f* of so many divisions of one pool among m clients as the table has trials."""
    found = []
    for _ in range(TRIALS):
        order = rng.permutation(len(b))
        found.append(least_squares(A[order], b[order], division(len(b), m, most, rng)))
    return found


def main() -> None:
    """Print both for d_i up to 150, as the paper says, and up to 100, as the authors' first script has it."""
    for most in (150, 100):
        fresh = []
        means = []
        for seed in range(FRESH):
            A, b, sizes = samples(seed, most)
            fresh.append(least_squares(A, b, sizes))
            if seed < POOLS:
                means.append(np.mean(divided(A, b, len(sizes), most, np.random.default_rng(seed))))
        mean, sd = np.mean(fresh), np.std(fresh, ddof=1)
        away = (mean - PRINTED) / sd
        print(f"d_i in [{LEAST}, {most}], {FRESH} fresh data sets: f* = {mean:.4f} ± {sd:.4f}; by seed", end=" ")
        print(", ".join(f"{one:.4f}" for one in fresh[:4]))
        print(f"  {PRINTED} lies {away * TRIALS**0.5:.1f} standard errors of {TRIALS} fresh data sets below", end=", ")
        print(f"{away:.1f} standard deviations of a single one")
        print(f"  {POOLS} pools, each divided {TRIALS} times: means", ", ".join(f"{one:.4f}" for one in sorted(means)))


if __name__ == "__main__":
    main()
