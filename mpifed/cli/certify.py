"""The command certify."""

import argparse

from mpifed.cli.mistakes import is_result
from mpifed.cli.run import study
from mpifed.core.errors import UserError, concerning
from mpifed.experiment import optimum
from mpifed.experiment.config import experiment
from mpifed.experiment.stored_sizes import check_sizes
from mpifed.report.certificate import page
from mpifed.results.result import load


def certify(args: argparse.Namespace) -> str:
    result = None
    if any(map(is_result, args.study)):
        if len(args.study) > 1:
            raise UserError("certify takes one result file and nothing else: its study cannot be changed")
        result = load(args.study[0])
    with concerning("" if result is None else args.study[0]):
        config = experiment(study(args.study) if result is None else result.config)
        if result is not None:
            check_sizes(result, config)
        rounds = config.rounds if result is None else result.cr
        found = optimum.study(config) if result is None else optimum.study(config, result.x, rounds)
        parts = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
        name, problem, data = parts
        after = "" if result is None else f": {result.status} after {result.cr} rounds"
        return page(f"{name} on {problem} / {data}{after}", found, rounds, result)
