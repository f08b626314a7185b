"""The command certify."""

import argparse

from mpifed.cli.mistakes import is_result
from mpifed.cli.run import study
from mpifed.core.errors import UserError, concerning
from mpifed.data.cache import Cache
from mpifed.experiment import optimum
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.stored_sizes import check_sizes
from mpifed.report import least_time, style
from mpifed.report.certificate import page
from mpifed.results.result import Result, load
from mpifed.theory.least_time import Setting


def certify(args: argparse.Namespace) -> str:
    result = None
    asked = [] if args.eps is None else least_time.accuracies(args.eps)
    if args.picture is not None:
        style.kind(args.picture)
    if any(map(is_result, args.study)):
        if len(args.study) > 1:
            raise UserError("certify takes one result file and nothing else: its study cannot be changed")
        result = load(args.study[0])
    with concerning("" if result is None else args.study[0]):
        config = experiment(study(args.study) if result is None else result.config)
        check_wishes(args, config, result)
        if result is not None:
            check_sizes(result, config)
        rounds = config.rounds if result is None else result.cr
        # the bound of the least time is about the same data, which are read once
        cache = Cache()
        x = None if result is None else result.x
        found = optimum.study(config, x, rounds, cache)
        parts = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
        name, problem, data = parts
        after = "" if result is None else f": {result.status} after {result.cr} rounds"
        text = page(f"{name} on {problem} / {data}{after}", found, rounds, result)
        if config.asynchronous is None:
            return text
        assert found.constants is not None
        setting = optimum.least_time(config, found.constants, x, cache)
        return f"{text}\n\n{time_part(args, setting, result, asked)}"


def check_wishes(args: argparse.Namespace, config: Experiment, result: Result | None) -> None:
    """UserError for options that are about asynchronous runs where there is none."""
    for option, value in {"--eps": args.eps, "--picture": args.picture}.items():
        if value is not None and config.asynchronous is None:
            raise UserError(
                f"{option} {value} is wrong without [asynchronous]: the least time is about asynchronous runs"
            )
    if args.picture is not None and result is None:
        raise UserError(f"--picture {args.picture} is wrong without a run: give a result file")


def time_part(args: argparse.Namespace, setting: Setting, result: Result | None, asked: list[float]) -> str:
    """What certify says of the least time, with the picture where one is wanted."""
    text = least_time.block(setting, result, asked)
    if args.picture is None or result is None:
        return text
    style.save(least_time.picture(setting, result), args.picture, args.force)
    return f"{text}\n\nwritten to {args.picture}"
