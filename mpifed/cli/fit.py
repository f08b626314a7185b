"""The command fit."""

import argparse
import sys

from mpifed.cli.mistakes import is_result
from mpifed.cli.run import study
from mpifed.core.errors import UserError, concerning, printable
from mpifed.data.cache import Cache
from mpifed.experiment.config import experiment, override
from mpifed.experiment.job import Job
from mpifed.experiment.run import start
from mpifed.report.fit_page import page
from mpifed.results.result import load
from mpifed.statistics.fitted import again, fitted


def fit(args: argparse.Namespace) -> str:
    cache = Cache()
    if any(map(is_result, args.study)):
        first, *words = args.study
        if not is_result(first) or not all(word.startswith("data.") for word in words):
            raise UserError(
                "fit takes one result file, whose study cannot be changed, and perhaps data.path=FILE, where its data "
                "are now"
            )
        result = load(first)
        with concerning(first):
            config = again(result, experiment(override(result.config, words)))
            found = fitted(result, config, cache)
    else:
        config = experiment(study(args.study))
        recorder = start(Job(config), cache=cache)
        assert recorder is not None
        result = recorder.result()
        found = fitted(result, config, cache)
    name, problem, data = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
    if args.format == "csv":  # a table alone, which notes would spoil
        for note in found.notes:
            sys.stderr.write(f"mpifed: {printable(note)}\n")
    return page(f"{problem} on {data} by {name}: {result.status}", found, args.format)
