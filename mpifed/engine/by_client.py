"""Feature of numbers of each client that are not added up: those that a problem has, and how hosts send them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpifed.core.arrays import is_real_array
from mpifed.core.errors import UserError
from mpifed.core.guards import describe_value
from mpifed.core.promises import Supports
from mpifed.core.roles import VALIDATED, Role
from mpifed.core.typing import Array
from mpifed.engine.plugin import EnginePlugin, HostDivision
from mpifed.features.conflicts import CONFLICTS, select_numbers
from mpifed.federation.callback import Callback, ClientTable
from mpifed.federation.host import Host
from mpifed.federation.local import Local
from mpifed.federation.method import FederatedMethod, HasPersonalModels
from mpifed.federation.server import Federation
from mpifed.kernels.blocks import Block

HAS = "has "  # prefix of a name, for a number that clients may lack: 1 where a client has it, else 0


def compute_numbers(
    f: Local, X: Array, names: Sequence[str], label: str = "{}", role: Role | None = None
) -> dict[str, Array]:
    """Compute the numbers ``names`` of each client at X (n,) or (c, n), on evaluation samples: (c,) each, by ``label``.

    ``role``: of other samples.
    A number that a client may lack is followed by an array under the prefix HAS: 1 where the client has it, else 0.
    """
    problem = f.problem
    role = role or f.role
    # 0: a client without such samples
    (has_samples,) = f.evaluate_samples(lambda block, X: (f.xp.ones(len(block)),), 1, X, role.name)
    functions = problem.client_measures()
    measured = (
        dict(zip(problem.measure_names(), f.measure(X, role.name), strict=True))
        if {*names} & {*problem.measure_names()}
        else {}
    )
    values = {}
    for name in names:
        key = label.format(name)
        if name in functions and name != "accuracy":
            (computed,) = f.evaluate_samples(as_tuple(name, functions[name]), 1, X, role.name)
            missing = f.xp.isnan(computed)
            # 0, not NaN: a run takes replies that are not finite for diverging iterates, and ends
            values[key] = f.xp.where(missing, 0.0, computed)
            values[HAS + key] = f.xp.astype(~missing, computed.dtype) * has_samples
            continue
        values[key] = f.accuracy(X, role=role.name)[0] if name == "accuracy" else measured[name]
        if role.missing:
            values[HAS + key] = has_samples
    return values


def as_tuple(name: str, compute: Callable[[Block, Array], Array]) -> Callable[[Block, Array], tuple[Array]]:
    """Return a function with the checked values of ``compute`` in a tuple; it raises UserError for a wrong shape."""

    def checked(block: Block, X: Array) -> tuple[Array]:
        values = compute(block, X)
        if not is_real_array(values) or values.shape != (len(block),):
            raise UserError(
                f"the function that client_measures of the problem has for {name!r} returns {describe_value(values)}: "
                "it must return "
                f"an array (c,), here ({len(block)},)"
            )
        return (values,)

    return checked


def fill_missing(rows: dict[str, Array]) -> dict[str, Array]:
    """Return the numbers of ``rows``, NaN where a client has none, without their HAS columns."""
    numbers = {name: values for name, values in rows.items() if not name.startswith(HAS)}
    return {name: np.where(rows.get(HAS + name, 1) == 0, np.nan, values) for name, values in numbers.items()}


class ClientEvaluation:
    """Evaluation of the numbers ``names`` of each client, for any method; they are not added up over clients.

    With ``validation`` samples also of these, as validation_….
    """

    def __init__(self, method: FederatedMethod, names: Sequence[str], validation: Role | None = None) -> None:
        self.method = method
        self.names = names
        self.validation = validation

    def by_client(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """Compute each client's numbers at the server's model x (n,), by name: (c,) each.

        A method with personal models also has the numbers at these: personal_….
        """
        models = {"": x}
        if isinstance(self.method, HasPersonalModels):
            models["personal_"] = self.method.personal_models(f, client)
        values: dict[str, Array] = {}
        for role in (None, self.validation)[: 1 + (self.validation is not None)]:
            prefix = "" if role is None else VALIDATED
            for model, X in models.items():
                values |= compute_numbers(f, X, self.names, f"{prefix}{model}{{}}", role)
        return values


def mean_joined_model(fed: Federation, x: Array) -> Array:
    """Return the server's model x (n,) with the mean of what stays with the clients: (n,)."""
    home = fed.setup.home
    if home is None:
        return x
    total = fed.inspect(fed.setup.algorithm.received_model, "sum", args=(x,))
    return np.where(home, total / fed.m, x).astype(x.dtype)


class ClientNumbers(EnginePlugin, Callback):
    """Numbers of each client that are evaluated beside f."""

    # Numbers for the record alone; a note says that they are of the true data.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["by_client"]

    def extend_host(self, host: Host, division: HostDivision) -> None:
        names = select_numbers(self.config.problem, self.config.evaluate.clients)
        evaluation = ClientEvaluation(host.setup.algorithm, names, host.setup.validation)
        host.evaluation.evaluators[ClientEvaluation.by_client.__name__] = evaluation.by_client

    def on_evaluate(self, fed: Federation, x: Array) -> dict[str, float | ClientTable]:
        if not self.config.evaluate.clients:
            return {}
        return {"clients": fill_missing(fed.inspect(ClientEvaluation.by_client, args=(x,)))}
