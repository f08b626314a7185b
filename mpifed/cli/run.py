"""The commands run and resume."""

import argparse
import copy
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from mpifed.cli.main import say
from mpifed.cli.mistakes import refuse_words
from mpifed.core.errors import UserError, errors_about
from mpifed.core.files import claim_name, release_name
from mpifed.experiment import config as configuration
from mpifed.experiment.checkpoint import StoredCheckpoint
from mpifed.experiment.config import Experiment, Job, experiment
from mpifed.experiment.progress import Progress
from mpifed.experiment.resume import resume
from mpifed.experiment.run import build_experiment, start
from mpifed.mpi.world import World
from mpifed.report.summary import show
from mpifed.results.result import RunRecord

RunInput = tuple[
    dict[str, Any], str, StoredCheckpoint | None, RunRecord | None
]  # table, path, checkpoint and the result so far


def run(args: argparse.Namespace, world: World) -> int:
    """Carry out the commands run and resume, on every rank; rank 0 reads the files."""
    resumed = args.command == "resume"
    run_input: RunInput = ({}, "", None, None)
    with world.agreeing():
        if world.first:
            # only rank 0 reads: the file may change between two reads, or be on a disk that other nodes do not have
            if resumed:
                refuse_words(args.overrides)
                resumed_input = resume(args.result, args.overrides)
                run_input = resumed_input[0], args.result, *resumed_input[1:]
            else:
                run_input = new_run(args)
    *_, before = run_input
    table, path, saved = world.share(run_input[:3])
    unnamed = not resumed and args.output is None  # so rank 0 has claimed a name
    # always release the claim: else every mistake in a study would leave an empty file
    try:
        config = build_experiment(table, world)
        speaks = world.first and not args.quiet
        if args.verbose and speaks:
            say(config.toml() + "\n")
        progress = Progress(sys.stderr if speaks else None)
        if resumed:
            text = "has no checkpoint: starting again" if saved is None else f"continues after round {saved.round}"
            progress.note(f"{path} {text}")
        force = resumed or args.force or unnamed
        with errors_about(path if resumed else ""):
            recorder = start(Job(config, path, force, saved, before, args.survive), world, progress)
        if recorder is not None and speaks:
            say(show(recorder.result(), args.verbose))
            say(f"\nwritten to {path}")
    finally:
        if unnamed and world.first:
            release_name(path)
    return 0


def new_run(args: argparse.Namespace) -> RunInput:
    """Return the table and path of a new run; without -o an empty file claims the name of its result."""
    table = read_study(args.study)
    return table, claim_name(result_names(experiment(table))) if args.output is None else args.output, None, None


def read_study(words: Sequence[str]) -> dict[str, Any]:
    """Read the table of a study from an experiment file, if there is one, and overrides."""
    refuse_words(words)
    files = [word for word in words if "=" not in word]
    if len(files) > 1:
        raise UserError(f"a run has one experiment file, not {len(files)}: {', '.join(files)}; overrides are KEY=VALUE")
    table = configuration.read_experiment(files[0]) if files else copy.deepcopy(configuration.DEFAULT_STUDY)
    return configuration.override(table, [word for word in words if "=" in word])


def result_names(config: Experiment) -> Iterator[str]:
    """Yield the names of a result without -o: mpifed-<algorithm>-<data>-<n>.h5, n = 1, 2 …"""
    parts = (part.label().rpartition(":")[2] for part in (config.algorithm, config.data))
    first = "-".join(["mpifed", *parts])
    return (f"{first}-{n}.h5" for n in itertools.count(1))
