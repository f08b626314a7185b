"""The table of all methods for docs/reference, from their classes and from what field.toml says of their theorems."""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
import typing
from functools import cache
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.cli.describe import find_paper
from mpifed.core.methods import METHODS
from mpifed.core.toml import toml_value

HERE = Path(__file__).parent
MANY = 1000  # parameters, so that what travels is read off as digits: matrices, vectors, numbers
FEW = 9  # single numbers beside vectors
SAMPLES = 10**6.0
PROVED = tomllib.loads((HERE / "field.toml").read_text("utf-8"))  # and what ``sample_gradients`` cannot say
UNKNOWN = {"convex": "not looked up", "nonconvex": "not looked up"}  # of a method that field.toml has not
HEAD = ["method", "down; up", "clients keep", "gradients", "takes part", "convex", "non-convex", "privacy", "code"]

INTRODUCTION = """# All methods in one table

Every method of mpifed minimises f = (1/m) Σ f_i over m clients, or finds a model for each client. The table says what
each of them sends, keeps and computes, and what its source proves. `python docs/build.py` writes it from the code; only
the two columns about proofs are written by hand. How fast they are on six data sets: [a study](../studies/field.md).

## How to read it

- **down; up**: what a selected client receives, and what it sends, for each selection with default options; without a
  server, what travels along each edge of the graph ([graphs](../graphs.md)). A vector has n numbers, like the model; a
  matrix is symmetric and has n(n+1)/2. A fraction is that of n = 1000 and numbers of 64 bits: uploads are compressed,
  or a coin decides what travels. A table `[compress]` shortens the messages of other methods too
  ([compression](../compression.md)). The record counts what did travel: `bits_down`, `bits_up`, `bytes_down` and
  `bytes_up`. Simulated seconds are computed from this column. `proxskip` with a selection sends the model down twice a
  round; the record counts both downloads, simulated seconds one.
- **clients keep**: what a client remembers from one round to the next, personal models included, which never travel.
- **gradients**: how often a selected client passes over its samples for each selection, with default options; 1 is one
  gradient of f_i. *As many as it takes*: not known in advance. Simulated seconds are computed from this column; the
  record has measured ones, `client_seconds`.
- **takes part**: who trains in a round. *Selected*: those that `[selection]` names; the others rest, or where it says
  *others reply too* send something as well. *All*: no selection is made. The record has `/selection` and
  `times_selected`.
- **convex, non-convex**: what the source proves for smooth f_i. O(1/T) bounds f − f* (convex) or ‖∇f‖² (non-convex)
  after T rounds; *linear*: the error falls by a constant factor a round; *sublinear*: more slowly; κ is the condition
  number; *refused*: the method does not run. Conditions are shortened, and theorems have their numbers only where these
  were looked up. *By the abstract*: the text of the paper was not at hand. `python -m mpifed certify` checks all
  conditions of a study for some methods ([what theory says](../certify.md)).
- **privacy**: what uploads guarantee, with default options or with the one that is named; the attribute `privacy` of a
  result says the same ([privacy](../privacy.md)). Empty: no claim is made.
- **code**: the file, and its number of lines.

In a round the server waits for all replies, or with `[system]` for those that are in time. With `[asynchronous]` it
goes on with the first that arrive ([asynchronous runs](../asynchronous.md)): ASYNCHRONOUS can.

## The methods"""


def introduction() -> str:
    """What stands above the table."""
    able = asynchronous()
    return INTRODUCTION.replace("ASYNCHRONOUS", f"{', '.join(able[:-1])} and {able[-1]}")


def asynchronous() -> list[str]:
    """The methods that take the first uploads that arrive."""
    return [f"`{name}`" for name in Algorithm.choices if Algorithm.member(name, "algorithm").asynchronous]


def rows() -> list[list[str]]:
    """One row for each method."""
    return [row(name) for name in Algorithm.choices]


@cache
def row(name: str) -> list[str]:
    """What HEAD says of a method; of what its source proves, what field.toml says."""
    cls = Algorithm.member(name, "algorithm")
    own = cls()
    theorems = PROVED.get(name, UNKNOWN)
    return [
        f"[{title(name)}]({find_paper(cls).link}) [`{name}`](algorithms/{name}.md)",
        travels(own),
        keeps(cls),
        theorems.get("gradients") or gradients(own),
        participation(cls),
        theorems["convex"],
        theorems["nonconvex"],
        privacy(cls),
        code(cls),
    ]


def title(name: str) -> str:
    """What a method is called in print."""
    return METHODS[name].title


def travels(own: Algorithm) -> str:
    """What a selected client receives, and what it sends."""
    down, up = (amount(count) for count in own.message_size(MANY))
    return f"{down} each" if down == up else f"{down}; {up}"


def amount(count: float) -> str:
    """A count of numbers, for MANY parameters, as matrices, vectors and single numbers, or a fraction of vectors."""
    if count % 1:
        return f"{count / MANY:.2g} vectors"
    matrices, rest = divmod(count, MANY * (MANY + 1) // 2)
    vectors, numbers = divmod(rest, MANY)
    if numbers > FEW:
        return f"{count / MANY:.2g} vectors"
    counts = {"matrix": matrices, "vector": vectors, "number": numbers}
    plural = {"matrix": "matrices"}
    words = [f"{n:g} {name if n == 1 else plural.get(name, name + 's')}" for name, n in counts.items() if n]
    return ", ".join(words) or "nothing"


def keeps(cls: type) -> str:
    """The fields of a client's state, as their comments say."""
    kind = next(vars(sys.modules[base.__module__])["Client"] for base in cls.__mro__ if has_state(base))
    lines = re.findall(r"^    (\w+): Array  # \(c(.*?)\) (.+)$", inspect.getsource(kind), re.M)
    return "; ".join(f"`{name}`: {meaning.removesuffix(', else (c, 0)')}" for name, _, meaning in lines) or "nothing"


def has_state(base: type) -> bool:
    return "Client" in vars(sys.modules[base.__module__])


def gradients(own: Algorithm) -> str:
    """Sample gradients over samples."""
    work = own.sample_gradients(np.array([SAMPLES]))
    return "as many as it takes" if work is None else f"{work[0] / SAMPLES:g}"


def participation(cls: type[Algorithm]) -> str:
    return "all, without a server" if issubclass(cls, GraphAlgorithm) else cls.participation.value


def privacy(cls: type[Algorithm]) -> str:
    """What is guaranteed with default options, or with one choice of an option."""
    choices = chain.from_iterable(
        [(key, value) for value in typing.get_args(literal)] for key, literal in literals(cls).items()
    )
    settings = [("", cls()), *((f"`{key} = {toml_value(value)}`: ", cls(**{key: value})) for key, value in choices)]
    found = {claim.text: words for words, own in reversed(settings) if (claim := own.privacy()) and claim.holds}
    return "; ".join(f"{words}{text}" for text, words in reversed(found.items()))


def literals(cls: type) -> dict[str, object]:
    """The options that choose among words."""
    found = {}
    for option in msgspec.structs.fields(cls):
        kind = option.type
        while typing.get_origin(kind) is typing.Annotated:
            kind = typing.get_args(kind)[0]
        if typing.get_origin(kind) is typing.Literal:
            found[option.name] = kind
    return found


def code(cls: type) -> str:
    file = Path(inspect.getfile(cls))
    return f"[{file.name}](../../mpifed/algorithms/{file.name}), {len(file.read_text('utf-8').splitlines())}"
