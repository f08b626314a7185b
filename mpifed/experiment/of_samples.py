"""Studies whose samples have weights or offsets: what goes with them, and what computes them."""

from __future__ import annotations

from typing import Any

import msgspec

from mpifed.data.base import Dataset
from mpifed.data.sample_columns import COLUMNS, SampleColumns
from mpifed.features.matching import described, missing
from mpifed.features.rule import Found, Rule, refuse
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.kernels.blocks import Block
from mpifed.kernels.sample_block import OfSamples, SampleBlock, SparseSampleBlock
from mpifed.problems.base import Problem
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.of_samples import made, of_samples, takes


class Sampled(msgspec.Struct):
    """Settings once data are loaded whose samples have the columns ``names``."""

    config: Experiment
    names: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.config, name)


def strange(c: Sampled) -> Found:
    """The column that the problem does not take, and which problems do."""
    wrong = next((name for name in c.names if not takes(type(c.problem), name)), None)
    if wrong is None:
        return None
    able = [name for name in Problem.choices if takes(Problem.member(name, "problem"), wrong)]
    instead = "; data.offset takes the logarithms" if wrong == "exposure" and takes(type(c.problem), "offset") else ""
    return {"what": COLUMNS[wrong], "able": ", ".join(able), "instead": instead}


def lacking(c: Sampled) -> Found:
    """What the method needs, and a problem has for plain samples alone."""
    assert isinstance(c.problem, LinearModel)
    found = missing(c.algorithm, made(type(c.problem), False))
    return {"needs": described(found)} if found else None


SAMPLED: list[Rule[Sampled]] = [
    Rule(strange, "samples have {what}, and problem {loss} takes none: {able} do{instead}"),
    Rule(lacking, "samples have weights or offsets, and {name} needs {needs}, which are there for plain samples alone"),
    Rule(
        lambda c: c.kernels not in ("auto", "numpy"),
        'kernels = "{kernels}" is wrong: numpy alone reads weights and offsets of samples, so it must be "auto"',
    ),
]


def problem_of(config: Experiment, data: Dataset) -> Problem:
    """The problem of a run: that of the study, or for samples with weights or offsets the one with these.

    UserError where there is none, or the method or the kernels cannot have them.
    """
    if data.columns is None:
        return config.problem
    refuse(Sampled(config, data.columns.names), SAMPLED)
    assert isinstance(config.problem, LinearModel)
    return of_samples(config.problem, "frequency" in data.columns.names)


def block_of(data: Dataset) -> type[Block]:
    """In what samples are."""
    if data.columns is None:
        return Block
    return SparseSampleBlock if data.sparse else SampleBlock


def put(columns: SampleColumns | None, host: Host) -> None:
    """Give the blocks of a host the weights and offsets of their samples, where these have any."""
    if columns is None:
        return
    for _, block, ids in host.whole:
        for own, clients, test in [(block, ids, False), *((test, ids[rows], True) for rows, test in block.tests)]:
            assert isinstance(own, OfSamples)
            own.put(*columns.padded(clients, own.b.shape[1], test))
