"""What an algorithm is: a server that calls and clients that answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mpifed.core.component import Component
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation

STEERING = ("step", "lr", "t", "mu0", "r0", "rho", "eta")


class Algorithm(Component):
    """A federated algorithm; its fields are the hyper-parameters.

    ``join`` gives clients their first state and ``start`` the server's, with the model in field ``x``; ``round`` is one
    communication round. Client methods are called as method(f, client, *args) and return the new state of those
    clients and what they upload: an array or a tuple of arrays with the clients in front, or None. State goes in and
    comes out; nothing is set on the algorithm.
    """

    choices: ClassVar[dict[str, str]] = {
        "fedgia": "mpifed.algorithms.fedgia:FedGiA",
        "fedadmm": "mpifed.algorithms.fedadmm:FedADMM",
        "fedavg": "mpifed.algorithms.fedavg:FedAvg",
        "fedprox": "mpifed.algorithms.fedprox:FedProx",
        "fedpd": "mpifed.algorithms.fedpd:FedPD",
        "scaffold": "mpifed.algorithms.scaffold:Scaffold",
        "fedepm": "mpifed.algorithms.fedepm:FedEPM",
        "sfedavg": "mpifed.algorithms.sfedavg:SFedAvg",
        "sfedprox": "mpifed.algorithms.sfedprox:SFedProx",
        "feddcd": "mpifed.algorithms.feddcd:FedDCD",
        "accfeddcd": "mpifed.algorithms.accfeddcd:AccFedDCD",
        "flame": "mpifed.algorithms.flame:Flame",
        "pfedme": "mpifed.algorithms.pfedme:PFedMe",
        "fedadmm-deep": "mpifed.algorithms.fedadmm_deep:FedADMMDeep",
    }
    default: ClassVar[str] = "fedgia"
    kind: ClassVar[str] = "algorithms"

    selections: ClassVar[int] = 1  # how often a round selects clients
    vectors: ClassVar[int] = 1  # models that go to a chosen client, and that come back, from a draw to the next
    everyone: ClassVar[bool] = False  # whether a round asks also those who are not chosen for an answer
    personal: ClassVar[bool] = False  # whether clients keep a model of their own, given by ``personalised``
    watches: ClassVar[tuple[str, ...]] = ()  # names of what ``watch`` gives
    extremes: ClassVar[tuple[str, ...]] = ()  # names of what ``extreme`` gives

    def needs(self) -> tuple[str, ...]:
        """What it asks of a problem beside value and gradient: names of methods."""
        return ()

    def verify(self, selected: int) -> None:
        """Refuse, before round one, a number of clients a round that the algorithm cannot do with (UserError)."""

    def work(self, d: Array) -> Array | None:
        """Sample gradients that chosen clients with d samples compute from a draw to the next, (m,); None: not known before.

        Here one gradient an iteration of f.steps(k0, epochs, batch_size).
        """
        k0, epochs, size = (getattr(self, key, 0) for key in ("k0", "epochs", "batch_size"))
        return (epochs or k0 or 1) * (np.minimum(size, d) if size and not epochs else d)

    def advice(self, m: int) -> str | None:
        """A warning about options that theory does not cover with m clients, or None."""
        return None

    def steering(self) -> str:
        """The option that keeps the iterates from diverging."""
        return next((f"algorithm.{key}" for key in STEERING if hasattr(self, key)), "the step size")

    def opening(self) -> str:
        """The client method that begins with ∇f_i at its first argument, the server's model; measuring knows it already."""
        return ""

    @abstractmethod
    def join(self, f: Local) -> Any:
        """The first state of clients: a NamedTuple of arrays with the clients in front."""
        raise NotImplementedError

    @abstractmethod
    def start(self, fed: Federation) -> Any:
        """The first state of the server: a NamedTuple with the model ``x`` (n,)."""
        raise NotImplementedError

    @abstractmethod
    def round(self, fed: Federation, server: Any) -> Any:
        """One communication round."""
        raise NotImplementedError

    def watch(self, f: Local, client: Any) -> tuple[Array, ...]:
        """The numbers ``watches`` of each client, (c,) each: added up at every measurement, charged to nobody."""
        return ()

    def extreme(self, f: Local, client: Any) -> tuple[Array, ...]:
        """The numbers ``extremes`` of each client, (c,) each, of which the largest counts."""
        return ()

    def personalised(self, f: Local, client: Any) -> Array:
        """The clients' own models (c, n)."""
        raise NotImplementedError

    def score(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """What biased selection ranks by: ‖∇f_i(x)‖ on one mini-batch of ``size`` samples, (c,)."""
        _, batch, _ = next(f.steps(1, 0, size))
        g = batch.grad(x)
        return client, np.sqrt(np.vecdot(g, g))

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        """What goes into the record of the round: of the server, and of ``watched``: sums over all m clients, and extremes."""
        return watched
