"""What Flower, FedJAX, Optax, PyProximal and glum compute, for servers.py and glum's rows: writes programs.npz.

By hand, in an environment of its own, from the root of the repository, after that of privacy_programs.py:

    agree/bin/pip install fedjax==0.0.17 optax==0.2.8 pyproximal==0.13.0 glum==3.4.1 h5py threadpoolctl
    PYTHONPATH=. agree/bin/python tests/agreement/programs.py

The twelve clients and the plain local steps are those of privacy_programs.py; the server's step, with FedJAX the local
steps too, is that of the program. Optax trains on the sixty samples of packages.py. All in double precision.
"""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fedjax
import glum
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyproximal
from fedjax.algorithms import apfl, fed_avg, fed_prox
from flwr.serverapp import strategy as flower
from flwr.supercore.task_identity import TaskIdentity

from tests.agreement import privacy_programs as private
from tests.agreement.packages import CLASSES, COUNTS, POSITIVE, SHIFTS, WEIGHTS, A
from tests.agreement.privacy_programs import ALL, CLIENTS, FIVE, RATE, STEPS, M, N, train

STORED = Path(__file__).parent / "programs.npz"
PROX = 0.5  # of FedProx and SFedProx
STEP = 0.02  # a of SFedAvg and SFedProx: γ_i = a d_i/√(2k0 + ⌊k/k0⌋)
PENALTY = 0.5  # ρ of ADMM
RIDGE = 0.25  # μ in the f_i of FedDCD
L1 = 0.125  # PyProximal rounds it, and steps, to single precision
jax.config.update("jax_enable_x64", True)
jax.tree_map = jax.tree_util.tree_map  # two names of before, which FedJAX calls
apfl.partial = lambda clip, a_min, a_max: partial(clip, min=a_min, max=a_max)


def flower_run(
    cls: Any, chosen: np.ndarray = ALL, local: Callable[..., np.ndarray] = train, sizes: bool = False, **more: Any
) -> np.ndarray:
    """Return the models of a strategy at the start and after each round; with ``sizes`` clients count by these."""
    few = chosen.shape[1]
    strategy = cls(fraction_train=few / M + 1e-9, min_train_nodes=few, min_available_nodes=M, **more)
    grid, x, models = SimpleNamespace(get_node_ids=lambda: range(M)), np.zeros(N), [np.zeros(N)]
    for round, clients in enumerate(chosen, 1):
        arrays = flower_arrays(x)
        messages = strategy.configure_train(round, arrays, private.ConfigRecord(), grid)
        replies = []
        for message, i in zip(messages, clients, strict=True):
            a, b = CLIENTS[i]
            loss = float(np.mean((a @ x - b) ** 2) / 2)
            metrics = private.MetricRecord({"num-examples": len(b) if sizes else 1, "train_loss": loss})
            w = local(i, x) if local is train else local(i, x, round)
            content = {"arrays": flower_arrays(w), "metrics": metrics}
            replies.append(private.Message(private.RecordDict(content), reply_to=message))
        arrays, _ = strategy.aggregate_train(round, replies)
        x = arrays["x"].numpy()
        models.append(x)
    return np.array(models)


def flower_arrays(x: np.ndarray) -> Any:
    return private.ArrayRecord({"x": private.Array(x)})


def gradient(i: int, w: np.ndarray) -> np.ndarray:
    a, b = CLIENTS[i]
    return a.T @ (a @ w - b) / len(b)


def root_steps(i: int, x: np.ndarray, round: int, mu: float = 0.0, inner: int = 1) -> np.ndarray:
    """Return client i's model after k0 = STEPS iterations of SFedAvg, or SFedProx."""
    gamma, w = STEP * len(CLIENTS[i][1]) / np.sqrt(2 * STEPS + round - 1), x
    for _ in range(STEPS * inner):
        w = w - gamma * (gradient(i, w) + mu * (w - x))
    return w


class Whole:
    """A client of FedJAX whose batches are all of its samples."""

    def __init__(self, i: int) -> None:
        self.samples = dict(zip("ab", CLIENTS[i], strict=True))

    def __len__(self) -> int:
        return len(self.samples["b"])

    def shuffle_repeat_batch(self, steps: int) -> list[dict[str, np.ndarray]]:
        return [self.samples] * steps


def losses(x: Any, batch: Any, rng: Any) -> Any:
    """Return the losses of samples, which FedJAX averages."""
    return (batch["a"] @ x - batch["b"]) ** 2 / 2


def fedjax_run(algorithm: Any, chosen: np.ndarray = ALL) -> tuple[np.ndarray, Any]:
    """Return the models of an algorithm at the start and after each round, and its last state."""
    state = algorithm.init(jnp.zeros(N))
    models = [np.zeros(N)]
    for clients in chosen:
        state, _ = algorithm.apply(state, [(int(i), Whole(i), jax.random.PRNGKey(0)) for i in clients])
        models.append(np.array(state.params))
    return np.array(models), state


def fedjax_averaging(client: Any, server: Any, chosen: np.ndarray = ALL) -> np.ndarray:
    grad = jax.grad(lambda x, batch, rng: losses(x, batch, rng).mean())
    return fedjax_run(fed_avg.federated_averaging(grad, client, server, STEPS), chosen)[0]


def fedjax_trajectories() -> Iterator[tuple[str, np.ndarray]]:
    sgd, one = fedjax.optimizers.sgd(RATE), fedjax.optimizers.sgd(1.0)
    yield "fedjax average", fedjax_averaging(sgd, one)
    yield "fedjax average, five", fedjax_averaging(sgd, one, FIVE)
    yield "fedjax client momentum", fedjax_averaging(fedjax.optimizers.sgd(RATE, 0.8), one)
    yield "fedjax client adam", fedjax_averaging(fedjax.optimizers.adam(RATE), one)
    yield "fedjax server momentum", fedjax_averaging(sgd, fedjax.optimizers.sgd(0.5, 0.8))
    yield "fedjax prox", fedjax_run(fed_prox.fed_prox(losses, sgd, one, STEPS, PROX))[0]
    yield "fedjax prox, five", fedjax_run(fed_prox.fed_prox(losses, sgd, one, STEPS, PROX), FIVE)[0]
    grad = jax.grad(lambda x, batch, rng: losses(x, batch, rng).mean())
    models, state = fedjax_run(apfl.adaptive_personalized_federated_learning(grad, sgd, one, STEPS, 0.5), FIVE)
    yield "fedjax apfl", models
    own = [state.client_states[i] for i in range(M)]
    yield "fedjax apfl/v", np.array([one.params for one in own])


def pooled(parts: Any) -> Any:
    """Return the mean cross-entropy of the sixty samples."""
    W, b = parts
    return optax.softmax_cross_entropy_with_integer_labels(A @ W.T + b, CLASSES.astype(int)).mean()


slope = jax.jit(jax.grad(pooled))


def optax_run(optimiser: Any, steps: int, record: int = 1, renew: bool = False, ahead: float = 0.0) -> np.ndarray:
    """Return every ``record``-th model; with ``renew`` the optimiser begins anew there.

    Where ``ahead`` is a step size, the points of the optimiser are those ahead of Nesterov's models.
    """
    parts = (jnp.zeros((3, 4)), jnp.zeros(3))
    state, models, update = optimiser.init(parts), [np.zeros(15)], jax.jit(optimiser.update)
    for step in range(1, steps + 1):
        g = slope(parts)
        model = jax.tree.map(lambda p, d: p - ahead * d, parts, g)
        change, state = update(g, state, parts)
        parts = optax.apply_updates(parts, change)
        if step % record == 0:
            models.append(np.concatenate([np.ravel(p) for p in (model if ahead else parts)]))
            state = optimiser.init(parts) if renew else state
    return np.array(models)


def optax_trajectories() -> Iterator[tuple[str, np.ndarray]]:
    local = partial(optax_run, steps=60, record=10, renew=True)
    yield "optax sgd", local(optax.sgd(0.05))
    yield "optax momentum", local(optax.sgd(0.05, 0.8))
    yield "optax nesterov", local(optax.sgd(0.05, 0.9, nesterov=True))
    yield "optax adam", local(optax.adam(0.05))
    yield "optax adamw", local(optax.adamw(0.05, weight_decay=0.1))
    yield "optax server momentum", optax_run(optax.sgd(0.1, 0.8), 20)
    yield "optax server rmsprop", optax_run(optax.rmsprop(0.1, 0.99, 0.01, initial_scale=1e-4, eps_in_sqrt=False), 20)
    yield "optax gd", optax_run(optax.sgd(0.5), 20)
    yield "optax constant momentum", optax_run(optax.sgd(0.5, 0.6, nesterov=True), 40, ahead=0.5)
    yield "optax lbfgs", optax_run(optax.chain(optax.scale_by_lbfgs(5), optax.scale(-1.0)), 25)


class Mean(pyproximal.ProxOperator):
    """All rows are equal: the projection is their mean. With ``dual``, their sum is 0."""

    def __init__(self, dual: bool = False) -> None:
        super().__init__(None, False)
        self.dual = dual

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def prox(self, x: np.ndarray, tau: float) -> np.ndarray:
        mean = x.reshape(M, N).mean(axis=0)
        return x - np.tile(mean, M) if self.dual else np.tile(mean, M)


class Quadratics(pyproximal.ProxOperator):
    """Σ f_i(x_i) with its proximal operator; with ``dual`` Σ (f_i + (μ/2)‖·‖²)* with its gradient."""

    def __init__(self, mu: float = 0.0, dual: bool = False) -> None:
        super().__init__(None, True)
        self.hessians = [a.T @ a / len(b) + mu * np.eye(N) for a, b in CLIENTS]
        self.c = [a.T @ b / len(b) for a, b in CLIENTS]

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def prox(self, x: np.ndarray, tau: float) -> np.ndarray:
        rows = zip(self.hessians, self.c, x.reshape(M, N), strict=True)
        return np.concatenate([np.linalg.solve(H + np.eye(N) / tau, c + v / tau) for H, c, v in rows])

    def grad(self, y: np.ndarray) -> np.ndarray:
        rows = zip(self.hessians, self.c, y.reshape(M, N), strict=True)
        return np.concatenate([np.linalg.solve(H, c + v) for H, c, v in rows])


class Pooled(pyproximal.ProxOperator):
    """The mean of all f_i, whose gradient FISTA takes."""

    def __init__(self) -> None:
        super().__init__(None, True)

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def grad(self, x: np.ndarray) -> np.ndarray:
        return np.mean([gradient(i, x) for i in range(M)], axis=0)


def proximal_trajectories() -> Iterator[tuple[str, np.ndarray]]:
    def kept(
        run: Callable[..., Any], *args: Any, each: Callable[[np.ndarray], np.ndarray] = np.copy, **more: Any
    ) -> np.ndarray:
        models: list[np.ndarray] = []
        run(*args, callback=lambda x: models.append(each(x)), **more)
        return np.array(models)

    one = partial(kept, tau=0.25, niter=20)
    yield (
        "pyproximal gradient",
        one(pyproximal.optimization.primal.ProximalGradient, Pooled(), pyproximal.L1(sigma=L1), np.zeros(N)),
    )
    fista = pyproximal.optimization.primal.AcceleratedProximalGradient
    yield "pyproximal fista", one(fista, Pooled(), pyproximal.L1(sigma=L1), np.zeros(N), acceleration="fista")
    yield "pyproximal fista, smooth", one(fista, Pooled(), pyproximal.L1(sigma=0.0), np.zeros(N), acceleration="fista")
    zero = np.zeros(M * N)
    admm = pyproximal.optimization.primal.ADMM
    yield "pyproximal admm", kept(admm, Mean(), Quadratics(), zero, 1 / PENALTY, niter=20, each=lambda x: x[:N].copy())
    dual = Quadratics(RIDGE)
    ascend = pyproximal.optimization.primal.ProximalGradient
    yield (
        "pyproximal dual",
        kept(
            ascend,
            dual,
            Mean(dual=True),
            zero,
            tau=RIDGE / 2,
            niter=20,
            each=lambda y: dual.grad(y).reshape(M, N).mean(axis=0),
        ),
    )


def glum_fits() -> Iterator[tuple[str, np.ndarray]]:
    tight = {"fit_intercept": True, "gradient_tol": 1e-14, "max_iter": 10_000, "start_params": np.zeros(5)}
    for key, family, labels, more, columns in GLUM:
        model = glum.GeneralizedLinearRegressor(family=family, link="log", **tight | more)
        model.fit(A, labels, **columns)
        yield key, np.append(model.coef_, model.intercept_)


GLUM: Sequence[tuple[str, str, np.ndarray, dict[str, Any], dict[str, np.ndarray]]] = [
    ("glum poisson", "poisson", COUNTS, {"alpha": 0.1, "l1_ratio": 0.0}, {}),
    ("glum poisson, weights", "poisson", COUNTS, {"alpha": 0.1, "l1_ratio": 0.0}, {"sample_weight": WEIGHTS}),
    ("glum poisson, offsets", "poisson", COUNTS, {"alpha": 0.1, "l1_ratio": 0.0}, {"offset": SHIFTS}),
    ("glum gamma", "gamma", POSITIVE, {"alpha": 0.1, "l1_ratio": 0.0}, {}),
    (
        "glum gamma, both",
        "gamma",
        POSITIVE,
        {"alpha": 0.1, "l1_ratio": 0.0},
        {"sample_weight": WEIGHTS, "offset": SHIFTS},
    ),
]


def flower_trajectories() -> Iterator[tuple[str, np.ndarray]]:
    yield "flower average", flower_run(flower.FedAvg)
    yield "flower average, five", flower_run(flower.FedAvg, FIVE)
    yield "flower average, sizes", flower_run(flower.FedAvg, sizes=True)
    yield "flower average, sizes, five", flower_run(flower.FedAvg, FIVE, sizes=True)
    yield "flower momentum", flower_run(flower.FedAvgM, server_learning_rate=0.5, server_momentum=0.8)
    adaptive: dict[str, Any] = {"eta": 0.1, "tau": 0.01, "beta_1": 0.9}
    yield "flower adam", flower_run(flower.FedAdam, beta_2=0.99, **adaptive)
    yield "flower yogi", flower_run(flower.FedYogi, beta_2=0.99, **adaptive)
    yield "flower adagrad", flower_run(flower.FedAdagrad, eta=0.1, tau=0.01)
    for name, chosen in (("", ALL), (", five", FIVE)):
        yield f"flower median{name}", flower_run(flower.FedMedian, chosen)
        yield f"flower trimmed{name}", flower_run(flower.FedTrimmedAvg, chosen, beta=0.2)
        yield f"flower krum{name}", flower_run(flower.Krum, chosen, num_malicious_nodes=chosen.shape[1] // 5)
        yield f"flower fair{name}", flower_run(flower.QFedAvg, chosen, client_learning_rate=RATE, q=1.0)
        yield f"flower root steps{name}", flower_run(flower.FedAvg, chosen, root_steps)
        yield (
            f"flower proximal root steps{name}",
            flower_run(flower.FedAvg, chosen, partial(root_steps, mu=PROX, inner=2)),
        )


if __name__ == "__main__":
    logging.disable()
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # which messages have
    gc.freeze()  # Flower collects garbage for every upload
    found: dict[str, np.ndarray] = {}
    for part in (flower_trajectories, glum_fits, proximal_trajectories, optax_trajectories, fedjax_trajectories):
        for key, array in part():
            print(key, array.shape, flush=True)
            found[key] = array
        np.savez_compressed(STORED, **found)
