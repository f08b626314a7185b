"""The command data: download a data set, or describe one and how it is divided among clients."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpifed.core.errors import UserError

if TYPE_CHECKING:
    from mpifed.data.base import Data, Dataset
    from mpifed.data.info import Survey
    from mpifed.experiment.config import Experiment


def options(commands: Any) -> None:
    """The command data."""
    command = commands.add_parser(
        "data",
        help="download a data set (get), or describe data and how they are divided among clients (info)",
        description="data get NAME --to DIR downloads a data set. data info NAME-or-FILE [KEY=VALUE …] describes a "
        "data set, a data file or the data of an experiment file; the overrides are those of run.",
    )
    command.add_argument("action", choices=("get", "info"))
    command.add_argument("name", help="get: a data set; info: a data set, a data file or an experiment file")
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="info: data.clients=10 data.partition=iid …")
    command.add_argument("--to", default=".", help="get: folder to download into (default: the current one)")
    command.add_argument("-o", "--output", help="info: picture of the classes at each client: .png, .pdf or .svg")
    command.add_argument("--force", action="store_true", help="info: overwrite the picture")
    command.set_defaults(act=data)


def data(args: argparse.Namespace) -> str:
    """Download a data set (``get``), or describe one (``info``)."""
    if args.action == "info":
        return info(args)
    from mpifed.data import download

    if args.overrides or args.output is not None:
        word = args.overrides[0] if args.overrides else "-o"
        raise UserError(f"{word} is for data info: data get takes the name of a data set and --to DIR")
    notes = download.fetch(args.name, Path(args.to))
    return "written to " + ", ".join(f"{path} ({note})" for path, note in notes.items())


def info(args: argparse.Namespace) -> str:
    """Describe a data set in words, and draw it where a picture is asked for."""
    from mpifed.cli.describe import sentence
    from mpifed.core.files import checked_target
    from mpifed.data.info import describe, survey
    from mpifed.experiment.config import experiment

    if args.output is not None:
        from mpifed.report import style

        style.kind(args.output)
        checked_target(args.output, args.force)
    table = study(args.name, args.overrides)
    meant = "problem" in table
    config = experiment(table)
    dataset = labelled(config, meant)
    found = survey(dataset)
    about = [] if config.data.label() == "file" else [f"{config.data.label()}: {sentence(type(config.data))}"]
    lines = [*about, describe(dataset, found)]
    if args.output is not None:
        draw(dataset, found, config, args)
        lines.append(f"written to {args.output}")
    return "\n\n".join(lines)


def study(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The table of an experiment with the data that a word names, and with overrides."""
    from mpifed.core import plugins
    from mpifed.data.base import Data
    from mpifed.experiment import config

    if "=" in name:
        table = {}
        overrides = [name, *overrides]
    elif name.endswith(".toml"):
        table = config.read(name)
    elif (name in Data.names() and name != "file") or plugins.FILE.fullmatch(name):
        table = {"data": {"name": name}}
    elif Path(name).suffix:
        table = {"data": {"name": "file", "path": name}}
    else:
        choices = ", ".join(Data.names())
        raise UserError(f"{name!r} is neither a data file nor a data set; the data sets are {choices}")
    wrong = next((word for word in overrides if "=" not in word), None)
    if wrong is not None:
        raise UserError(f"{wrong!r} is not an override: after {name!r} write KEY=VALUE, for example data.clients=10")
    return config.override(table, overrides)


def labelled(config: Experiment, meant: bool) -> Dataset:
    """The data set with labels as the problem takes them, where one is ``meant``, and notes on labels."""
    from mpifed.data.labels import fitted, noted

    dataset = config.data.load(config.seed, config.dtype)
    if not config.problem.sampled:
        return noted(dataset, "the samples of a client are the rows of its matrix Q_i, the labels its vector b_i")
    try:
        if meant:
            return config.problem.fitted(dataset)
        values = dataset.values()
        two = values is not None and len(values) == 2
        notes = fitted(dataset, "binary" if two else "classes").notes[len(dataset.notes) :]
    except UserError as error:
        return noted(dataset, str(error))
    except ValueError:
        return dataset
    for note in notes:
        dataset = noted(dataset, f"where a problem has classes, {note}")
    return dataset


def draw(dataset: Dataset, found: Survey, config: Experiment, args: argparse.Namespace) -> None:
    """Save the picture of a data set."""
    import numpy as np

    from mpifed.report import partition, style

    spread = np.stack([found.mean, found.deviation, found.low, found.high])
    view = partition.Division(dataset.sizes, found.names, found.counts, spread)
    rule = dataset.division or ", ".join(settings(config.data))
    seed = config.seed if config.data.seed is None else config.data.seed
    title = ", ".join([f"{args.name}: {dataset.m} clients", *([rule] if rule else []), f"seed = {seed}"])
    style.save(partition.picture(view, title), args.output, args.force)


def settings(source: Data) -> list[str]:
    """The options of generated data that are not the default ones: alpha = 0.1."""
    from mpifed.core.component import fields_of
    from mpifed.core.toml import toml_value

    fields = {key: field for key, field in fields_of(type(source)).items() if key not in ("clients", "seed")}
    changed = {key: value for key, field in fields.items() if (value := getattr(source, key)) != field.default}
    return [f"{key} = {toml_value(value)}" for key, value in changed.items() if isinstance(value, int | float | str)]
