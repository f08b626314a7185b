"""The command fit."""

import argparse

from mpifed.cli.mistakes import is_result
from mpifed.cli.run import study
from mpifed.core.errors import UserError
from mpifed.data.cache import Cache
from mpifed.experiment.config import experiment
from mpifed.experiment.fitted import fitted
from mpifed.experiment.job import Job
from mpifed.experiment.run import start
from mpifed.report.fit import page
from mpifed.results.result import load


def fit(args: argparse.Namespace) -> str:
    """What the command prints."""
    cache = Cache()
    if any(map(is_result, args.study)):
        if len(args.study) > 1:
            raise UserError("fit takes one result file and nothing else: its study cannot be changed")
        result = load(args.study[0])
        config = experiment(result.config)
    else:
        config = experiment(study(args.study))
        recorder = start(Job(config), cache=cache)
        assert recorder is not None
        result = recorder.result()
    name, problem, data = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
    return page(f"{problem} on {data} by {name}: {result.status}", fitted(result, config, cache), args.format)
