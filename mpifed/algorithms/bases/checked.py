"""A method of a user's own: what its functions return is checked where it enters the house."""

from typing import Any

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm, Client
from mpifed.algorithms.bases.checked_hooks import HOOKS
from mpifed.algorithms.bases.checked_hooks import refuse_traits as refuse_traits
from mpifed.algorithms.bases.graph_method import GraphMethod
from mpifed.core.arrays import to_numpy
from mpifed.core.guards import Guard, Wrong, shown
from mpifed.core.typing import Array
from mpifed.federation.checked_replies import refuse_field
from mpifed.federation.local import Local
from mpifed.federation.server import Federation


def server_state(algorithm: Algorithm, result: Any, fed: Federation, before: Any = None) -> Any:
    """The server's state, with the model x (n,); of a round, with the fields that it had before."""
    right = "it must return a NamedTuple of arrays with the model x (n,)"
    named = isinstance(result, tuple) and hasattr(result, "_fields")
    if not named:
        raise Wrong(f"returns {shown(result)}: {right}")
    if "x" not in result._fields:
        raise Wrong(f"returns a state without a field x: {right}")
    if before is not None and result._fields != before._fields:
        new, old = (", ".join(state._fields) for state in (result, before))
        raise Wrong(f"returns a state with the fields {new}, and before the round it had {old}")
    for name, value in zip(result._fields, result, strict=True):
        if not is_number(value):
            raise Wrong(f"returns a state whose field {name} is {shown(value)}: fields are arrays of real numbers")
    if np.shape(result.x) != (fed.n,):
        raise Wrong(f"returns a state whose field x is {shown(result.x)}: the model has shape ({fed.n},)")
    return result


def clients_state(algorithm: Algorithm, result: Any, f: Local) -> Any:
    """The first state of the clients of f."""
    right = "it must return a NamedTuple of arrays, one row for each of the c clients"
    if isinstance(result, tuple) and not result:
        return Client()
    if not isinstance(result, tuple) or not hasattr(result, "_fields"):
        raise Wrong(f"returns {shown(result)}: {right}")
    traits = algorithm.upload
    for trait, name in (("kept", traits.last(algorithm)), ("known", traits.known)):
        if name and name not in result._fields:
            raise Wrong(f"returns a state without the field {name}, which upload = Upload({trait}={name!r}, …) names")
    if isinstance(algorithm, GraphMethod) and type(algorithm).model is GraphMethod.model and "x" not in result._fields:
        raise Wrong("returns a state without a field x, in which the nodes have their models (c, n)")
    for name, value in zip(result._fields, result, strict=True):
        refuse_field(name, value, len(f))
        missing = np.isnan(to_numpy(value))
        if missing.any():
            raise Wrong(f"returns a state whose field {name} is not a number for client {first(f, missing)}")
    return result


def first(f: Local, wrong: Array) -> int:
    """The number of the first client of which something is wrong."""
    return int(f.ids[int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())])


def is_number(value: Any) -> bool:
    """Whether a value is a real number or an array of these."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "fiub" and not isinstance(value, np.ma.MaskedArray)
    return isinstance(value, int | float)


SERVER: dict[str, Guard] = {"start": server_state, "round": server_state}
GUARDS = {"algorithms": SERVER | {"join": clients_state} | HOOKS}
