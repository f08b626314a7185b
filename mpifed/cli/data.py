"""The command data: download a data set, or describe one and how it is divided among clients."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.cli.describe import sentence
from mpifed.core import plugins
from mpifed.core.component import fields_of
from mpifed.core.errors import UserError
from mpifed.core.files import checked_target
from mpifed.core.toml import toml_value
from mpifed.data import download
from mpifed.data.dataset import Data, Dataset
from mpifed.data.info import Survey, describe, missing_cells, survey
from mpifed.data.labels import fitted, noted
from mpifed.data.tables.missing import MissingCells
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment, experiment
from mpifed.report import partition, style


def data(args: argparse.Namespace) -> str:
    """Download a data set (``get``), or describe one (``info``)."""
    if args.action == "info":
        return info(args)
    if args.overrides or args.output is not None:
        word = args.overrides[0] if args.overrides else "-o"
        raise UserError(f"{word} is for data info: data get takes the name of a data set and --to DIR")
    notes = download.fetch(args.name, Path(args.to))
    return "written to " + ", ".join(f"{path} ({note})" for path, note in notes.items())


def info(args: argparse.Namespace) -> str:
    if args.output is not None:
        style.kind(args.output)
        checked_target(args.output, args.force)
    table = study(args.name, args.overrides)
    meant = "problem" in table
    config = experiment(table)
    about = [] if config.data.label() == "file" else [f"{config.data.label()}: {sentence(type(config.data))}"]
    try:
        dataset = labelled(config, meant)
    except MissingCells as refused:  # which a user counts before saying what to do about them
        if args.output is not None:
            raise
        return "\n\n".join([*about, missing_cells(refused)])
    found = survey(dataset)
    lines = [*about, describe(dataset, found)]
    if args.output is not None:
        draw(dataset, found, config, args)
        lines.append(f"written to {args.output}")
    return "\n\n".join(lines)


def study(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The table of an experiment with the data that a word names, and with overrides."""
    if "=" in name:
        table = {}
        overrides = [name, *overrides]
    elif name.endswith(".toml"):
        table = configuration.read(name)
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
    return configuration.override(table, overrides)


def labelled(config: Experiment, meant: bool) -> Dataset:
    """The data set with labels as the problem takes them, where one is ``meant``, and notes on labels."""
    dataset = config.data.load(config.seed, config.dtype)
    if not config.problem.sampled and config.problem.takes() == "numbers":
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
    spread = np.stack([found.mean, found.deviation, found.low, found.high])
    view = partition.Division(dataset.sizes, found.names, found.counts, spread)
    rule = dataset.division or ", ".join(settings(config.data))
    seed = config.seed if config.data.seed is None else config.data.seed
    title = ", ".join([f"{args.name}: {dataset.m} clients", *([rule] if rule else []), f"seed = {seed}"])
    style.save(partition.picture(view, title), args.output, args.force)


def settings(source: Data) -> list[str]:
    """The options of a data set that are not at their defaults, but for those in the title and for tables."""
    fields = {key: field for key, field in fields_of(type(source)).items() if key not in ("clients", "seed")}
    changed = {key: value for key, field in fields.items() if (value := getattr(source, key)) != field.default}
    return [f"{key} = {toml_value(value)}" for key, value in changed.items() if isinstance(value, int | float | str)]
