"""Draw docs/pictures/protocol.png: what choosing on test samples adds to a reported accuracy, over 20 seeds.

python docs/protocol.py prints the numbers of docs/protocol.md too.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import mpifed

CLIENTS, SAMPLES, N, FRESH, SEEDS = 20, 30, 40, 50_000, 20
STEPS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
PICTURE = Path(__file__).parent / "pictures" / "protocol.png"


def draw_samples(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (count, n) and labels 0 and 1 of a logistic model, a quarter of which are flipped."""
    model = np.random.default_rng(seed).standard_normal(N) / 2
    rng = np.random.default_rng([seed, count])
    X = rng.standard_normal((count, N))
    y = (X @ model + rng.logistic(size=count) > 0) ^ (rng.random(count) < 0.25)
    return X, y.astype(float)


def measure(seed: int) -> dict[str, float]:
    """Return accuracies of what test samples and validation samples choose: on test samples, and on new ones."""
    data = mpifed.arrays(*draw_samples(seed, CLIENTS * SAMPLES), [SAMPLES] * CLIENTS, test=0.2, validation=0.2)
    study = {"problem": "logistic", "rounds": 60, "seed": seed, "record": {"models": 1}}
    runs = [
        mpifed.run(study | {"algorithm": {"name": "fedavg", "k0": 5, "step": step}}, data=data, progress=False)
        for step in STEPS
    ]
    X, y = draw_samples(seed, FRESH)
    numbers = {}
    for role, column in (("test", "accuracy"), ("validation", "validation_accuracy")):
        run = max(runs, key=lambda run: run.rounds[column].max())
        k = int(run.rounds[column].argmax())
        numbers[f"{role}, reported"] = float(run.rounds["accuracy"][k])
        numbers[f"{role}, new"] = float(((X @ run.models["x"][k] > 0) == y).mean())
    return numbers


def main() -> None:
    rows = [measure(seed) for seed in range(SEEDS)]
    both = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    for key, values in both.items():
        print(f"{key:22} {values.mean():.3f} ± {values.std(ddof=1):.3f}")
    gaps = {role: both[f"{role}, reported"] - both[f"{role}, new"] for role in ("test", "validation")}
    for role, gap in gaps.items():
        error = gap.std(ddof=1) / np.sqrt(SEEDS)
        print(f"{role}: reported − new {gap.mean():+.3f} ± {error:.3f}, above 0 in {(gap > 0).sum()}")
    figure, axis = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    for x, gap in enumerate(gaps.values()):
        jitter = np.linspace(-0.14, 0.14, SEEDS)
        axis.plot(x + jitter, 100 * np.sort(gap), "o", color=f"C{x}", alpha=0.6, markersize=5)
        axis.plot([x - 0.25, x + 0.25], [100 * gap.mean()] * 2, color=f"C{x}", linewidth=2.5)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks([0, 1], ["best on test samples", "chosen by validation"])
    axis.set_ylabel("reported − true accuracy, points")
    axis.set_xlim(-0.6, 1.6)
    axis.grid(axis="y", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    main()
