"""The command data: download a data set, or describe one and its division among clients."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.cli.describe import first_sentence
from mpifed.core import plugins
from mpifed.core.component import fields_of
from mpifed.core.errors import UserError
from mpifed.core.files import check_target
from mpifed.core.toml import toml_value
from mpifed.data import download
from mpifed.data.dataset import Data, Dataset
from mpifed.data.info import Survey, count_roles, describe, describe_missing_cells, survey
from mpifed.data.labels import add_note, fit_labels
from mpifed.data.tables.features import MissingCells
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment, experiment
from mpifed.features.personal_parts import describe_sizes, parameter_sizes
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
        style.picture_extension(args.output)
        check_target(args.output, args.force)
    table = study_of_word(args.name, args.overrides)
    has_problem = "problem" in table
    config = experiment(table)
    introduction = (
        [] if config.data.label() == "file" else [f"{config.data.label()}: {first_sentence(type(config.data))}"]
    )
    try:
        dataset = load_with_labels(config, has_problem)
    except MissingCells as refused:  # a user counts missing cells before deciding what to do about them
        if args.output is not None:
            raise
        return "\n\n".join([*introduction, describe_missing_cells(refused)])
    statistics = survey(dataset)
    lines = [*introduction, describe(dataset, statistics)]
    if has_problem and config.problem.has("parameter_sizes"):  # of other models they are the columns
        lines.append(f"parameters: {describe_sizes(parameter_sizes(config.problem, dataset))}")
    if args.output is not None:
        draw(dataset, statistics, config, args)
        lines.append(f"written to {args.output}")
    return "\n\n".join(lines)


def study_of_word(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the table of an experiment with the data that a word names, and with overrides."""
    if "=" in name:
        table = {}
        overrides = [name, *overrides]
    elif name.endswith(".toml"):
        table = configuration.read_experiment(name)
    elif (name in Data.names() and name != "file") or plugins.FILE_REFERENCE.fullmatch(name):
        table = {"data": {"name": name}}
    elif Path(name).suffix:
        table = {"data": {"name": "file", "path": name}}
    else:
        choices = ", ".join(Data.names())
        raise UserError(f"{name!r} is neither a data file nor a data set; the data sets are {choices}")
    mistake = next((word for word in overrides if "=" not in word), None)
    if mistake is not None:
        raise UserError(f"{mistake!r} is not an override: after {name!r} write KEY=VALUE, for example data.clients=10")
    return configuration.override(table, overrides)


def load_with_labels(config: Experiment, has_problem: bool) -> Dataset:
    """Load the data set with labels as the problem takes them, if the study has one, and with notes on labels."""
    dataset = config.data.load(config.seed, config.dtype)
    if not config.problem.sampled and config.problem.takes() == "numbers":
        return add_note(dataset, "the samples of a client are the rows of its matrix Q_i, the labels its vector b_i")
    try:
        if has_problem:
            return config.problem.fit_labels(dataset)
        values = dataset.values()
        is_binary = values is not None and len(values) == 2
        notes = fit_labels(dataset, "binary" if is_binary else "classes").notes[len(dataset.notes) :]
    except UserError as error:
        return add_note(dataset, str(error))
    except ValueError:
        return dataset
    for note in notes:
        dataset = add_note(dataset, f"where a problem has classes, {note}")
    return dataset


def draw(dataset: Dataset, statistics: Survey, config: Experiment, args: argparse.Namespace) -> None:
    spread = np.stack([statistics.mean, statistics.deviation, statistics.low, statistics.high])
    division = partition.Division(count_roles(dataset), statistics.names, spread)
    rule = dataset.division or ", ".join(changed_options(config.data))
    seed = config.seed if config.data.seed is None else config.data.seed
    title = ", ".join([f"{args.name}: {dataset.m} clients", *([rule] if rule else []), f"seed = {seed}"])
    style.save(partition.plot_partition(division, title), args.output, args.force)


def changed_options(source: Data) -> list[str]:
    """Return the options of a data set that differ from their defaults, except those in the title and tables."""
    fields = {key: field for key, field in fields_of(type(source)).items() if key not in ("clients", "seed")}
    changed = {key: value for key, field in fields.items() if (value := getattr(source, key)) != field.default}
    return [f"{key} = {toml_value(value)}" for key, value in changed.items() if isinstance(value, int | float | str)]
