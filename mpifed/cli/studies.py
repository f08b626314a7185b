"""The commands certify, fit and check."""

import argparse
import sys

from mpifed.checking.check import check as checked
from mpifed.checking.families import classes_named
from mpifed.cli.main import Mistakes
from mpifed.cli.mistakes import is_result
from mpifed.cli.run import read_study
from mpifed.core.errors import UserError, errors_about, escape_unprintable
from mpifed.data.cache import Cache
from mpifed.experiment import optimum
from mpifed.experiment.config import Experiment, Job, experiment, override
from mpifed.experiment.resume import check_sizes
from mpifed.experiment.run import start
from mpifed.report import least_time, style
from mpifed.report.certificate import format_certificate
from mpifed.report.fit_page import format_fit
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
        if config.privacy is not None:
            return describe_privacy(config, result)
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


def describe_privacy(config: Experiment, result: RunRecord | None) -> str:
    """Return the privacy of a study, or of what a run has spent, in ten lines."""
    from mpifed.experiment.prepare import prepare
    from mpifed.features.privacy.feature import describe_study

    parts = prepare(Job(config), 1)
    if result is None:
        return describe_study(parts.features, parts.setup)
    run = result.cr, result.clients["times_selected"], int(result.attrs.get("rounds_redrawn", 0))
    return describe_study(parts.features, parts.setup, run)


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


def fit(args: argparse.Namespace) -> str:
    from mpifed.statistics.fitted import fit_model, require_same_data  # it imports scipy.stats, which takes time

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


def check(args: argparse.Namespace) -> str:
    reports, refused = [], list[UserError]()
    for cls in classes_named(args.name):
        try:
            reports.append(checked(cls, {"name": args.name}, read_study(args.study)))
        except UserError as error:  # gd is a method, and a solver that needs an option
            refused.append(error)
    if not reports:
        raise refused[0]
    text = "\n\n".join([*map(str, reports), *(f"not checked: {error}" for error in refused)])
    if not all(reports):
        raise Mistakes(text)
    return text
