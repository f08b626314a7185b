"""What an algorithm is: a server that calls and clients that answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mpifed.algorithms.certified import Certified
from mpifed.core.typing import Array
from mpifed.federation.local import Local


class Privacy(NamedTuple):
    """What the uploads of a method guarantee about single samples or clients: ``text`` says it, or why ``holds`` is
    false.

    ``double``: the guarantee needs models in double precision. ``sums``: it is one for sums over all clients alone.
    """

    holds: bool
    text: str
    double: bool = False
    sums: bool = False

    def __str__(self) -> str:
        return f"{'guaranteed' if self.holds else 'none'}: {self.text}"


class Algorithm(Certified):
    """A federated algorithm; its fields are the hyper-parameters.

    ``join`` returns the first state of clients and ``start`` that of the server, with the model in its field ``x``;
    ``round`` is one communication round. A client method is called as method(f, client, *args). It returns the new
    state of those clients and what they upload: an array or a tuple of arrays whose leading axis is clients, or None.
    State goes in and comes out; no attribute of the algorithm is set.

    ``uneven`` says why clients cannot be selected with unequal probabilities. It is empty where they can: where the
    mean over the selected is ``fed.estimate``, which weighs replies, or where no fixed point depends on how often a
    client is selected. Nor does it where all clients reply, where their last uploads count, or where a method is
    ``coupled``: ``unequal`` knows.

    The docstring of an algorithm's file begins with its paper, including the year and arXiv:ID or doi:ID.
    """

    choices: ClassVar[dict[str, str]] = {
        "fedgia": "mpifed.algorithms.fedgia:FedGiA",
        "fedadmm": "mpifed.algorithms.fedadmm:FedADMM",
        "fedavg": "mpifed.algorithms.fedavg:FedAvg",
        "fedopt": "mpifed.algorithms.fedopt:FedOpt",
        "fedprox": "mpifed.algorithms.fedprox:FedProx",
        "fedpd": "mpifed.algorithms.fedpd:FedPD",
        "scaffold": "mpifed.algorithms.scaffold:Scaffold",
        "fedepm": "mpifed.algorithms.fedepm:FedEPM",
        "sfedavg": "mpifed.algorithms.sfedavg:SFedAvg",
        "sfedprox": "mpifed.algorithms.sfedprox:SFedProx",
        "feddcd": "mpifed.algorithms.feddcd:FedDCD",
        "accfeddcd": "mpifed.algorithms.accfeddcd:AccFedDCD",
        "flame": "mpifed.algorithms.flame:Flame",
        "flame-dp": "mpifed.algorithms.flame_dp:FlameDP",
        "pfedme": "mpifed.algorithms.pfedme:PFedMe",
        "ditto": "mpifed.algorithms.ditto:Ditto",
        "apfl": "mpifed.algorithms.apfl:APFL",
        "fedadmm-deep": "mpifed.algorithms.fedadmm_deep:FedADMMDeep",
        "fednl": "mpifed.algorithms.fednl:FedNL",
        "fednl-pp": "mpifed.algorithms.fednl_pp:FedNLPP",
        "gd": "mpifed.algorithms.gd:GD",
        "local-gd": "mpifed.algorithms.local_gd:LocalGD",
        "feddyn": "mpifed.algorithms.feddyn:FedDyn",
        "ef21": "mpifed.algorithms.ef21:EF21",
        "diana": "mpifed.algorithms.diana:Diana",
        "marina": "mpifed.algorithms.marina:Marina",
        "newton": "mpifed.algorithms.newton:Newton",
        "proxskip": "mpifed.algorithms.proxskip:ProxSkip",
        "fednova": "mpifed.algorithms.fednova:FedNova",
        "fedadmm-insa": "mpifed.algorithms.fedadmm_insa:FedADMMInSa",
        "sisa": "mpifed.algorithms.sisa:SISA",
        "dgd": "mpifed.algorithms.dgd:DGD",
        "extra": "mpifed.algorithms.extra:Extra",
        "gradient-tracking": "mpifed.algorithms.gradient_tracking:GradientTracking",
        "ad-admm": "mpifed.algorithms.ad_admm:ADADMM",
        "fedbuff": "mpifed.algorithms.fedbuff:FedBuff",
        "fedgia-async": "mpifed.algorithms.fedgia_async:AsynchronousFedGiA",
        "lt-admm": "mpifed.algorithms.lt_admm:LTADMM",
        "fedgia-graph": "mpifed.algorithms.fedgia_graph:FedGiAGraph",
        "fedepm-graph": "mpifed.algorithms.fedepm_graph:FedEPMGraph",
    }
    default: ClassVar[str] = "fedgia"
    kind: ClassVar[str] = "algorithms"

    graph: ClassVar[bool] = False  # whether it has no server, and clients are the nodes of a graph
    steady: ClassVar[str] = ""  # why W must be the same in all rounds on a graph, where it must
    selections: ClassVar[int] = 1  # how often a round selects clients; 0: never, it asks all
    vectors: ClassVar[int] = 1  # models that a selected client downloads, and uploads, for each selection
    everyone: ClassVar[bool] = False  # whether a round also needs a reply from clients that are not selected
    sometimes: ClassVar[bool] = False  # whether it needs these replies in some rounds only
    coin: ClassVar[str] = ""  # option with the probability p that ends a round: it is 1/p times ``work`` on average
    lasting: ClassVar[dict[str, str] | None] = None  # options with which rounds use ``last``, uploads of all clients
    personal: ClassVar[bool] = False  # whether clients keep a model of their own, returned by ``personalised``
    uploads_models: ClassVar[bool] = True  # whether uploads of n numbers are models, near the one received
    uploaded: ClassVar[str] = ""  # field of the clients' state that is their upload, as the server has it
    uncompressed: ClassVar[dict[str, str]] = {}  # why messages "up" or "down" must travel as they are, where they must
    feedback: ClassVar[str] = "memory"  # what [compress] keeps of uploads by default
    demands: ClassVar[str] = ""  # what it needs of f_i beyond methods of the problem, and which options give it
    spares: ClassVar[dict[str, str]] = {}  # method of the problem -> the option that, where it is set, does without it
    uneven: ClassVar[str] = "it does not say whether a mean over the selected stands for one over all"
    coupled: ClassVar[bool] = False  # whether what the selected clients give and take adds up to 0 among them
    moves_duals: ClassVar[bool] = False  # whether ``score_move`` says how far a client's dual variables would move
    tuned_by: ClassVar[str] = ""  # the option to change where the iterates diverge
    refused: ClassVar[dict[str, str]] = {"optimizer": "it has no local gradient steps with a step size γ"}
    asynchronous: ClassVar[bool] = False  # whether rounds send, wait for arrivals and use what these upload
    synchronous: ClassVar[str] = "its rounds wait for all the clients that they call"  # why not, where it is not
    fewest: ClassVar[int] = 1  # clients that must take part in a round
    extremes: ClassVar[tuple[str, ...]] = ()  # names of the numbers that ``extreme`` returns

    def needs(self) -> tuple[str, ...]:
        """The optional methods that a problem must define for this algorithm."""
        return ()

    def verify(self, selected: int) -> None:
        """Refuse, before round one, options or a number of selected clients that cannot work (UserError)."""

    def work(self, d: Array) -> Array | None:
        """Sample gradients that a selected client of d samples computes for each selection: (m,).

        None where they are not known in advance. By default one gradient of f_i; ``passes`` counts those of f.steps().
        """
        return d

    def traffic(self, n: int) -> tuple[float, float]:
        """Numbers that a selected client downloads and uploads for each selection, with n parameters.

        What is compressed counts as so many numbers of 64 bits.
        """
        return self.vectors * n, self.vectors * n

    def units(self) -> float:
        """How many times ``work`` a round takes on average; 1 where that is not known in advance."""
        p: float | None = getattr(self, self.coin) if self.coin else None
        return 1 / (p or 1.0)

    def uses_last(self) -> bool:
        """Whether rounds use the last uploads of all clients: ``last`` of fed.sum, fed.mean and fed.solve."""
        return self.lasting is not None and all(getattr(self, key) == value for key, value in self.lasting.items())

    def unequal(self) -> str:
        """Why clients cannot be selected with unequal probabilities; empty where they can."""
        always = self.selections == 0 or (self.everyone and not self.sometimes)
        return "" if always or self.coupled or self.uses_last() else self.uneven

    def local_steps(self, d: Array) -> Array | None:
        """Local steps that a selected client of d samples takes in a round: (m,).

        None where it cannot take fewer; where it can, ``round`` hands ``fed.local_steps`` on, ``most`` of f.steps().
        """
        return None

    def advice(self, m: int) -> str | None:
        """A warning about options that theory does not cover with m clients, or None."""
        return None

    def privacy(self) -> Privacy | None:
        """What the uploads guarantee about single samples; None for a method that claims nothing of the kind."""
        return None

    def redrawn(self, server: Any, rounds: int) -> Any:
        """The server's state where the last ``rounds`` rounds before an interruption are run again."""
        return server

    def steering(self) -> str:
        """What to change where the iterates diverge, as error messages name it."""
        return f"algorithm.{self.tuned_by}" if self.tuned_by else "the step size"

    @abstractmethod
    def join(self, f: Local) -> Any:
        """The first state of clients: a NamedTuple of arrays whose leading axis is clients."""
        raise NotImplementedError

    @abstractmethod
    def start(self, fed: Any) -> Any:
        """The first state of the server, a NamedTuple with the model ``x`` (n,). ``fed``: the Federation."""
        raise NotImplementedError

    @abstractmethod
    def round(self, fed: Any, server: Any) -> Any:
        """One communication round."""
        raise NotImplementedError

    def smoothness(self, f: Local, client: Any) -> tuple[Any, Array]:
        """r_i, the bound of ‖∇²f_i‖, of each client, to be called by the server: (c,)."""
        return client, f.lipschitz()

    @property
    def watches(self) -> tuple[str, ...]:
        """Names of the numbers that ``watch`` returns."""
        return ()

    def watch(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """The numbers ``watches`` of each client at the server's model x, (c,) each: evaluations add up all clients."""
        return ()

    def extreme(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """The numbers ``extremes`` of each client at the server's model x, (c,) each: the largest is recorded."""
        return ()

    def received(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any:
        """The clients' state once they know what the server has of a compressed upload."""
        return client._replace(**{self.uploaded: upload[0]}) if self.uploaded else client

    def personalised(self, f: Local, client: Any) -> Array:
        """The clients' own models (c, n)."""
        raise NotImplementedError

    def score(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """What biased selection ranks by: ‖∇f_i(x)‖ on one mini-batch of ``size`` samples, (c,)."""
        _, batch, _ = next(f.steps(1, 0, size))
        g = batch.grad(x)
        return client, np.sqrt(np.vecdot(g, g))

    def score_loss(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """What power-of-choice ranks by: f_i(x) on one mini-batch of ``size`` samples, (c,)."""
        _, batch, _ = next(f.steps(1, 0, size))
        return client, batch.value(x)

    def importance(self, f: Local, client: Any) -> tuple[Array, Array]:
        """Odds of clients for selection by importance, and the factor that a set has as their sum: (c,) each."""
        return f.lipschitz(), np.ones(len(f))

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        """Columns of the record, from the server's state and ``watched``: sums over all m clients, and extremes."""
        return watched


def counted(d: Array, k0: int, epochs: int, batch_size: int) -> Array:
    """Steps of f.steps(k0, epochs, batch_size) of clients of d samples: (m,)."""
    each = np.ceil(d / batch_size).astype(np.int64) if epochs and batch_size else np.ones(len(d), np.int64)
    return (epochs or k0) * each


def passes(d: Array, k0: int, epochs: int, batch_size: int) -> Array:
    """Sample gradients of f.steps(k0, epochs, batch_size) with one gradient a step, for clients of d samples: (m,)."""
    return epochs * d if epochs else k0 * (np.minimum(batch_size, d) if batch_size else d)
