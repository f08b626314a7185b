"""The page of FLamby's two tasks: every published cell beside ours and the optimum."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.sites import done
from benchmarks.sites.flamby import SEEDS, Task, brca, heart, published, whitened
from mpifed import Result
from mpifed.core.typing import Array

ROUNDS = {"averaging": 100, "others": 300}
LOOSE, TIGHT = 1e-6, 1e-10  # ‖∇f‖

LOCAL_STEPS = (20, 50, 100, 200, 500)  # k0 of FedGiA on whitened features


def methods(task: Task) -> dict[str, dict[str, Any]]:
    """Name -> the table [algorithm] on this task.

    TCGA's features are not normalised, so that steps are shorter, and the loss of Cox has no mini-batches.
    """
    cox = task.metric == "c-index"
    steps = {"k0": 10, "step": {"name": "constant", "a": 0.02 if cox else 0.1}}
    if not cox:
        steps["batch_size"] = 4
    server = {"lr": 0.05, "beta1": 0.9, "beta2": 0.99}
    return {
        "FedAvg": {"name": "fedavg"} | steps,
        "FedProx": {"name": "fedprox", "mu": 0.01, "inner": 1} | steps,
        "Scaffold": {"name": "scaffold"} | steps,
        "FedAdam": {"name": "fedopt", "server": {"name": "adam"} | server} | steps,
        "FedAdagrad": {"name": "fedopt", "server": {"name": "adagrad", "lr": 0.1}} | steps,
        "FedYogi": {"name": "fedopt", "server": {"name": "yogi"} | server} | steps,
        "FedGiA": {"name": "fedgia", "t": 0.15, "k0": 5},
        "FedADMM": {"name": "fedadmm", "k0": 1},
        "ProxSkip": {"name": "proxskip", "p": 0.1},
        "FedNL": {"name": "fednl", "option": "A" if cox else "B", "line_search": True},
    }


class Runs(NamedTuple):
    """Five seeds of a method: the metric of each client and of all (5, m + 1); f − f*, ‖∇f‖, rounds and bytes (5,)."""

    scores: Array
    gap: Array
    gradient: Array
    rounds: Array
    bytes: Array


def optimum(task: Task, clients: list[int] | None = None) -> tuple[Result, Array]:
    """The result of newton and its model, on all clients or some.

    A little regularisation is added where a client alone may have no optimum.
    """
    data = task.data(clients)
    study = {"algorithm": "newton", "rounds": 30, "stop": {"gradient": TIGHT**2}, "data": data}
    problem = task.problem
    if clients is not None and task.metric == "accuracy":
        problem = task.problem | {"mu": 1e-3}
    return done(study | {"objective": {"weights": "samples"}, "problem": problem})


def runs(task: Task, data: Any, algorithm: dict[str, Any], best: float) -> Runs:
    """All seeds of a method, from the model 0; without mini-batches and coins they have the same bits: one is run."""
    chance = "batch_size" in algorithm or algorithm["name"] == "proxskip"
    averaging = "step" in algorithm
    end = TIGHT if algorithm["name"] == "fednl" else LOOSE
    found = []
    for seed in SEEDS if chance else SEEDS[:1]:
        study = {
            "seed": seed,
            "algorithm": algorithm,
            "rounds": ROUNDS["averaging" if averaging else "others"],
            "stop": {"gradient": end**2},
            "objective": {"weights": "samples"},
            "problem": task.problem,
            "data": data,
        }
        if algorithm["name"] != "fednl":
            study["selection"] = "all"
        result, x = done(study)
        rounds = result.rounds
        found.append(
            (
                task.scores(x),
                rounds["objective"][-1] - best,
                np.sqrt(rounds["grad_norm_sq"][-1]),
                result.cr,
                rounds["bytes_up"][-1] + rounds["bytes_down"][-1],
            )
        )
    found *= 1 if chance else len(SEEDS)
    return Runs(*(np.array(values) for values in zip(*found, strict=True)))


class Comparison:
    """What was run on a task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        begun = time.process_time()
        data = task.data()
        best, x = optimum(task)
        self.least = float(best.rounds["objective"][-1])
        self.rounds = best.cr
        self.gradient = float(np.sqrt(best.rounds["grad_norm_sq"][-1]))
        self.best = task.scores(x)
        self.found = {name: runs(task, data, table, self.least) for name, table in methods(task).items()}
        self.own = {"Pooled Training": np.array([self.best])}
        for i in range(len(task.train)):
            self.own[f"Local {i}"] = np.array([task.scores(optimum(task, [i])[1])])
        self.own |= {name: one.scores for name, one in self.found.items()}
        self.seconds = time.process_time() - begun
        self.lines = "\n".join(own_lines(self))
        self.cells, count = cells(self)
        self.equal, self.below, self.above, self.none = (count[sign] for sign in ("=", "<", ">", "none"))
        self.total = sum(count.values())


def verdict(ours: Array, theirs: Array) -> str:
    """= where the difference of means is what five seeds explain (t, 0.95, and half a unit printed), else < or >."""
    spread = np.sqrt(theirs.var(ddof=1) / len(theirs) + (ours.var(ddof=1) / len(ours) if len(ours) > 1 else 0))
    gap = ours.mean() - theirs.mean()
    if abs(gap) <= stats.t(len(theirs) - 1).ppf(0.975) * spread + 0.0005:
        return "="
    return ">" if gap > 0 else "<"


def own_lines(one: Comparison) -> list[str]:
    """Our methods: the metric, how far from the optimum, rounds and bytes."""
    text = [
        f"| method | {one.task.metric}, all test samples | f − f* | ‖∇f‖ | rounds | MB |",
        "|---|--:|--:|--:|--:|--:|",
        f"| newton, the optimum | {one.best[-1]:.3f} | 0 | {one.gradient:.0e} | {one.rounds} | |",
    ]
    return text + [own_line(name, run) for name, run in one.found.items()]


def own_line(name: object, run: Runs) -> str:
    """The line of a method."""
    least, most = run.rounds.min(), run.rounds.max()
    rounds = f"{least}" if least == most else f"{least}–{most}"
    return (
        f"| {name} | {mean(run.scores[:, -1])} | {max(run.gap.max(), 0):.1e} | {run.gradient.max():.0e} "
        f"| {rounds} | {run.bytes.mean() / 1e6:.3g} |"
    )


def mean(values: Array) -> str:
    """Mean ± standard deviation, without it where there is none."""
    spread = values.std(ddof=1) if len(values) > 1 else 0
    return f"{values.mean():.3f}" + (f" ± {spread:.3f}" if spread >= 5e-4 else "")


def cells(one: Comparison) -> tuple[str, dict[str, int]]:
    """Every published cell: theirs, a sign, ours; and how many there are of each sign."""
    m = len(one.task.train)
    heads = [f"client {i}" for i in range(m)] + ["all test samples"]
    text = [f"| published | {' | '.join(heads)} |", f"|---|{'--:|' * (m + 1)}"]
    text.append(f"| *the optimum* | {' | '.join(f'{score:.3f}' for score in one.best)} |")
    count = {"=": 0, "<": 0, ">": 0, "none": 0}
    for method, theirs in published(one.task).items():
        row = []
        for k in range(m + 1):
            if method not in one.own:
                row.append(f"{mean(theirs[:, k])} –")
                count["none"] += 1
                continue
            sign = verdict(one.own[method][:, k], theirs[:, k])
            count[sign] += 1
            row.append(f"{mean(theirs[:, k])} {sign} {mean(one.own[method][:, k])}".replace(" = ", " **=** "))
        text.append(f"| {method} | {' | '.join(row)} |")
    return "\n".join(text), count


class Whitened(NamedTuple):
    """FedGiA on whitened features: so many directions, numbers that a client sends once, f*, rows, CPU seconds."""

    n: int
    numbers: int
    least: float
    rows: str
    seconds: float


def in_whitened(task: Task) -> Whitened:
    """Run FedGiA on whitened features."""
    begun = time.process_time()
    white = whitened(task)
    best, _ = optimum(white)
    least = float(best.rounds["objective"][-1])
    rows = []
    for k0 in LOCAL_STEPS:
        run = runs(white, white.data(), {"name": "fedgia", "adaptive": True, "k0": k0}, least)
        rows.append(own_line(k0, run))
    n = task.train[0][0].shape[1]
    numbers = n * (n + 1) // 2 + n
    return Whitened(white.train[0][0].shape[1], numbers, least, "\n".join(rows), time.process_time() - begun)


def page(about: str) -> str:
    """Fill flamby_page.md."""
    pooled, own, tcga = (Comparison(task) for task in (heart("pooled"), heart("own"), brca()))
    white = in_whitened(tcga.task)
    parts = {"pooled": pooled, "own": own, "tcga": tcga, "white": white}
    seconds = sum(one.seconds for one in (pooled, own, tcga, white))
    text = Path(__file__).with_suffix(".md").read_text("utf-8")
    return text.format(about=about, seconds=seconds, loose=LOOSE, tight=TIGHT, **ROUNDS, **parts)
