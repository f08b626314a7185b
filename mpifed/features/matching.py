"""Algorithms and the problems that they run on, with what is missing where they cannot."""

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.component import Component, fields_of, walk_type
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.federation.traits import further_requirements, options_instead, required_methods
from mpifed.problems.problem import Problem

MARKS = "¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈᵉᶠᵍʰ"


class CompatibilityMatrix(NamedTuple):
    """Table of algorithms × problems: ``cells`` has a row for each algorithm; a mark in a cell refers to ``notes``."""

    problems: list[str]
    cells: dict[str, list[str]]
    notes: dict[str, str]
    options: list[str]


def explain_mismatch(algorithm: Algorithm, problem: Problem, lacking: Sequence[str]) -> str:
    """Return the sentence that a problem lacks what an algorithm needs, and which algorithms can run on it."""
    name, on = algorithm.label(), problem.label()
    able = [other for other in Algorithm.choices if not missing_methods(default_algorithm(other), type(problem))]
    others = ", ".join(other for other in able if other != name)
    cure = remedy(algorithm, lacking, name in able)
    can = "" if cure else " can"
    last = f"; {cure}{others}{can}" if others else ""
    return (
        f"{name} cannot run on {on}: it needs {describe_needs(lacking, problem.offers)}, which {on} does not have{last}"
    )


def remedy(algorithm: Algorithm, lacking: Sequence[str], by_default: bool) -> str:
    """Return the options with which the algorithm can run after all; ``by_default``: its default options do."""
    spare = options_instead(algorithm)
    options = [f"algorithm.{spare[need]}" for need in lacking if need in spare]
    if len(options) == len(lacking):
        return f"with {' and '.join(options)} it can, and so can "
    return "with its default options it can, and so can " if by_default else ""


def missing_methods(algorithm: Algorithm, problem: type[Problem]) -> list[str]:
    """Return the methods that an algorithm needs and a problem does not define."""
    return [need for need in required_methods(algorithm) if not problem.has(need)]


def describe_needs(needs: Sequence[str], offers: Mapping[str, str] = Problem.offers) -> str:
    """Return optional methods of a problem by name, with the explanations of ``offers``, as words of a sentence."""
    words = [f"{need} ({offers[need]})" if need in offers else need for need in needs]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def default_algorithm(name: str) -> Algorithm:
    """Return an algorithm of mpifed with its default options."""
    return Algorithm.member(name, "algorithm")()


def build_matrix() -> CompatibilityMatrix:
    """Return the table of all algorithms and problems of mpifed."""
    problems = {name: Problem.member(name, "problem") for name in Problem.choices}
    reasons: dict[str, str] = {}
    cells = {}
    for name in Algorithm.choices:
        row = []
        for problem in problems.values():
            answer, reason = judge_pair(default_algorithm(name), problem)
            mark = reasons.setdefault(reason, MARKS[len(reasons)]) if reason else ""
            row.append(answer + mark)
        cells[name] = row
    options = [text for name in Algorithm.choices for text in describe_options(name, problems)]
    return CompatibilityMatrix(list(problems), cells, {mark: reason for reason, mark in reasons.items()}, options)


def judge_pair(algorithm: Algorithm, problem: type[Problem]) -> tuple[str, str]:
    """Return "yes" or "no" for an algorithm on a problem, and a note: why not, or on which condition."""
    if lacking := missing_methods(algorithm, problem):
        return "no", f"the algorithm needs {describe_needs(lacking, problem.offers)}"
    conditions = [f"it needs {further_requirements(algorithm)}"] if further_requirements(algorithm) else []
    if getattr(algorithm, "batch_size", 0) and not problem.sampled:
        conditions.append("algorithm.batch_size must be 0, for f_i is no mean over samples and has no mini-batches")
    return "yes", "; ".join(conditions)


def describe_options(name: str, problems: dict[str, type[Problem]]) -> Iterator[str]:
    """Yield sentences about what an algorithm needs with other than default options, and which problems lack it."""
    default_needs, spare = required_methods(default_algorithm(name)), options_instead(default_algorithm(name))
    if spare:
        yield f"{name} with {' and '.join(spare.values())} set does not need {describe_needs(list(spare))}"
    for key, field in fields_of(type(default_algorithm(name))).items():
        for value in alternatives(field.type):
            try:
                wanted = required_methods(type(default_algorithm(name))(**{field.name: value}))
            except (TypeError, ValueError, UserError):
                continue
            more = [need for need in wanted if need not in default_needs]
            if more:
                without = [on for on, problem in problems.items() if not all(map(problem.has, more))]
                value = value.label() if isinstance(value, Component) else value
                yield f"{name} with {key} = {toml_value(value)} needs {describe_needs(more)}: not {', '.join(without)}"


def alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the values of a type that has few of them: words, booleans and components."""
    for part in walk_type(annotation):
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
