"""The page of FLamby's two tasks: every published cell beside ours and the optimum."""

import time

import numpy as np
from scipy import stats

from benchmarks.sites.flamby import Task, brca, heart, published, whitened
from benchmarks.sites.methods import LOOSE, ROUNDS, TIGHT, Runs, methods, optimum, runs
from mpifed.core.typing import Array

ABOUT = """# FLamby's Heart and TCGA-BRCA

Written by `python -m benchmarks.sites flamby`. {about} {seconds:.0f} CPU seconds in all.

Data, splits and published numbers (five seeds, 42 to 46) are FLamby's: J. Ogier du Terrail et al., arXiv:2210.04620
(2022); heart's split is that of scikit-learn with its seed 43. All methods have `objective.weights = "samples"`, f =
Σ (d_i/d) f_i, and all clients in every round. FedAvg to FedYogi have {averaging} rounds; FedGiA, FedADMM and ProxSkip
at most {others}, to ‖∇f‖ <= {loose:.0e}; FedNL and newton go to {tight:.0e}. f − f* and ‖∇f‖ are the largest of five
seeds. A method without chance has the same bits for each, and is run once.

A verdict is = where five seeds explain the difference of the means (Student's t, 0.95, and half a unit of the last
digit printed), else < or >: ours is below or above.

What differs from FLamby, in both tasks:

- It trains with mini-batches of 4 (heart) and 8 (TCGA), 100 local updates a round (in heart 15 rounds). Ours take 10
  local steps a round, in heart with mini-batches of 4, in TCGA with all samples of a client, and one step size for
  all averaging methods of a task, which was not searched for.
- Its seeds move the first model, too. Ours begin at 0.
- Its heart loss is the logistic one without regularisation, as ours is. Published numbers do not say how features
  were normalised; both ways are below, and the way decides more than the method: what agrees in one section does not in
  the other.
- Its Cox loss is the partial likelihood of each mini-batch of 8, in which only these 8 are at risk: another function,
  with another minimiser. Ours is Cox's likelihood with ties of Efron, a stratum for each region and λ = 1e-4.
- "Local i" has no federation in it: ours is the optimum of client i alone (heart: with μ = 1e-3, for it may have none
  without). Ours of "Pooled Training" is the optimum of all clients, in TCGA stratified by client.
- "Cyclic" visits one client after another. mpifed does not have it.

{sections}"""
SECTION = """## {name}

{text}

f* = {least:.7f}, by newton in {rounds} rounds to ‖∇f‖ {gradient:.0e}. {seconds:.0f} CPU seconds for this section.

{own}

{total} published cells (theirs, verdict, ours): {equal} agree, in {above} ours is above, in {below} below, {none}
have no counterpart.

{cells}
"""
HEART = "Logistic regression in four hospitals, features normalised with mean and deviation of all training samples."
OWN = "The same with mean and deviation of each hospital's training samples, which scale its test samples, too."
TCGA = """Survival with breast cancer in six regions: a Cox model with a stratum for each region, features as they are.
The c-index is Harrell's. f* is the same with ties of Efron and Breslow, 0.4774506, for no two events of a region share
a time; without strata it is 0.6674816 (Efron) or 0.6675663 (Breslow). PHReg of statsmodels has these four values at our
x, with gradients below 1e-14, and lifelines the two of Efron. With samples of the same time at risk one after the
other, as a likelihood without ties has them, f* of the strata is 0.477417 or another number, by their order.

FedGiA, FedADMM and ProxSkip do not come to 1e-6 within 300 rounds here. Nor did FedGiA and FedADMM on features with
mean 0 and deviation 1 with smaller t and r0, in the settings that were tried by hand; a table at the end has FedGiA in
coordinates in which it comes there."""
WHITENED = """### TCGA-BRCA, whitened features

The same model and λ with features in which all training samples together have mean 0 and covariance I ({n} directions;
the others have no variance). Clients could send Σa and Σaaᵀ for it, {numbers} numbers each, once, which the table does
not count. λ is then about other coefficients, so that f* is {least:.7f}. FedGiA has `adaptive = true`: σ follows the
curvature of f and looks at no optimum. k0 is fitted. Tried beside these: k0 = 5 (‖∇f‖ 1e-01 after 300 rounds), t of
0.15, 0.02 and 0.005 with k0 = 20, and FedADMM with r0 of 0.2, 0.05, 0.01, 0.003 and 0.001 and at most 300 inner steps,
the last of which comes to 1.4e-06 in 300 rounds. Without whitening, on features with mean 0 and deviation 1, k0 = 100
comes to 1.1e-06.

| k0 | c-index, all test samples | f − f* | ‖∇f‖ | rounds | MB |
|--:|--:|--:|--:|--:|--:|
{rows}
"""
LOCAL_STEPS = (20, 50, 100, 200, 500)  # k0 of FedGiA on whitened features


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


def cells(one: Comparison) -> tuple[list[str], dict[str, int]]:
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
    return text, count


def section(one: Comparison, text: str) -> str:
    """A task."""
    table, count = cells(one)
    return SECTION.format(
        name=one.task.name,
        text=text,
        least=one.least,
        rounds=one.rounds,
        gradient=one.gradient,
        seconds=one.seconds,
        own="\n".join(own_lines(one)),
        total=sum(count.values()),
        equal=count["="],
        above=count[">"],
        below=count["<"],
        none=count["none"],
        cells="\n".join(table),
    )


def in_whitened(task: Task) -> tuple[str, float]:
    """FedGiA on whitened features, and its CPU seconds."""
    begun = time.process_time()
    white = whitened(task)
    best, _ = optimum(white)
    least = float(best.rounds["objective"][-1])
    rows = []
    for k0 in LOCAL_STEPS:
        run = runs(white, white.data(), {"name": "fedgia", "adaptive": True, "k0": k0}, least)
        rows.append(own_line(k0, run))
    n = task.train[0][0].shape[1]
    text = WHITENED.format(
        n=white.train[0][0].shape[1], numbers=n * (n + 1) // 2 + n, least=least, rows="\n".join(rows)
    )
    return text, time.process_time() - begun


def page(about: str) -> str:
    """The page as Markdown."""
    found = [Comparison(task) for task in (heart("pooled"), heart("own"), brca())]
    sections = [section(one, text) for one, text in zip(found, (HEART, OWN, TCGA), strict=True)]
    more, seconds = in_whitened(found[-1].task)
    return ABOUT.format(
        about=about,
        seconds=sum(one.seconds for one in found) + seconds,
        loose=LOOSE,
        tight=TIGHT,
        sections="\n".join([*sections, more]),
        **ROUNDS,
    )
