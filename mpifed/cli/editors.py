"""The commands schema and completion: what editors and shells need to know about mpifed."""

import argparse
import json
from pathlib import Path
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.files import replacing

SHELLS = ("bash", "zsh", "tcsh")


def options(commands: Any) -> None:
    """The options of both."""
    printing = commands.add_parser(
        "schema",
        help="JSON schema of experiment files, for editors",
        description="Print the JSON schema of experiment files. With it, an editor completes and checks TOML.",
    )
    printing.add_argument("-o", "--output", metavar="FILE", help="write it to a file in place of the screen")
    printing.add_argument("--force", action="store_true", help="overwrite the file")
    printing.set_defaults(act=schema)
    completing = commands.add_parser(
        "completion",
        help="completion of the command mpifed, for a shell",
        description='Print a script that completes the command mpifed: eval "$(mpifed completion bash)" loads it.',
    )
    completing.add_argument("shell", choices=SHELLS, help="bash, zsh or tcsh")
    completing.set_defaults(act=completion)


def schema(args: argparse.Namespace) -> str:
    """The schema as JSON, or where it was written. UserError where it cannot be written."""
    from mpifed.experiment.schema import schema

    text = json.dumps(schema(), indent=2, ensure_ascii=False)
    if args.output is None:
        return text
    path = Path(args.output)
    with replacing(path, args.force) as part:
        part.write_text(text + "\n", "utf-8")
    return f"written to {path}"


def completion(args: argparse.Namespace) -> str:
    """A script for a shell that completes commands, options and files."""
    try:
        import shtab
    except ImportError:
        raise UserError('completion needs shtab: pip install "mpifed[completion]"') from None
    args.parser.prog = "mpifed"
    for action in actions(args.parser):
        if action.dest in ("study", "result", "output"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(args.parser, args.shell))


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options of a parser and of its commands."""
    found = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [inner for command in action.choices.values() for inner in actions(command)]
    return found
