"""The commands run and resume."""

import argparse
import copy
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from mpifed.cli.main import say
from mpifed.cli.mistakes import refuse_words
from mpifed.core.errors import UserError, concerning
from mpifed.core.files import claim, unclaim
from mpifed.experiment import config as configuration
from mpifed.experiment.checkpoint import Saved
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress
from mpifed.experiment.resume import resume
from mpifed.experiment.run import build, start
from mpifed.mpi.world import World
from mpifed.report.summary import show
from mpifed.results.result import Result

Begin = tuple[dict[str, Any], str, Saved | None, Result | None]  # table, path, checkpoint and the result so far


def run(args: argparse.Namespace, world: World) -> int:
    """The commands run and resume, on every rank; rank 0 reads the files."""
    resumed = args.command == "resume"
    begin: Begin = ({}, "", None, None)
    with world.agreeing():
        if world.first:
            # rank 0 alone reads: the file may change between two reads, or be on a disk that other nodes do not have
            if resumed:
                refuse_words(args.overrides)
                found = resume(args.result, args.overrides)
                begin = found[0], args.result, *found[1:]
            else:
                begin = begun(args)
    *_, before = begin
    table, path, saved = world.share(begin[:3])
    unnamed = not resumed and args.output is None  # so that rank 0 has claimed a name
    # the claim is given back whatever happens: a mistake in the study would leave an empty file at every attempt
    try:
        config = build(table, world)
        loud = world.first and not args.quiet
        if args.verbose and loud:
            say(config.toml() + "\n")
        progress = Progress(sys.stderr if loud else None)
        if resumed:
            told = "has no checkpoint: starting again" if saved is None else f"continues after round {saved.round}"
            progress.note(f"{path} {told}")
        force = resumed or args.force or unnamed
        with concerning(path if resumed else ""):
            recorder = start(Job(config, path, force, saved, before, args.survive), world, progress)
        if recorder is not None and loud:
            say(show(recorder.result(), args.verbose))
            say(f"\nwritten to {path}")
    finally:
        if unnamed and world.first:
            unclaim(path)
    return 0


def begun(args: argparse.Namespace) -> Begin:
    """A new run; without -o an empty file claims the name of its result."""
    table = study(args.study)
    return table, claim(names(experiment(table))) if args.output is None else args.output, None, None


def study(words: Sequence[str]) -> dict[str, Any]:
    refuse_words(words)
    files = [word for word in words if "=" not in word]
    if len(files) > 1:
        raise UserError(f"a run has one experiment file, not {len(files)}: {', '.join(files)}; overrides are KEY=VALUE")
    table = configuration.read(files[0]) if files else copy.deepcopy(configuration.DEFAULT_STUDY)
    return configuration.override(table, [word for word in words if "=" in word])


def names(config: Experiment) -> Iterator[str]:
    """The names of a result without -o: mpifed-<algorithm>-<data>-<n>.h5, n = 1, 2 …"""
    parts = (part.label().rpartition(":")[2] for part in (config.algorithm, config.data))
    first = "-".join(["mpifed", *parts])
    return (f"{first}-{n}.h5" for n in itertools.count(1))
