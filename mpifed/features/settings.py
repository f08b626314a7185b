"""Tables of an experiment file, with their keys, types and defaults."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Privacy
from mpifed.core.component import Component, StudyTable, fields_of
from mpifed.core.toml import join_key, to_toml
from mpifed.core.typing import PositiveFloat
from mpifed.data.dataset import Data
from mpifed.features.asynchronous import Asynchronous
from mpifed.features.attack.attacks import Attack
from mpifed.features.compression.compress import Compress
from mpifed.features.masks.masks import Masks
from mpifed.features.privacy.private_means import PrivateMeans
from mpifed.features.robust.means import RobustMean
from mpifed.features.simulated_time.system import System
from mpifed.features.stop import StopRules, ran_out
from mpifed.federation.participation.selection import Selection
from mpifed.graphs.graph import Graph
from mpifed.problems.problem import Problem

MEASURED = 10  # least rounds of a run that measures sizes of blocks in its first ones
DEVICES = ("torch", "cuda")  # kernels on a device: PyTorch's on the CPU, and on a GPU
FAMILIES: dict[str, type[Component]] = {
    "data": Data,
    "problem": Problem,
    "algorithm": Algorithm,
    "selection": Selection,
}


class Evaluate(StudyTable):
    """Evaluations of f and its gradient, numbers of each client that go with them, and clients that never train.

    Clients of ``unseen`` are in no sum, mean or selection. In each evaluation they take ``unseen_steps`` full gradient
    steps on their own training samples from the server's model, and are tested before and after.
    """

    every: Annotated[
        int, Meta(ge=1, description="rounds from one evaluation to the next; the last round is evaluated too")
    ] = 1
    clients: Annotated[
        bool | str | tuple[str, ...],
        Meta(
            description="numbers of each client to store in each evaluation, in /clients of the result, such as "
            '["accuracy", "auc"]; true: accuracy, and what the problem measures'
        ),
    ] = False
    unseen: Annotated[
        Annotated[float, Meta(ge=0)]
        | Annotated[int, Meta(ge=0)]
        | Annotated[str, Meta(min_length=1)]
        | tuple[Annotated[int, Meta(ge=0)] | Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="clients that never train and are only evaluated: a share below 1, how many, a name, or a list "
            "of names and numbers of clients"
        ),
    ] = 0
    unseen_steps: Annotated[
        int, Meta(ge=1, description="gradient steps that these take before they are tested again")
    ] = 5
    unseen_step: Annotated[PositiveFloat | None, Meta(description="their step size (default: 1/r_i)")] = None

    def __post_init__(self) -> None:
        if isinstance(self.unseen, float) and self.unseen >= 1 and self.unseen != int(self.unseen):
            raise ValueError(f"unseen = {self.unseen} is wrong: it must be a share below 1, a whole number or a list")

    @property
    def about_unseen(self) -> bool:
        """True if a key about clients that never train is set."""
        return bool(self.unseen) or self != Evaluate(every=self.every, clients=self.clients, unseen=self.unseen)


class Objective(StudyTable):
    """Objective that is minimised: F(x) = f(x) + l1 ‖x‖₁ + (l2/2) ‖x‖², f = Σ p_i f_i with weights p_i of the clients.

    The p_i add up to 1. "clients": all the same, f = (1/m) Σ f_i. "samples": p_i = d_i/d, so that f is the mean loss of
    all samples; of samples with weights, by the sums of these. Numbers, one for each client, are divided by their sum;
    another word is the column of a table, or the array of a file, that has them.
    With l1 or l2 the recorded objective is F, and grad_norm_sq is ‖x − prox(x − ∇f(x))‖², which is 0 at its minimiser.
    Coefficients in ``unpenalised`` are left out of both norms.
    """

    weights: Annotated[
        str | tuple[Annotated[float, Meta(gt=0)], ...],
        Meta(
            description="clients: all the same; samples: by numbers of samples; a number above 0 for each; or the "
            "column of a table that has them"
        ),
    ] = "clients"
    l1: Annotated[float, Meta(ge=0, description="λ₁, the factor of ‖x‖₁ (lasso); with l2: an elastic net")] = 0.0
    l2: Annotated[float, Meta(ge=0, description="λ₂, the factor of ‖x‖²/2 (ridge)")] = 0.0
    unpenalised: Annotated[
        tuple[str, ...] | None,
        Meta(
            description="names of coefficients without a penalty, as fit prints them (default: intercepts and biases)"
        ),
    ] = None

    @property
    def penalised(self) -> bool:
        """True if there is a penalty."""
        return bool(self.l1 or self.l2)

    @property
    def column(self) -> str | None:
        """Name of the column that has the weights of clients, or None."""
        return self.weights if isinstance(self.weights, str) and self.weights not in ("clients", "samples") else None


class Record(StudyTable):
    """Models that are recorded beside the rounds."""

    personal: Annotated[bool, Meta(description="store /model/personal, one model for each client")] = False
    best: Annotated[bool, Meta(description="store /model/best, the model of the best evaluation by `stop.by`")] = False
    models: Annotated[
        int, Meta(ge=0, description="rounds from one model stored in /models to the next, and the last; 0: none")
    ] = 0


class Checkpoint(StudyTable):
    """Times of checkpoints for resume: after so many seconds or rounds, whichever comes first, on a signal, and
    at the end of a run that has not converged: one that ended by `rounds`, `stop.seconds` or `stop.simulated_seconds`.
    """

    every_seconds: Annotated[float, Meta(ge=0, description="seconds from one to the next; 0: never by time")] = 300.0
    every_rounds: Annotated[int, Meta(ge=0, description="rounds from one to the next; 0: never by rounds")] = 0
    keep: Annotated[
        bool | None,
        Meta(description="keep that of the last round when the run is finished (default: unless it has converged)"),
    ] = None

    def keeps_last(self, reason: str) -> bool:
        """Return whether a run that ended for this reason keeps a checkpoint of its last round."""
        return ran_out(reason) if self.keep is None else self.keep


class Experiment(StudyTable, kw_only=True):
    """Complete description of a run."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="seed of every random number")] = 0
    rounds: Annotated[int, Meta(ge=0, description="most communication rounds")] = 1000
    dtype: Annotated[Literal["float64", "float32"], Meta(description="type of data, models and messages")] = "float64"
    kernels: Annotated[
        Literal["auto", "numpy", "compiled", "torch", "cuda"],
        Meta(
            description="what computes; auto: compiled kernels where numba is installed and the problem has them; "
            "cuda: PyTorch on a GPU; torch: PyTorch on the CPU"
        ),
    ] = "auto"
    space: Annotated[
        Literal["auto", "samples", "parameters"],
        Meta(
            description="where local steps of linear models are computed: on the scores of samples or on the "
            "parameters; auto: on the scores where clients have so few samples that it costs less, and by the second "
            "derivatives of least squares where these cost less"
        ),
    ] = "auto"
    reproducible: Annotated[bool, Meta(description="same bits for any number of ranks; false: sums in any order")] = (
        True
    )
    reduction: Annotated[
        Literal["auto", "star", "tree", "nodes", "slices"],
        Meta(description="how sums reach rank 0: over a star or a tree of ranks, a tree of nodes, or in slices"),
    ] = "auto"
    start: Annotated[
        str | None,
        Meta(
            description="result file, or NPZ file with an array x, whose model the run starts from; on a graph x may "
            "have a row for each node"
        ),
    ] = None
    block_bytes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="bytes of samples that are computed on at a time; by default half of the L2 cache of a core, "
            "or what the first rounds find to be faster"
        ),
    ] = None
    patience: Annotated[
        float,
        Meta(
            ge=0, le=1e6, description="seconds without a sign of life of a machine that end a run on several; 0: never"
        ),
    ] = 300.0
    personal: Annotated[
        Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)] | None,
        Meta(
            description='parameters that stay with the clients, by name or pattern, such as ["head.*"] of a network; '
            "mpifed data info STUDY lists the names"
        ),
    ] = None
    data: Data
    problem: Problem
    algorithm: Algorithm
    selection: Selection
    stop: StopRules
    objective: Objective
    evaluate: Evaluate
    record: Record
    checkpoint: Checkpoint
    system: System | None = None
    asynchronous: Asynchronous | None = None
    masks: Masks | None = None
    compress: Compress | None = None
    graph: Graph | None = None
    attack: Attack | None = None
    robust: RobustMean | None = None
    privacy: PrivateMeans | None = None
    plugins: Annotated[
        tuple[str, ...] | None,
        Meta(description="plug-ins of your own, path.py:Class each: classes derived from mpifed.extend.Plugin"),
    ] = None

    refused: ClassVar[dict[str, str]] = {
        "features": 'plug-ins of your own stand in plugins, as in plugins = ["log.py:Log"], and data.features is the '
        "number of columns"
    }

    def guarantee(self) -> Privacy | None:
        """Return the guarantee of the table [privacy], or else of the method; None where neither has noise."""
        return self.algorithm.privacy() if self.privacy is None else self.privacy.guarantee()

    @property
    def on_device(self) -> bool:
        """True if the study asks for a device, by ``kernels`` or by its network."""
        return self.kernels in DEVICES or (self.kernels == "auto" and self.problem.gpu() == "cuda")

    def toml(self) -> str:
        """Return the complete experiment file."""
        return to_toml(msgspec.to_builtins(self))

    def changed_keys(self) -> list[str]:
        """Return the keys with other values than the defaults; ``algorithm`` stands for ``algorithm.name``."""
        return list(changes(self, ""))


def changes(table: StudyTable, path: str) -> Iterator[str]:
    """Yield the keys of a table and its subtables with other values than the defaults of the classes named."""
    for name, field in fields_of(type(table)).items():
        value, key = getattr(table, field.name), join_key(path, name)
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        if not isinstance(value, StudyTable):
            yield from [key] if value != default else []
            continue
        if isinstance(value, Component):
            is_default = value.label() == FAMILIES[name].default if key in FAMILIES else type(value) is type(default)
            yield from [] if is_default else [key]
        yield from changes(value, key)
