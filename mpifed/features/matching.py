"""Which algorithm runs on which problem, and what is missing where it does not."""

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.component import Component, fields_of, within
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.federation.traits import demands, needs, spares
from mpifed.problems.problem import Problem

MARKS = "¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈᵉᶠᵍʰ"


class Matrix(NamedTuple):
    """Algorithms × problems: ``cells`` has a row for each algorithm; a mark in a cell refers to ``notes``."""

    problems: list[str]
    cells: dict[str, list[str]]
    notes: dict[str, str]
    options: list[str]


def refusal(algorithm: Algorithm, problem: Problem, lacking: Sequence[str]) -> str:
    """The sentence that a problem lacks what an algorithm needs; it names the algorithms that can run on it."""
    name, on = algorithm.label(), problem.label()
    able = [other for other in Algorithm.choices if not missing(default(other), type(problem))]
    others = ", ".join(other for other in able if other != name)
    own = remedy(algorithm, lacking, name in able)
    can = "" if own else " can"
    last = f"; {own}{others}{can}" if others else ""
    return f"{name} cannot run on {on}: it needs {described(lacking, problem.offers)}, which {on} does not have{last}"


def remedy(algorithm: Algorithm, lacking: Sequence[str], usual: bool) -> str:
    """With which options the algorithm can run after all; ``usual``: with its default options."""
    spare = spares(algorithm)
    options = [f"algorithm.{spare[need]}" for need in lacking if need in spare]
    if len(options) == len(lacking):
        return f"with {' and '.join(options)} it can, and so can "
    return "with its default options it can, and so can " if usual else ""


def missing(algorithm: Algorithm, problem: type[Problem]) -> list[str]:
    """The methods that an algorithm needs and a problem does not define."""
    return [need for need in needs(algorithm) if not problem.has(need)]


def described(needs: Sequence[str], offers: Mapping[str, str] = Problem.offers) -> str:
    """Optional methods of a problem by name and in the words of ``offers``."""
    words = [f"{need} ({offers[need]})" if need in offers else need for need in needs]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def default(name: str) -> Algorithm:
    """An algorithm of mpifed with its default options."""
    return Algorithm.member(name, "algorithm")()


def matrix() -> Matrix:
    """All algorithms and problems of mpifed."""
    problems = {name: Problem.member(name, "problem") for name in Problem.choices}
    reasons: dict[str, str] = {}
    cells = {}
    for name in Algorithm.choices:
        row = []
        for problem in problems.values():
            answer, reason = runs(default(name), problem)
            mark = reasons.setdefault(reason, MARKS[len(reasons)]) if reason else ""
            row.append(answer + mark)
        cells[name] = row
    options = [text for name in Algorithm.choices for text in with_options(name, problems)]
    return Matrix(list(problems), cells, {mark: reason for reason, mark in reasons.items()}, options)


def runs(algorithm: Algorithm, problem: type[Problem]) -> tuple[str, str]:
    """Whether an algorithm runs on a problem, yes or no, and why not or on which condition."""
    if lacking := missing(algorithm, problem):
        return "no", f"the algorithm needs {described(lacking, problem.offers)}"
    conditions = [f"it needs {demands(algorithm)}"] if demands(algorithm) else []
    if getattr(algorithm, "batch_size", 0) and not problem.sampled:
        conditions.append("algorithm.batch_size must be 0, for f_i is no mean over samples and has no mini-batches")
    return "yes", "; ".join(conditions)


def with_options(name: str, problems: dict[str, type[Problem]]) -> Iterator[str]:
    """What an algorithm needs with options other than the defaults, and which problems do not have it."""
    usual, spare = needs(default(name)), spares(default(name))
    if spare:
        yield f"{name} with {' and '.join(spare.values())} set does not need {described(list(spare))}"
    for key, field in fields_of(type(default(name))).items():
        for value in alternatives(field.type):
            try:
                wanted = needs(type(default(name))(**{field.name: value}))
            except (TypeError, ValueError, UserError):
                continue
            more = [need for need in wanted if need not in usual]
            if more:
                without = [on for on, problem in problems.items() if not all(map(problem.has, more))]
                value = value.label() if isinstance(value, Component) else value
                yield f"{name} with {key} = {toml_value(value)} needs {described(more)}: not {', '.join(without)}"


def alternatives(kind: Any) -> Iterator[Any]:
    """The values of a type that has few of them."""
    for part in within(kind):
        if typing.get_origin(part) is typing.Literal:
            yield from typing.get_args(part)
        elif part is bool:
            yield True
            yield False
        elif isinstance(part, type) and issubclass(part, Component) and part.choices:
            for name in part.choices:
                try:
                    yield part.member(name, "")()
                except (TypeError, ValueError, UserError):
                    continue
