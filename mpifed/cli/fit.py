"""The command fit."""

import argparse
import sys

from mpifed.cli.mistakes import is_result
from mpifed.cli.run import read_study
from mpifed.core.errors import UserError, errors_about, escape_unprintable
from mpifed.data.cache import Cache
from mpifed.experiment.config import Job, experiment, override
from mpifed.experiment.run import start
from mpifed.report.fit_page import format_fit
from mpifed.results.result import load
from mpifed.statistics.fitted import fit_model, require_same_data


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
        with errors_about(first):
            config = require_same_data(result, experiment(override(result.config, words)))
            coefficients = fit_model(result, config, cache)
    else:
        config = experiment(read_study(args.study))
        recorder = start(Job(config), cache=cache)
        assert recorder is not None
        result = recorder.result()
        coefficients = fit_model(result, config, cache)
    name, problem, data = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
    if args.format == "csv":  # notes would spoil the table
        for note in coefficients.notes:
            sys.stderr.write(f"mpifed: {escape_unprintable(note)}\n")
    return format_fit(f"{problem} on {data} by {name}: {result.status}", coefficients, args.format)
