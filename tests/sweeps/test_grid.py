"""The points of a sweep: names, order, files, and array jobs that share them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mpifed as package
from mpifed.experiment.config import experiment
from mpifed.sweeps import grid
from mpifed.sweeps.cost import POINT, ROUND, cost
from mpifed.sweeps.grid import file_name, order_points, parse_zip, points, split_outside
from mpifed.sweeps.slurm import ArraySize, TaskShape, plan_tasks, task_seconds
from tests.helpers.commands import execute, mpirun
from tests.sweeps.conftest import FILES, GRIDS, SMALL, listed, sweep


def test_values_are_comma_separated_and_ranges_leave_out_their_end():
    for text, values in {
        "seed=0:4": ["0", "1", "2", "3"],
        "seed=0:10:4": ["0", "4", "8"],
        "seed=2:0:-1": ["2", "1"],
        "seed=7,0:2": ["7", "0", "1"],
        "algorithm=fedavg, fedgia": ["fedavg", "fedgia"],
        "problem.hidden=[9,9],[5]": ["[9,9]", "[5]"],
        'data.path="a,b.h5",c.h5': ['"a,b.h5"', "c.h5"],
        "stop.gradient=1e-3,1e-7": ["1e-3", "1e-7"],
    }.items():
        assert [value for ((_, value),) in grid.parse_grid(text)] == values


def test_keys_of_a_zip_go_together_and_quotes_and_brackets_keep_their_separators():
    assert parse_zip("a=1,2;b=0:2") == [(("a", "1"), ("b", "0")), (("a", "2"), ("b", "1"))]
    found = points({}, [], ["seed=0:2"], ["data.clients=6,7;selection.count=2,3"])
    values = [(p.config.seed, p.config.data.clients, p.config.selection.count) for p in found]
    assert values == [(0, 6, 2), (0, 7, 3), (1, 6, 2), (1, 7, 3)]
    assert split_outside("a='x;y';b={c = [1, 2], d = 3}", ";") == ["a='x;y'", "b={c = [1, 2], d = 3}"]
    assert split_outside("[1,[2,3]],4", ",") == ["[1,[2,3]]", "4"]


def test_points_are_the_product_of_all_grids_and_come_once():
    found = points({}, SMALL, ["algorithm.k0=1,2,1", "seed=0:3,2"])
    assert [(p.config.algorithm.k0, p.config.seed) for p in found] == [(k0, s) for k0 in (1, 2) for s in (0, 1, 2)]
    assert (found[0].words, found[0].file) == (("algorithm.k0=1", "seed=0"), "k0=1,seed=0.h5")
    names = [
        (p.name, p.config.algorithm.label()) for p in points({}, [], ["algorithm=fedavg,fedgia", "algorithm.k0=5"])
    ]
    assert names == [("algorithm=fedavg,k0=5", "fedavg"), ("algorithm=fedgia,k0=5", "fedgia")]


def test_names_are_made_of_the_keys_of_the_grids_and_differ_by_their_hash():
    method = '{name="fedavg", k0=5, step={name="log2", a=0.8}}'
    for setting, name in (
        ([("seed", "3"), ("algorithm.k0", "5")], "k0=5,seed=3"),  # in the order of the keys
        ([("algorithm.name", "fedavg")], "algorithm=fedavg"),
        ([("data.seed", "1"), ("seed", "2")], "data.seed=1,seed=2"),  # the last parts are the same
        ([("stop.gradient", "1e-3")], "gradient=0.001"),  # however it is spelt
        ([("problem.hidden", "[9, 9]")], "hidden=9-9"),
        ([("algorithm", method)], "algorithm=fedavg-k0=5-step=log2-step.a=0.8"),
        ([("data.path", "../a b.h5")], r"path=.._a_b.h5-[0-9a-f]{8}"),
        ([("data.path", "x" * 500)], r"path=x{95}-[0-9a-f]{8}"),
    ):
        assert re.fullmatch(name, file_name(setting))
    assert file_name([("data.path", "a b")]) != file_name([("data.path", "a:b")])


def test_parts_share_the_points_exactly():
    found = points({}, [], ["algorithm=fedavg,fedadmm", "algorithm.k0=1,5,10", "rounds=10,1000"])
    costs = [point.cost for point in order_points(found)]
    assert costs == sorted(costs)
    assert order_points(found, "grid") == found
    for n in (1, 2, 5, 12, 20):
        parts = [order_points(found, part=f"{i}/{n}") for i in range(n)]
        assert sorted(point.name for part in parts for point in part) == sorted(point.name for point in found)
        assert parts[0] == order_points(found)[::n]


def test_a_round_of_proxskip_costs_as_many_steps_as_its_coin_takes_on_average():
    def computing(algorithm):
        """The seconds that are not those of a run or a round with nothing to compute, and evaluations."""
        table = {"data": {"clients": 8}, "rounds": 10_000, "evaluate": {"every": 10_000}, "algorithm": algorithm}
        return cost(experiment(table)) - POINT - ROUND * 10_000

    once, often = (computing({"name": "proxskip", "p": p}) for p in (1.0, 0.05))
    assert often / once == pytest.approx(20, rel=0.01)
    assert computing("proxskip") == once  # p follows from the data


def test_the_array_job_is_written(here, capsys):
    sweep(*GRIDS, "--slurm", "--tasks", "2", "-o", "my results")
    assert capsys.readouterr().out == "sbatch 'my results/sweep.sbatch'\n"
    script = here / "my results" / "sweep.sbatch"
    assert listed(here / "my results") == ["sweep.sbatch"]
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    text = script.read_text()
    for word in (
        "#SBATCH --array=0-1\n",
        "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n",
        "#SBATCH --time=00:10:00\n",
        "MPIFED_DATA",
        "${MPIFED_LAUNCH:-mpirun}",
        "python -m mpifed sweep data.clients=6 ",
        '--part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"',
        '--jobs "${SLURM_CPUS_PER_TASK:-$SLURM_CPUS_ON_NODE}"',
    ):
        assert word in text


@pytest.mark.slow
def test_the_array_job_shares_the_points(here):
    sweep(*GRIDS, "--slurm", "--tasks", "2", "-o", "my results")
    script = here / "my results" / "sweep.sbatch"
    for task, ranks in (("0", "1"), ("1", "2")):
        job = {"SLURM_NTASKS": ranks, "SLURM_CPUS_PER_TASK": "2", "SLURM_ARRAY_TASK_ID": task}
        job |= {"SLURM_ARRAY_TASK_COUNT": "2", "MPIFED_LAUNCH": str(mpirun(1)[0])}
        job["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the script starts python
        done = execute(["bash", script], cwd=here.parent, **job)
        assert done.code == 0, done.err
        assert "2 of 2 finished" in done.out
    assert listed(here / "my results") == [*FILES, "sweep.sbatch"]
    assert [package.load(here / "my results" / name).attrs["ranks"] for name in FILES] == [1, 2, 1, 2]


def written(here, *words):
    """The lines of the script that ask for something, and the last lines."""
    sweep(*GRIDS, "--slurm", *words)
    lines = (here / "results" / "sweep.sbatch").read_text().splitlines()
    return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]


def test_a_task_gets_a_core_for_each_small_point_or_what_is_asked_for(here):
    assert "--cpus-per-task=4" in written(here)
    assert "--cpus-per-task=16" in written(here, "-j", "16")
    whole = written(here, "--whole-node")
    assert {"--ntasks=1", "--exclusive", "--mem=0"} <= set(whole)
    assert not any(line.startswith("--cpus-per-task") for line in whole)
    groups = written(here, "--each", "1")
    assert {"--ntasks=8", "--cpus-per-task=1"} <= set(groups)
    assert "--each=1" in (here / "results" / "sweep.sbatch").read_text()


def test_many_small_points_fill_cores_and_large_ones_get_ranks():
    (point,) = points({}, SMALL, ["seed=0"])
    small = [point._replace(cost=50.0)] * 1000
    n, shape = plan_tasks(small, ArraySize())
    assert (n, shape) == (4, TaskShape(1, 8, 8))
    assert max(task_seconds(small[i::n], shape.lanes) for i in range(n)) < 1800
    large = [point._replace(cost=3000.0) for point in small[:10]]
    assert plan_tasks(large, ArraySize()) == (10, TaskShape(5, 1, 1))
    assert plan_tasks(large, ArraySize(jobs=4)) == (5, TaskShape(1, 4, 4))
    assert plan_tasks(large, ArraySize(each=2)) == (3, TaskShape(12, 1, 4))
