"""Many runs started by a Python program."""

import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mpifed.api.progress import ProgressOption, sweep_progress
from mpifed.api.result import Result, load
from mpifed.api.run import connect_ranks, share_results, share_table
from mpifed.api.study import StudyLike, build_table
from mpifed.core import plugins
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.guards import is_integer
from mpifed.core.objects import to_plain
from mpifed.core.toml import flatten, toml_value
from mpifed.data.sources.held import IN_PROGRAM
from mpifed.mpi import launcher
from mpifed.mpi.world import World
from mpifed.sweeps import grid as grids
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runner import SweepLayout
from mpifed.sweeps.runner import sweep as carry_out


def sweep(
    experiment: StudyLike = None,
    grid: Mapping[Any, Any] | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: ProgressOption = "auto",
    **settings: Any,
) -> list[Result]:
    """Run every combination of values: ``mpifed.sweep("study.toml", {"algorithm.k0": [1, 5], "seed": range(3)})``.

    ``experiment`` and ``settings`` as for ``run``. ``grid``: key -> values, or a tuple of keys that change together ->
    tuples of values; values may be component objects. ``path``: folder of the result files, where points that are
    finished are not run again; None keeps the results in memory. ``jobs``: points that run at a time, each in a process
    (None: as many as there are cores and work is worth); arrays in memory, and classes that only this program has, stay
    in this process. ``force``: overwrite files of other configurations. ``progress`` as for ``run``.

    Returns the results in the order of the grid, under mpirun the same on every rank. A point that fails does not stop
    the others: it is a warning, and its result, if it has one, has the status failed. Raises UserError for a mistake in
    the experiment or the grid, before anything runs, and where all points fail.
    """
    points = list[Point]()
    with connect_ranks() as world, tempfile.TemporaryDirectory(prefix="mpifed-") as temporary:
        with world.agreeing():
            table = build_table(experiment, None, settings)
            axes = assignments(grid or {})
        share_table(table, world)
        with world.agreeing():
            if world.size > 1 and path is None:
                raise UserError("a sweep on several ranks needs path=FOLDER for its results")
            if world.first:
                points = grids.points(table, (), *axes)
                grids.check_ranks(points, world.size)
            layout = choose_layout(jobs, points)
            shown = sweep_progress(progress if world.first else False, [point.cost for point in points])
        folder = Path(temporary if path is None else path)
        # cheapest first, as the command does; results come in the order of the grid, and the last line is a summary
        *lines, _ = carry_out(grids.order_points(points), folder, world, force, shown, layout)
        return collect_results(points, folder, path is None, [line.text for line in lines if not line.fine], world)


def assignments(grid: Mapping[Any, Any]) -> tuple[list[str], list[str]]:
    """Return the grids and zips of a mapping, as the command has them. UserError where a key has no values."""
    single: list[str] = []
    together: list[str] = []
    for key, values in grid.items():
        is_single = isinstance(key, str)
        keys = [key] if is_single else list(key)
        rows = [[row] if is_single else list(row) for row in as_list(values, key if is_single else keys)]
        if any(len(row) != len(keys) for row in rows):
            raise UserError(f"grid[{key!r}] is wrong: every value must be a tuple of {len(keys)}")
        columns = zip(keys, zip(*rows, strict=True), strict=True)
        texts = [
            f"{name}={','.join(toml_value(to_plain(value, name, defaults=False)) for value in column)}"
            for name, column in columns
        ]
        (single if is_single else together).append(";".join(texts))
    if not grid:
        raise UserError('a sweep needs a grid, for example grid={"algorithm.k0": [1, 5, 10], "seed": range(20)}')
    return single, together


def as_list(values: Any, key: Any) -> Sequence[Any]:
    """Return the values of a key as a list; a single value stands for itself. UserError for an empty list."""
    if isinstance(values, str | Mapping | Component) or not isinstance(values, Iterable):
        return [values]
    items = list(values)
    if not items:
        raise UserError(f"grid[{key!r}] has no values")
    return items


def choose_layout(jobs: int | None, points: Sequence[Point]) -> SweepLayout:
    """Return the layout of points on the machine. UserError where ``jobs`` is impossible."""
    if jobs is not None and not is_integer(jobs, 1):
        raise UserError(f"jobs = {jobs!r} is wrong: it must be a whole number, at least 1, or None")
    if jobs is not None and jobs > 1 and launcher.read_launcher()[0] is not None:
        raise UserError(
            f"jobs = {jobs} is wrong under mpirun, where all ranks run one point after another: leave it out"
        )
    settings = [pair for point in points for pair in flatten(msgspec.to_builtins(point.config)).items()]
    local = any(str(value).startswith(f"{plugins.MAIN_MODULE}:") for _, value in settings)  # this program's classes
    local = local or any(("data.name", name) in settings for name in IN_PROGRAM)
    return SweepLayout(1 if local else jobs)


def collect_results(
    points: Sequence[Point], folder: Path, in_memory: bool, failures: list[str], world: World
) -> list[Result]:
    """Return the results of the points that have one, on every rank."""
    with world.agreeing():
        loaded = load_results(points, folder, in_memory, failures) if world.first else []
    return share_results(loaded, world) if world.size > 1 else loaded


def load_results(points: Sequence[Point], folder: Path, in_memory: bool, failures: list[str]) -> list[Result]:
    """Load the results of the points that have one; failures become a warning."""
    loaded = list[Result]()
    for file in (folder / point.file for point in points):
        if file.exists():
            loaded.append(load(file))
            # the folder is temporary: keep the bytes of the file for ``save``, and no path
            if in_memory:
                loaded[-1].path = None
                loaded[-1].image = file.read_bytes()
    if failures and not loaded:
        raise UserError(failures[0])
    if failures:
        warnings.warn("; ".join(failures), stacklevel=4)
    return loaded
