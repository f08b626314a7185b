"""The command certify."""

import argparse
from typing import Any

from mpifed.cli.mistakes import is_result
from mpifed.core.errors import UserError


def options(commands: Any) -> None:
    """The arguments of certify."""
    command = commands.add_parser(
        "certify",
        help="which conditions of the method's theorem a study meets, and what follows",
        description="Print the constants of a study, each condition of the theorem of its method with both sides, what "
        "the theorem proves and, for a result file, what the run had. It is a report: the exit code is 0 whether or "
        "not conditions hold.",
    )
    command.add_argument(
        "study",
        nargs="*",
        metavar="study.toml | out.h5 | KEY=VALUE",
        help="experiment file, then overrides: algorithm.t=6; or one result file",
    )
    command.set_defaults(act=certify)


def certify(args: argparse.Namespace) -> str:
    """What the command prints."""
    from mpifed.cli.run import study
    from mpifed.experiment import certify
    from mpifed.experiment.config import experiment
    from mpifed.report.certificate import page
    from mpifed.results.result import load

    result = None
    if any(map(is_result, args.study)):
        if len(args.study) > 1:
            raise UserError("certify takes one result file and nothing else: its study cannot be changed")
        result = load(args.study[0])
    config = experiment(study(args.study) if result is None else result.config)
    rounds = config.rounds if result is None else result.cr
    found = certify.study(config) if result is None else certify.study(config, result.x, rounds)
    name, problem, data = (part.label().rpartition(":")[2] for part in (config.algorithm, config.problem, config.data))
    after = "" if result is None else f": {result.status} after {result.cr} rounds"
    return page(f"{name} on {problem} / {data}{after}", found, rounds, result)
