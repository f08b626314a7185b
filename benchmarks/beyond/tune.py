"""python -m benchmarks.beyond.tune digits [ROW …]: tune the step sizes and penalties of skew, participation, clients,
stragglers (digits) and logistic (adult); those of methods and compression are tuned by benchmarks.beyond.tuning.

Every row tries 12 settings: six values of its main option, a factor 2 apart, times two values of another (FedDCD: six
settings). All use one problem and one seed that no benchmark uses. Best is the setting that stays below the gap from
the earliest round on, to the end or to a hundredth of the gap; if none does, the one with the smallest mean gap in the
last ten rounds. What has run is kept, and is not run again. Step sizes and penalties are multiples of L, which is about
the largest r_i.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.optimum import minimum
from mpifed.core.toml import flat, toml_value
from mpifed.data.cache import Cache
from mpifed.experiment import config as configuration
from mpifed.mpi.world import World
from mpifed.sweeps.measure import parsed
from mpifed.sweeps.overall import Overall
from mpifed.sweeps.runner import Layout
from mpifed.sweeps.runs import Runs
from mpifed.sweeps.search import Method, Try
from mpifed.sweeps.tally import Tally
from mpifed.sweeps.tune import Plan, outcomes, points, tune

SEED = 100


class Setting(NamedTuple):
    """The problem to tune on: experiment, rounds, gap, L, smallest factor of sqrt-samples, Newton's tolerance, κ."""

    study: dict[str, Any]
    rounds: int
    gap: float
    L: float
    least: float
    tol: float
    kappa: float


SETTINGS = {
    "digits": Setting(
        {
            "data": {"name": "digits", "clients": 50, "test": 0.0, "partition": {"name": "dirichlet", "alpha": 0.3}},
            "problem": {"name": "softmax", "lam": 1e-2, "bias": False},
        },
        500,
        1e-3,
        6.0,
        1.5e-3,
        1e-3,
        1.6e-3,
    ),
    "adult": Setting(
        {"data": {"name": "adult", "clients": 50}, "problem": {"name": "logistic", "mu": 1e-3}},
        200,
        1e-4,
        8e-5,
        0.25,
        1e-6,
        1.9e-3,
    ),
}


def grids(s: Setting) -> dict[str, list[dict[str, Any]]]:
    """The [algorithm] tables to try, by row."""
    six = [2.0**k for k in range(6)]  # 1 … 32
    weak = [rounded(3 * k / s.L) for k in six]  # η, the inverse of a penalty
    firm = [rounded(s.L / 24 * k) for k in six]  # a penalty
    gentle = [rounded(0.6 / s.L), rounded(1.8 / s.L)]  # step sizes of local descent
    descent = [{"name": "constant", "a": a} for a in gentle]
    prox = some("mu", [rounded(s.L / 60), rounded(s.L / 6)])
    pulls = [{"lam": lam, "lr": rounded(1 / (s.L + lam))} for lam in (rounded(1.7 * s.L), rounded(5 * s.L))]
    constant = some("step", [{"name": "constant", "a": rounded(0.3 * k / s.L)} for k in six])
    falling = some("step", [{"name": "log2", "a": rounded(0.3 * k / s.L)} for k in six])
    samples = some("step", [{"name": "sqrt-samples", "a": s.least * k} for k in six])
    r0, t, eta = (some(key, [least * k for k in six]) for key, least in (("r0", 0.0125), ("t", 0.0125), ("eta", 0.25)))
    bends = [{"eta": rounded(s.L / 600), "lam": rounded(0.1 * s.tol)}, {"eta": rounded(s.L / 60), "lam": s.tol}]
    newton, five = {"solver": {"name": "newton", "tol": s.tol}}, {"epochs": 5, "batch_size": 0}
    found = {
        "FedAvg": [{"name": "fedavg", "k0": 5} | step for step in constant + falling],
        "FedProx": each({"name": "fedprox", "k0": 5, "inner": 1}, falling, prox),
        "SCAFFOLD": each({"name": "scaffold", "k0": 5}, constant, some("server_lr", [1.0, 1.5])),
        "FedPD": each({"name": "fedpd", "k0": 4, "inner": 2}, some("eta", weak), some("step", descent)),
        "FedADMM": each({"name": "fedadmm"}, r0, [{"k0": 4, "inner_max": 2}, {"k0": 2, "inner_max": 3}]),
        "FedADMM, deep": each(
            {"name": "fedadmm-deep"} | five, some("rho", [rounded(1 / w) for w in weak]), some("lr", gentle)
        ),
        "FedGiA_D": each({"name": "fedgia"}, t, some("k0", [1, 5])),
        "FedGiA_G": each({"name": "fedgia", "H": "gram"}, t, some("k0", [1, 5])),
        "FedEPM": each({"name": "fedepm", "k0": 5, "noise": "none", "step_scale": "one"}, some("mu0", firm), bends),
        "FedDCD": each({"name": "feddcd"} | newton, eta),
        "FedDCD, 5 steps": each({"name": "feddcd", "solver": {"name": "gd", "steps": 5}}, eta),
        "AccFedDCD": each({"name": "accfeddcd"} | newton, eta, some("kappa", [s.kappa, rounded(10 * s.kappa)])),
        "FLAME": each({"name": "flame"} | five, some("rho", [rounded(rho / 50) for rho in firm]), pulls),
        "pFedMe": each({"name": "pfedme"} | five, some("eta", weak), pulls),
        "SFedAvg": each({"name": "sfedavg", "k0": 5, "noise": "none"}, samples, some("average", ["trained", "new"])),
        "SFedProx": each({"name": "sfedprox", "k0": 5, "inner": 1, "noise": "none"}, samples, prox),
    }
    if s.study["problem"]["name"] == "softmax":  # softmax has no Gram matrix
        del found["FedGiA_G"]
    return found


def each(base: dict[str, Any], *knobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``base`` with every combination of one table from each of ``knobs``."""
    return [base | {key: value for part in parts for key, value in part.items()} for parts in product(*knobs)]


def some(key: str, values: list[Any]) -> list[dict[str, Any]]:
    """One table for each value of a key."""
    return [{key: value} for value in values]


def rounded(value: float) -> float:
    """Round to two significant digits."""
    return float(f"{value:.2g}")


def method(row: str, tables: list[dict[str, Any]]) -> Method:
    """A row and its settings, told by the options in which they differ."""
    flats = [flat(table) for table in tables]
    keys = dict.fromkeys(key for one in flats for key in one)
    varying = [key for key in keys if len({toml_value(one.get(key, "")) for one in flats}) > 1]
    return Method(
        row, [Try({key: one.get(key, "") for key in varying}, t) for one, t in zip(flats, tables, strict=True)]
    )


def plan(setting: Setting, rows: list[str]) -> Plan:
    """All settings of ``rows`` (none: all rows) on the problem of ``setting``."""
    study = setting.study | {"rounds": setting.rounds, "selection": {"name": "uniform", "share": 0.5}}
    optimum = minimum(configuration.experiment(study | {"seed": SEED}), Cache())
    study["stop"] = {"optimum": optimum, "objective_gap": setting.gap / 100}
    measure = parsed(f"rounds to objective_gap <= {setting.gap:g} for good", configuration.experiment(study).stop)
    methods = [method(row, tables) for row, tables in grids(setting).items() if not rows or row in rows]
    return Plan(study, methods, [SEED], measure)


def main() -> None:
    """Run the settings that have no result yet, then print all of them, and the best one of every row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beyond.tune", description=__doc__)
    parser.add_argument("setting", choices=SETTINGS)
    parser.add_argument("rows", nargs="*", help="only these rows")
    parser.add_argument("--to", type=Path, default=Path("results/tuning"), help="folder (default: results/tuning)")
    parser.add_argument("--processes", type=int, help="runs at the same time (default: number of cores)")
    args = parser.parse_args()
    wanted, folder = plan(SETTINGS[args.setting], args.rows), args.to / args.setting
    runs = list(points(wanted).values())
    progress = Overall(sys.stderr, [point.cost for point in runs])
    for line in tune(runs, Runs(folder, World(), False, progress), Layout(args.processes), Tally(runs, progress)):
        print(line.text, file=sys.stderr)
    for row, tried, best, _ in outcomes(wanted, folder):
        for one in tried:
            print(f"    {one.middle.value:5g} {one.middle.near:9.2e} {toml_value(one.setting.algorithm)}")
        (rounds, gap), text = best.middle, toml_value(best.setting.algorithm)
        print(f"{row}: {rounds:g} rounds, gap {gap:.1e}: {text}", flush=True)


if __name__ == "__main__":
    main()
