"""The commands schema and completion, for editors and shells: a JSON schema checks and completes TOML."""

import argparse
import json
from pathlib import Path
from typing import Any

import msgspec

from mpifed.core.component import Component, StudyTable, fields_of, walk_type
from mpifed.core.errors import UserError
from mpifed.core.files import replace_file
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.distributions import Distribution

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ABOUT = "An experiment of mpifed. Every key has a default. A family, such as algorithm, takes a name or a table."


def schema(args: argparse.Namespace) -> str:
    """Return the schema as JSON, or write it. UserError where it cannot be written."""
    text = json.dumps(experiment_schema(), indent=2, ensure_ascii=False)
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


def experiment_schema() -> dict[str, Any]:
    """Return the schema of an experiment file, JSON Schema 2020-12.

    A name of mpifed brings its own keys. Other names, those of plugins and path.py:Class, may have any keys.
    """
    tables = reachable_tables(Experiment)
    refs, parts = msgspec.json.schema_components(tables, ref_template="#/$defs/{name}")
    names = {table: ref["$ref"].rpartition("/")[2] for table, ref in zip(tables, refs, strict=True)}
    for table, name in names.items():
        if issubclass(table, Component) and "choices" in vars(table):
            members = [names[table.member(label, "name")] for label in table.choices]
            parts[name] = family_schema(table, [f"#/$defs/{member}" for member in members])
            for label, member in zip(table.choices, members, strict=True):
                if table.kind == "problems" or label == table.default:
                    parts[member]["required"].remove("name")
    root = parts.pop(names[Experiment])
    del root["required"]
    return {"$schema": DRAFT, **root, "title": "mpifed experiment", "description": ABOUT, "$defs": parts}


def family_schema(base: type[Component], members: list[str]) -> dict[str, Any]:
    """Return the schema of a family: a name, or a table of one of its members or of a plugin.

    A table without a name is one of the default; the default problem depends on the data, so it may be any.
    """
    names = list(base.choices)
    plugin = {
        "description": "a member from outside mpifed",
        "type": "object",
        "properties": {"name": {"type": "string", "not": {"enum": names}}},
        "required": ["name"],
    }
    number = [{"type": "number"}] if issubclass(base, Distribution) else []  # for the constant distribution
    tables = [{"$ref": member} for member in members]
    return {"anyOf": [{"enum": names}, *tables, plugin, {"type": "string"}, *number]}


def reachable_tables(table: type[StudyTable]) -> list[type[StudyTable]]:
    """Return a table and all tables that its fields name, directly or not, members of families included."""
    tables: list[type[StudyTable]] = []
    todo: list[type[StudyTable]] = [table]
    while todo:
        table = todo.pop(0)
        if table in tables:
            continue
        tables.append(table)
        for field in fields_of(table).values():
            todo += [cls for cls in walk_type(field.type) if isinstance(cls, type) and issubclass(cls, StudyTable)]
        if issubclass(table, Component) and "choices" in vars(table):
            todo += [table.member(name, "name") for name in table.choices]
    return tables
