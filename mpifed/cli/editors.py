"""The commands schema and completion, for editors and shells."""

import argparse
import json
from pathlib import Path

from mpifed.core.errors import UserError
from mpifed.core.files import replace_file
from mpifed.experiment.schema import schema as experiments


def schema(args: argparse.Namespace) -> str:
    """Return the schema as JSON, or write it. UserError where it cannot be written."""
    text = json.dumps(experiments(), indent=2, ensure_ascii=False)
    if args.output is None:
        return text
    path = Path(args.output)
    with replace_file(path, args.force) as part:
        part.write_text(text + "\n", "utf-8")
    return f"written to {path}"


def completion(args: argparse.Namespace) -> str:
    try:
        import shtab
    except ImportError:
        raise UserError('completion needs shtab: pip install "mpifed[completion]"') from None
    args.parser.prog = "mpifed"
    parsers = [args.parser, *args.parser.commands.values()]
    for action in (action for parser in parsers for action in parser._actions):
        if action.dest in ("study", "result", "output"):
            action.complete = shtab.FILE
    return str(shtab.complete(args.parser, args.shell))
