"""The commands schema and completion: what editors and shells need to know about mpifed."""

import argparse
import json
from pathlib import Path

from mpifed.core.errors import UserError
from mpifed.core.files import replacing
from mpifed.experiment.schema import schema as experiments


def schema(args: argparse.Namespace) -> str:
    """The schema as JSON, or where it was written. UserError where it cannot be written."""
    text = json.dumps(experiments(), indent=2, ensure_ascii=False)
    if args.output is None:
        return text
    path = Path(args.output)
    with replacing(path, args.force) as part:
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
