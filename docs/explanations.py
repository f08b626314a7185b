"""Draw the pictures of docs/explanations.md, from runs of mpifed, and print the numbers that the page names.

python docs/explanations.py
"""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import mpifed
from mpifed.report.palette import COLOURS
from mpifed.report.style import matplotlib_style

TARGET = Path(__file__).resolve().parent / "pictures" / "explanations"
WIDTH = 7.0  # inches
DPI = 130
STEPS = (1, 2, 5, 20, 100)  # local steps of the picture of drift
ALPHAS = (0.1, 1.0, 100.0)  # of the Dirichlet distribution
GOAL = 1e-3  # of ‖∇f‖², for the numbers about costs
CONSTANT = {"name": "constant", "a": 0.3}


def main() -> None:
    """Write docs/pictures/explanations/*.png."""
    TARGET.mkdir(exist_ok=True)
    with matplotlib_style() as matplotlib:
        for name, draw in (("drift", drift), ("heterogeneity", heterogeneity), ("costs", costs)):
            figure = matplotlib.figure.Figure(figsize=(WIDTH, 2.6), layout="constrained")
            draw(figure)
            path = TARGET / f"{name}.png"
            figure.savefig(path, dpi=DPI)
            Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


def drift(figure: Any) -> None:
    """Two clients with quadratic losses: where FedAvg ends, and how far from the minimum, by its local steps."""
    rng = np.random.default_rng(0)
    own = np.array([[0.0, 0.0], [2.0, 1.0]])  # the minimisers of the clients
    inputs = [rng.standard_normal((40, 2)) * scales for scales in ((1.6, 0.5), (0.4, 1.2))]
    X, y = np.vstack(inputs), np.concatenate([a @ x for a, x in zip(inputs, own, strict=True)])
    H = [a.T @ a / len(a) for a in inputs]
    least = np.linalg.solve(sum(H), sum(h @ x for h, x in zip(H, own, strict=True)))
    study = {"data": mpifed.arrays(X, y, np.repeat([0, 1], 40)), "problem": "least-squares", "selection": "all"}
    study |= {"rounds": 600, "stop.gradient": 0.0}
    step = {"name": "constant", "a": 0.1}
    ends = {k: mpifed.run(study, algorithm={"name": "fedavg", "k0": k, "step": step}).x for k in STEPS}
    corrected = mpifed.run(study, algorithm={"name": "scaffold", "k0": STEPS[-1], "step": step}).x
    plane, gaps = figure.subplots(1, 2)
    plane.plot(*own.T, "s", color="0.5", label="minima of the two clients")
    plane.plot(*least, "*", color="black", markersize=11, label="minimum of f")
    plane.plot(*np.array(list(ends.values())).T, "o-", color=COLOURS[0], label="where FedAvg ends")
    plane.plot(*corrected, "x", color=COLOURS[1], markersize=9, label=f"SCAFFOLD, {STEPS[-1]} steps")
    for k, x in ends.items():
        if k > 2:
            plane.annotate(str(k), x, (4, 3), textcoords="offset points")
    plane.set(xlabel="first parameter", ylabel="second parameter", ylim=(-0.2, 1.9))
    plane.legend(loc="upper left", fontsize=7)
    far = {k: float(np.linalg.norm(x - least)) for k, x in ends.items()}
    gaps.plot(STEPS, list(far.values()), "o-", color=COLOURS[0])
    gaps.set(xscale="log", xlabel="local steps a round", ylabel="distance from the minimum of f", xticks=STEPS)
    gaps.set_xticks(STEPS, [str(k) for k in STEPS])
    gaps.minorticks_off()
    print("drift", {k: f"{d:.2g}" for k, d in far.items()}, f"SCAFFOLD {np.linalg.norm(corrected - least):.1e}")


def heterogeneity(figure: Any) -> None:
    """The labels of 20 clients for two α of the Dirichlet partition, and FedAvg for three."""
    shares = figure.subplots(1, 3)
    for alpha, colour in zip(ALPHAS, COLOURS, strict=False):
        data = mpifed.data.Digits(clients=20, partition=mpifed.partitions.Dirichlet(alpha=alpha))
        study = {"data": data, "problem": {"name": "softmax", "lam": 0.01}, "rounds": 60, "selection": "all"}
        result = mpifed.run(study, algorithm={"name": "fedavg", "k0": 10, "step": CONSTANT})
        shares[2].semilogy(result.rounds["grad_norm_sq"], color=colour, label=f"α = {alpha:g}")
        print("heterogeneity", alpha, {name: f"{result.rounds[name][-1]:.2g}" for name in ("grad_norm_sq", "accuracy")})
        if alpha != 1:
            axis = shares[ALPHAS.index(alpha) // 2]
            loaded = data.load(seed=0, dtype="float64")
            counts = np.array([np.bincount(loaded.rows(k, k + 1)[1].astype(int), minlength=10) for k in range(20)])
            below = np.vstack([np.zeros(20), counts.cumsum(axis=1).T])
            for label in range(10):
                axis.bar(range(20), counts[:, label], bottom=below[label], color=f"C{label}", width=0.9)
            axis.set(title=f"α = {alpha:g}", xlabel="client", ylabel="samples, a colour for each digit", xticks=[])
            print("labels of a client that make 90 % of its samples", alpha, np.mean([needed(row) for row in counts]))
    shares[2].set(xlabel="round", ylabel="‖∇f‖² of FedAvg")
    shares[2].legend(fontsize=7)


def needed(counts: Any) -> int:
    """How many labels make nine tenths of a client's samples."""
    return int(np.searchsorted(np.sort(counts)[::-1].cumsum(), 0.9 * counts.sum()) + 1)


def costs(figure: Any) -> None:
    """The same four runs over rounds, over megabytes and over simulated seconds."""
    study = {"data": {"name": "digits", "clients": 20, "partition": {"name": "dirichlet", "alpha": 0.3}}}
    study |= {
        "problem": {"name": "softmax", "lam": 0.01},
        "rounds": 150,
        "selection": "all",
        "stop": {"gradient": 1e-8},
    }
    study["system"] = {"speed": 1e4, "bandwidth_up": 1e5, "bandwidth_down": 1e6, "latency": 0.05}
    methods = {
        "gradient descent": {"name": "gd", "gamma": 0.6},
        "SCAFFOLD, 10 steps": {"name": "scaffold", "k0": 10, "step": CONSTANT},
        "FedGiA": {"name": "fedgia", "k0": 1, "t": 0.05},
        "DIANA, a twentieth sent": {"name": "diana", "gamma": 0.6, "compressor": {"name": "randk", "k": "0.05n"}},
    }
    panels = figure.subplots(1, 3, sharey=True)
    for (name, algorithm), colour in zip(methods.items(), COLOURS, strict=False):
        rounds = mpifed.run(study, algorithm=algorithm).rounds
        megabytes = (rounds["bytes_up"] + rounds["bytes_down"]) / 1e6
        for axis, x in zip(panels, (rounds["round"], megabytes, rounds["simulated_seconds"]), strict=True):
            axis.loglog(x[1:], rounds["grad_norm_sq"][1:], color=colour, label=name)
        first = int(np.argmax(rounds["grad_norm_sq"] <= GOAL))  # 0 where it was not reached
        print("costs", name, first, f"rounds, {megabytes[first]:.3g} MB, {rounds['simulated_seconds'][first]:.3g} s")
    for axis, label in zip(panels, ("rounds", "MB, up and down", "simulated seconds"), strict=True):
        axis.set(xlabel=label)
    panels[0].set(ylabel="‖∇f‖²")
    panels[0].legend(fontsize=6)


if __name__ == "__main__":
    main()
