"""The commands schema, completion and jobs, for editors, shells and batch systems."""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from mpifed.core.component import Component, StudyTable, fields_of, walk_type
from mpifed.core.errors import UserError, import_required, reason
from mpifed.core.files import replace_file
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.availability import Availability
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
    shtab = import_required("shtab", 'completion needs shtab: pip install "mpifed[completion]"')
    args.parser.prog = "mpifed"
    parsers = [args.parser, *args.parser.commands.values()]
    for action in (action for parser in parsers for action in parser._actions):
        if action.dest in ("study", "result", "output"):
            action.complete = shtab.FILE
    return str(shtab.complete(args.parser, args.shell))


PACKAGE = Path(__file__).resolve().parent.parent
HOMES = (PACKAGE / "jobs", PACKAGE.parent / "jobs")  # in a wheel, or beside the package in a clone


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
    number = [{"type": "number"}] if issubclass(base, Distribution | Availability) else []  # for all clients
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


def jobs(args: argparse.Namespace) -> str:
    """Copy the scripts to the folder jobs in ``--to``; return their path. UserError where one is there already."""
    source = next((home for home in HOMES if (home / "single.sbatch").exists()), None)
    if source is None:
        raise UserError("the scripts of jobs/ are not in this installation of mpifed: take them from its repository")
    if not Path(args.to).is_dir():
        raise UserError(f"--to {args.to} is wrong: there is no such folder")
    target = Path(args.to, "jobs")
    names = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
    existing = [name for name in names if (target / name).exists()]
    if existing and (not args.force or target.samefile(source)):
        raise UserError(f"{target / existing[0]} exists; say --force to overwrite it or --to for another folder")
    try:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {reason(error)}") from None
    return f"written to {target}: " + ", ".join(map(str, names))
