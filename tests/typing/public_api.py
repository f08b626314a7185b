"""A user's study that takes every name of the public API: its own algorithm, problem, data and more, then a run.

``mypy --strict`` must accept it as a user's program is checked: without the settings of this repository.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

import mpifed
from mpifed import Result
from mpifed.algorithms.parts import Max, Optimizer, ServerOptimizer, Solver, Step, Sum
from mpifed.extend import Algorithm, Array, Data, Federation, Graph, GraphFederation, Local, Selection


class Client(NamedTuple):
    w: Array  # (c, n) last local model


class Server(NamedTuple):
    x: Array  # (n,) model
    k: int  # rounds so far


class Harmonic(Step):
    """γ_k = a/(1 + k)."""

    a: Annotated[float, Meta(gt=0, description="first step size")] = 1.0

    def gamma(self, k: int, k0: int, d: Array) -> float:
        return self.a / (1 + k)


class Sign(Optimizer):
    """d = sign(g)."""

    def direction(self, memory: Any, g: Array, w: Array) -> tuple[Array, Any]:
        return np.sign(g), memory


class Halfway(ServerOptimizer):
    """x⁺ = x + Δ/2."""

    def rate(self, delta: Array, spread: float) -> float:
        return 0.5

    def direction(self, memory: Any, delta: Array) -> tuple[Array, Any]:
        return delta, memory


class FewSteps(Solver):
    """``steps`` gradient steps of size 1/β."""

    steps: Annotated[int, Meta(ge=1, description="number of gradient steps")] = 3

    def passes(self) -> int | None:
        return self.steps

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, fraction: float) -> Array:
        for _ in range(self.steps):
            W = W - (f.grad(W) - Y) / beta
        return W


class Relaxed(Algorithm):
    """x⁺ = x + γ_k (mean of w_i − x), w_i near the minimiser of f_i."""

    step: Annotated[Step, Meta(description="step size γ_k of the server")] = Harmonic(a=0.9)
    solver: Annotated[Solver, Meta(description="how clients come near the minimiser")] = FewSteps()
    beta: Annotated[float, Meta(gt=0, description="smoothness β")] = 4.0

    requires = (mpifed.extend.Requirement("lipschitz", unless=("beta",)),)
    participation = mpifed.extend.Participation.SELECTED
    mean_estimate = mpifed.extend.MeanEstimate.UNBIASED
    upload = mpifed.extend.Upload(content="model")
    asynchronous = mpifed.extend.Unsupported("it is an example")

    def init_client(self, f: Local) -> Client:
        return Client(w=f.initial())

    def init_server(self, fed: Federation) -> Server:
        return Server(x=fed.initial(), k=0)

    def round(self, fed: Federation, server: Server) -> Server:
        mean: Array = fed.mean(self.approach, server.x, to=fed.select(server.x))
        gamma = self.step.gamma(server.k, 1, np.ones((1, 1)))
        return Server(x=server.x + gamma * (mean - server.x), k=server.k + 1)

    def approach(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        start = np.tile(x, (len(f), 1))
        w = self.solver.minimise(f, np.zeros_like(start), start, alpha=0.0, beta=self.beta, fraction=1.0)
        return client._replace(w=w), w

    def record(self, f: Local, client: Client, x: Array) -> dict[str, Sum | Max]:
        drift = np.linalg.norm(client.w - x, axis=1)
        return {"drift": Sum(drift), "drift_max": Max(drift)}


class Gossip(mpifed.extend.GraphAlgorithm):
    """Nodes take gradient steps and move to the means of their neighbours, alone or with themselves."""

    gamma: Annotated[float, Meta(gt=0, description="step size γ")] = 0.1

    def init_client(self, f: Local) -> Client:
        return Client(w=f.initial())

    def model(self, f: Local, client: Client) -> Array:
        return client.w

    def init_server(self, net: GraphFederation) -> Server:
        return Server(x=net.initial(), k=0)

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.gather("w", self.moved)
        net.local(self.descended, self.gamma)
        net.mix("w")
        return server

    def moved(self, f: Local, client: Client, near: mpifed.extend.Neighbours) -> tuple[Client, None]:
        sums = np.add.reduceat(near.rows, near.first[:-1])
        return Client(w=sums / f.neighbours), None

    def descended(self, f: Local, client: Client, gamma: float) -> tuple[Client, None]:
        return Client(w=client.w - gamma * f.grad(client.w)), None


class Wheel(Graph):
    """A ring, and node 0 beside every other node."""

    def edges(self, m: int, rng: np.random.Generator) -> mpifed.extend.Edges:
        rim = [(i, i + 1) for i in range(1, m - 1)] + [(1, m - 1)]
        return mpifed.extend.Edges(np.array(sorted({(0, i) for i in range(1, m)} | set(rim))))


class Deaf(mpifed.extend.Attack):
    """Nothing is sent but zeros."""

    def alone(self, u: Array, draws: Callable[[], Sequence[np.random.Generator]]) -> Array:
        return 0 * u


class Middle(mpifed.extend.RobustMean):
    """Half-way between the least and the largest number of each coordinate."""

    by_column = True

    def mean(self, rows: Array, uploads: int, before: Array | float) -> Array:
        return np.asarray((rows.min(axis=0) + rows.max(axis=0)) / 2)


class Huber(mpifed.extend.LinearModel):
    """f_i(x) = (1/d_i) Σ_j h(⟨a_j, x⟩ − b_j), h(r) = r²/2 where |r| <= delta, else delta(|r| − delta/2)."""

    curvature = 1.0

    delta: Annotated[float, Meta(gt=0, description="residual at which the square ends")] = 1.0

    def loss(self, Z: Array, b: Array) -> Array:
        r = np.abs(Z - b)
        return np.asarray(np.where(r <= self.delta, r * r / 2, self.delta * (r - self.delta / 2)))

    def slope(self, Z: Array, b: Array) -> Array:
        return np.asarray(np.clip(Z - b, -self.delta, self.delta))


class ByTurns(mpifed.extend.Partition):
    """Row j goes to client j mod m."""

    def deal(self, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
        owner = np.arange(len(y)) % m
        return np.argsort(owner, kind="stable"), np.bincount(owner, minlength=m)


class Outliers(Data, kw_only=True):
    """b = ⟨a, 1⟩ + noise, and every tenth sample is far away."""

    supports = mpifed.extend.Supports.PRIVACY | mpifed.extend.Supports.SURVIVAL | mpifed.extend.Supports.DEVICES
    options = mpifed.extend.supporting("features", "samples", "noise", "partition")

    features: Annotated[int, Meta(ge=1, description="features n")] = 4
    samples: Annotated[int, Meta(ge=1, description="samples of all clients")] = 200
    noise: Annotated[mpifed.extend.Distribution, Meta(description="size of the noise of each client")]
    partition: Annotated[mpifed.extend.Partition, Meta(description="who owns which sample")] = ByTurns()

    def load(self, seed: int, dtype: str) -> mpifed.extend.Dataset:
        rng = mpifed.extend.stream(seed, "data")
        X, noise = rng.standard_normal((self.samples, self.features)), rng.standard_normal(self.samples)
        noise[::10] *= 100
        order, sizes = self.partition.split(noise, self.clients, rng)
        return mpifed.extend.Pool(X, X.sum(axis=1) + self.noise.draw(rng, 1) * noise, order, sizes, dtype)


class InTurn(Selection):
    """Clients 0 … count − 1, then the next count, and so on around."""

    count: Annotated[int, Meta(ge=1, description="clients a round")] = 2

    def selector(self, seed: int, m: int, rounds: int) -> mpifed.extend.Selector:
        if self.count > m:
            raise mpifed.UserError(f"selection.count = {self.count} is wrong: there are {m} clients")
        return mpifed.extend.Selector(
            self.count, lambda round, again: np.sort((np.arange(self.count) + (round - 1) * self.count) % m)
        )


class MeanOfSamples(mpifed.extend.Problem):
    """f_i(x) = ½‖x‖² − ⟨mean of the samples of client i, x⟩."""

    def value_grad(self, block: mpifed.extend.Block, X: Array) -> tuple[Array, Array]:
        mean = block.vecmat(block.w)
        return np.vecdot(X, X) / 2 - np.vecdot(mean, X), X - mean


def study(path: str | os.PathLike[str]) -> Result:
    """Run the study into a file and read it back."""
    here = Path(__file__).as_posix()
    config = {
        "rounds": 20,
        "data": {"name": f"{here}:Outliers", "clients": 6, "noise": 0.1},
        "problem": {"name": f"{here}:Huber", "delta": 2.0},
        "algorithm": {"name": f"{here}:Relaxed", "solver": {"name": f"{here}:FewSteps", "steps": 5}},
        "selection": f"{here}:InTurn",
    }
    means = mpifed.run(
        {"rounds": 2, "data": {"clients": 4, "features": 3}, "problem": f"{here}:MeanOfSamples"}
        | {"algorithm": {"name": "fedavg", "optimizer": f"{here}:Sign"}}
    )
    assert means.cr == 2
    kept: Result = mpifed.run(config, path=path)
    assert kept.rounds["drift"].min() >= 0
    return mpifed.load(path)


def of_a_frame(frame: Any) -> mpifed.extend.Data:
    """Data of a data frame by its columns."""
    return mpifed.table(frame, target="y", client="site", categories=["grade"], missing="drop")


def in_memory(path: str | os.PathLike[str]) -> str:
    """The same from arrays and objects: stopped by a callback, continued, and seen from all sides."""
    X = mpifed.extend.stream(0, "data").standard_normal((40, 3))

    def enough(round: int, row: Mapping[str, float]) -> bool:
        return round == 2 or row["objective"] < 0

    data = mpifed.arrays(X, X.sum(axis=1), 4, partition=ByTurns(), test=0.25)
    options = {"algorithm.beta": 3.0, "checkpoint": {"keep": True}}
    begun = mpifed.run(
        {"algorithm": Relaxed(solver=FewSteps(steps=2))}, options, data=data, rounds=6, path=path, callback=enough
    )
    assert begun.status == "stopped"
    whole = mpifed.resume(path, {"rounds": 5}, progress=False, data=data)
    items = mpifed.datasets([[(row, row.sum()) for row in part] for part in (X[:10], X[10:])])
    own = mpifed.run(data=items, problem="least-squares", rounds=1)
    assert own.m == 2
    figure = mpifed.plot([begun, whole], y=["objective", "grad_norm_sq"], log="y")
    assert len(figure.axes) == 2
    assert whole.plot("objective") is not None
    grid = {"algorithm": [Relaxed(), "fedavg"], "seed": range(2)}
    several: list[Result] = mpifed.sweep(options, grid, data=data, rounds=2)
    assert len(mpifed.frame(several)) == 4
    return mpifed.compare([whole], ["objective"], format="markdown") + whole.summary()


class Rounds(mpifed.extend.ServerTransform):
    """How many rounds have ended."""

    count = 0

    def transform_state(self, server: Any) -> Any:
        self.count += 1
        return server


class Tenths(mpifed.extend.Transform):
    """Uploads rounded to tenths, a byte each; the server counts the requests that it changes."""

    def begin(self, request: mpifed.extend.Request, cost: Any) -> None:
        super().begin(request, cost)
        self.server_state["count"] = self.server_state.get("count", np.zeros(1)) + (self.name in request.transforms)

    def encode_array(self, batch: mpifed.extend.ClientBatch, name: str, rows: Array) -> Array:
        assert len(batch.f) == len(rows)
        return np.round(rows, 1)

    def bits(self, shapes: Sequence[tuple[int, ...]]) -> int:
        return 8 * sum(int(np.prod(shape)) for shape in shapes)


class Doubled(mpifed.extend.LocalTransform):
    """Local steps with twice the gradient."""

    def gradient(self, f: Any, before: Any) -> Any:
        return lambda block, X: 2 * before(block, X)


class Clockwork(mpifed.extend.Schedule):
    """Rounds that take a second each."""

    def begin(self, round: int) -> None:
        super().begin(round)
        self.seconds = float(round)


class CountsRounds(mpifed.extend.Plugin, mpifed.extend.Callback):
    """A plug-in that counts rounds, rounds uploads, doubles gradients and says so."""

    conflicts = (mpifed.extend.Conflict(("CountsRounds", "masks"), "masks hide what it counts", lambda c: c.masks),)

    def prepare(self, setup: mpifed.extend.RunSpec, data: mpifed.extend.Dataset) -> mpifed.extend.RunSpec:
        return setup._replace(seed=setup.seed + 1)

    def schedule(
        self, setup: mpifed.extend.RunSpec, data: mpifed.extend.Dataset, selector: mpifed.extend.Selector
    ) -> mpifed.extend.Schedule | None:
        return Clockwork(setup.m)

    def transforms(
        self, setup: mpifed.extend.RunSpec, fed: mpifed.extend.Federation | None
    ) -> list[mpifed.extend.Transform | mpifed.extend.LocalTransform | mpifed.extend.ServerTransform]:
        return [Rounds(), Tenths(), Doubled()]

    def on_evaluate(self, fed: mpifed.extend.Federation, x: Array) -> dict[str, float | dict[str, Array]]:
        return {"length": float(np.sqrt(x @ x))}


def certified() -> mpifed.theory.Certificate | None:
    """A method of its own with a condition, a bound and their answers in the record."""

    class Careful(mpifed.algorithms.FedAvg, tag="careful"):
        def certificate(self, known: mpifed.theory.StudyConstants) -> mpifed.theory.Certificate:
            steps = mpifed.theory.Condition.of("k0 <= m", self.k0, "<=", known.m, "notes, (1)")
            return mpifed.theory.Certificate(
                "my notes", [steps], [mpifed.theory.Bound("f", "f(x⁰)", known.f0, "notes, (2)")], []
            )

    result = mpifed.run(algorithm=Careful(k0=3, certify=True), rounds=1, data=mpifed.data.Gaussian(clients=4))
    return result.certificate


def every_family() -> float:
    """Runs of component objects alone, and two without a server: how far nodes are from each other in the end."""
    report = mpifed.check(Harmonic(a=0.001), {"rounds": 2}, seed=1)
    assert report, report
    constant = mpifed.distributions.ConstantDistribution(value=1e4)
    data = mpifed.data.Gaussian(clients=6, samples=20, features=3)
    algorithms: list[Algorithm] = [
        mpifed.algorithms.FedAvg(step=mpifed.steps.ConstantStep(a=0.1), optimizer=mpifed.optimizers.Momentum()),
        mpifed.algorithms.FedOpt(server=Halfway()),
        mpifed.algorithms.FedOpt(server=mpifed.server_optimizers.Yogi(lr=0.05)),
        mpifed.algorithms.FedDCD(solver=mpifed.solvers.NewtonSolver()),
    ]
    assert isinstance(mpifed.partitions.Iid(), mpifed.extend.Partition)
    topk: mpifed.extend.Compressor = mpifed.compressors.TopK(k="0.1n")
    assert topk.compress(np.ones((2, 10)), list).sum() == 2
    options = {"problem": mpifed.problems.Logistic(mu=0.1), "system": {"speed": constant, "passes": 5}}
    selection = mpifed.selections.UniformSelection(share=0.5)
    try:
        for one in algorithms:
            result = mpifed.run(options, algorithm=one, data=data, selection=selection, rounds=2)
            assert result.cr == 2
    except mpifed.RunError as trouble:
        raise AssertionError from trouble
    counted = mpifed.run(options, data=data, algorithm="fedavg", plugins=[f"{__file__}:CountsRounds"], rounds=2)
    assert (counted.rounds["bits_up"][1:] == 8 * 3 * counted.rounds["uploads"][1:]).all()
    graphs: list[Graph] = [Wheel(loss=0.1), mpifed.graphs.Torus(rows=2)]
    done = [mpifed.run(algorithm=Gossip(), graph=graph, data=data, rounds=30) for graph in graphs]
    attack, robust = Deaf(clients=0.5), Middle(bucket=2)
    assert mpifed.run(algorithm="gd", data=data, attack=attack, robust=robust, rounds=2).cr == 2
    assert isinstance(mpifed.attacks.SignFlip(), mpifed.extend.Attack)
    assert isinstance(mpifed.robust_means.Median(), mpifed.extend.RobustMean)
    return max(float(one.rounds["consensus_max"][-1]) for one in done)


if __name__ == "__main__":
    result = study(sys.argv[1])
    print(mpifed.__version__, result.status, float(result.rounds["objective"][-1]), result.x)
