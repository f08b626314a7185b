"""The command certify."""

import argparse

from mpifed.cli.mistakes import is_result
from mpifed.cli.run import read_study
from mpifed.core.errors import UserError, errors_about
from mpifed.data.cache import Cache
from mpifed.experiment import optimum
from mpifed.experiment.config import Experiment, experiment
from mpifed.experiment.resume import check_sizes
from mpifed.report import least_time, style
from mpifed.report.certificate import format_certificate
from mpifed.results.result import RunRecord, load
from mpifed.theory.least_time import LeastTimeInputs


def certify(args: argparse.Namespace) -> str:
    result = None
    accuracies = [] if args.eps is None else least_time.parse_accuracies(args.eps)
    if args.picture is not None:
        style.picture_extension(args.picture)
    if any(map(is_result, args.study)):
        if len(args.study) > 1:
            raise UserError("certify takes one result file and nothing else: its study cannot be changed")
        result = load(args.study[0])
    with errors_about("" if result is None else args.study[0]):
        config = experiment(read_study(args.study) if result is None else result.config)
        check_options(args, config, result)
        if result is not None:
            check_sizes(result, config)
        rounds = config.rounds if result is None else result.cr
        # the least-time bound uses the same data: read them once
        cache = Cache()
        x = None if result is None else result.x
        certificate = optimum.compute_certificate(config, x, rounds, cache)
        parts = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
        name, problem, data = parts
        after = "" if result is None else f": {result.status} after {result.cr} rounds"
        text = format_certificate(f"{name} on {problem} / {data}{after}", certificate, rounds, result)
        if config.asynchronous is None:
            return text
        assert certificate.constants is not None
        setting = optimum.least_time_setting(config, certificate.constants, x, cache)
        return f"{text}\n\n{least_time_text(args, setting, result, accuracies)}"


def check_options(args: argparse.Namespace, config: Experiment, result: RunRecord | None) -> None:
    """Raise UserError for options about asynchronous runs where there is none."""
    for option, value in {"--eps": args.eps, "--picture": args.picture}.items():
        if value is not None and config.asynchronous is None:
            raise UserError(
                f"{option} {value} is wrong without [asynchronous]: the least time is about asynchronous runs"
            )
    if args.picture is not None and result is None:
        raise UserError(f"--picture {args.picture} is wrong without a run: give a result file")


def least_time_text(
    args: argparse.Namespace, setting: LeastTimeInputs, result: RunRecord | None, accuracies: list[float]
) -> str:
    """Return the part about the least time, and draw its picture where one is requested."""
    text = least_time.format_least_time(setting, result, accuracies)
    if args.picture is None or result is None:
        return text
    style.save(least_time.plot_least_time(setting, result), args.picture, args.force)
    return f"{text}\n\nwritten to {args.picture}"
