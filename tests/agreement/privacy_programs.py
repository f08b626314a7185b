"""Private means by Flower and pfl-research, and ε by Opacus and pfl-research: writes private.npz.

By hand, in an environment of its own, from the root of the repository:

    python -m venv agree && agree/bin/pip install flwr==1.42.0 pfl==0.6.0 opacus==1.6.0 torch msgspec
    PYTHONPATH=. agree/bin/python tests/agreement/privacy_programs.py

Twelve clients of a least-squares problem take three gradient steps in each of ten rounds, in double precision; the
classes of the programs get their uploads and make the next model. Where they draw, they get the normal numbers that
mpifed draws with privacy.noise_seed = 7, times their own standard deviation: first those of the model, then that of the
count.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import flwr.supercore.differential_privacy as flower_functions
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import dp_adaptive_clipping
from flwr.supercore.task_identity import TaskIdentity
from opacus.accountants import RDPAccountant
from pfl.internal.ops import numpy_ops
from pfl.privacy.adaptive_clipping import AdaptiveClippingGaussianMechanism
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_accountant import PLDPrivacyAccountant
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism
from pfl.stats import MappedVectorStatistics

from mpifed.core.streams import stream
from mpifed.features.privacy import accounting

STORED = Path(__file__).parent / "private.npz"
M, N, ROUNDS, STEPS, RATE, SEED = 12, 5, 10, 3, 0.1, 7
CLIP, FIRST_CLIP, MULTIPLIER, COUNT_NOISE = 0.3, 0.5, 0.5, 2.0
# z, q, rounds, δ
SETTINGS = [
    (1.0, 0.01, 1000, 1e-5),
    (0.8, 0.002, 300, 1e-6),
    (2.0, 0.1, 200, 1e-5),
    (5.0, 0.5, 50, 1e-4),
    (4, 1, 20, 1e-5),
]
ALL = np.tile(np.arange(M), (ROUNDS, 1))

draw = np.random.default_rng(49)
SIZES = draw.integers(6, 20, M)
A = draw.standard_normal((SIZES.sum(), N))
B = A @ draw.standard_normal((N,)) + draw.standard_normal(SIZES.sum()) + np.repeat(draw.standard_normal(M), SIZES)
FIVE = np.array([np.sort(draw.permutation(M)[:5]) for _ in range(ROUNDS)])
CLIENTS = list(zip(np.split(A, SIZES.cumsum()[:-1]), np.split(B, SIZES.cumsum()[:-1]), strict=True))


def train(i: int, x: np.ndarray) -> np.ndarray:
    """Return client i's model after its steps from x."""
    a, b = CLIENTS[i]
    for _ in range(STEPS):
        x = x - RATE * (a.T @ (a @ x - b) / len(b))
    return x


@contextmanager
def normals(round: int, noise: bool, count_first: bool) -> Iterator[None]:
    """Give what calls of np.random.normal in a round draw: numbers of mpifed's stream, or 0 without ``noise``."""
    found = stream(SEED, "noise", round, 0).standard_normal(N + 1) * noise
    left = [found[N:], found[:N]] if count_first else [found[:N], found[N:]]

    def normal(loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        part = left.pop(0)
        return loc + scale * (part[0] if size is None else part)

    with mock.patch.object(np.random, "normal", normal):
        yield


def run_flower(strategy: Any, chosen: np.ndarray, noise: bool, mod: Any = None) -> dict[str, np.ndarray]:
    """Return the models, and the bounds of a strategy that moves them, at the start and after each round."""
    grid, adaptive = SimpleNamespace(get_node_ids=lambda: range(M)), hasattr(strategy, "target_clipped_quantile")
    x, models, bounds = np.zeros(N), [np.zeros(N)], [strategy.clipping_norm]
    for round, clients in enumerate(chosen, 1):
        arrays = ArrayRecord({"x": Array(x)})
        messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
        replies = [answer(message, i, mod) for message, i in zip(messages, clients, strict=True)]
        with normals(round, noise, count_first=adaptive):
            arrays, _ = strategy.aggregate_train(round, replies)
        x = arrays["x"].numpy()
        models.append(x)
        bounds.append(strategy.clipping_norm)
    return {"x": np.array(models), "clip": np.array(bounds)} if adaptive else {"x": np.array(models)}


def answer(message: Any, i: int, mod: Any) -> Any:
    """Return the reply of client i, through the program's own clipping at clients if there is any."""

    def run_client(message: Any, context: Any = None) -> Any:
        x = next(iter(message.content.array_records.values()))["x"].numpy()
        content = {"arrays": ArrayRecord({"x": Array(train(i, x))}), "metrics": MetricRecord({"num-examples": 1})}
        return Message(RecordDict(content), reply_to=message)

    return mod(message, None, run_client) if mod else run_client(message)


def flower_fixed(cls: Any, z: float, chosen: np.ndarray = ALL, mod: Any = None) -> dict[str, np.ndarray]:
    few = chosen.shape[1]
    return run_flower(cls(average(few), z, CLIP, few), chosen, noise=z > 0, mod=mod)


def flower_adaptive(cls: Any, z: float, mod: Any = None) -> dict[str, np.ndarray]:
    count = {"clipped_count_stddev": COUNT_NOISE} if z else {}
    return run_flower(cls(average(M), z, M, FIRST_CLIP, 0.5, 0.2, **count), ALL, noise=z > 0, mod=mod)


def average(few: int) -> Any:
    return flower.FedAvg(fraction_train=few / M + 1e-9, min_train_nodes=few, min_available_nodes=M)


@contextmanager
def right_bit() -> Iterator[None]:
    """Make Flower's norm bit 1 where a change fits the bound, as in the paper."""
    original = flower_functions.adaptive_clip_inputs_inplace

    def fits(arrays: Any, bound: float) -> bool:
        return not original(arrays, bound)

    with (
        mock.patch.object(flower_functions, "adaptive_clip_inputs_inplace", fits),
        mock.patch.object(dp_adaptive_clipping, "adaptive_clip_inputs_inplace", fits),
    ):
        yield


@contextmanager
def bound_of_the_round() -> Iterator[None]:
    """Make Flower's noise that of the bound to which changes were clipped, not of the next one."""
    base = dp_adaptive_clipping.DifferentialPrivacyAdaptiveBase
    update, add = base._geometric_update, base._add_noise_to_aggregated_arrays

    def keep(self: Any, fraction: float) -> None:
        self.bound = self.clipping_norm
        update(self, fraction)

    def noisy(self: Any, aggregated: Any) -> Any:
        moved, self.clipping_norm = self.clipping_norm, self.bound
        found = add(self, aggregated)
        self.clipping_norm = moved
        return found

    with (
        mock.patch.object(base, "_geometric_update", keep),
        mock.patch.object(base, "_add_noise_to_aggregated_arrays", noisy),
    ):
        yield


def run_pfl(mechanism: Any, chosen: np.ndarray, noise: bool) -> dict[str, np.ndarray]:
    """Return the same of a mechanism of pfl-research, by its postprocessors of users and of the server."""
    bound = getattr(mechanism, "mutable_clipping_bound", None)
    x, models, bounds = np.zeros(N), [np.zeros(N)], [bound and bound.value()]
    context: Any = SimpleNamespace(seed=None, cohort_size=chosen.shape[1])
    for round, clients in enumerate(chosen, 1):
        changes = [MappedVectorStatistics({"x": train(i, x) - x}, weight=1.0) for i in clients]
        clipped = [mechanism.postprocess_one_user(stats=change, user_context=context)[0] for change in changes]
        total = sum(clipped[1:], start=clipped[0])
        with normals(round, noise, count_first=False):
            total, _ = mechanism.postprocess_server(stats=total, central_context=context, aggregate_metrics=None)
        total.average()
        x = x + total["x"]
        models.append(x)
        bounds.append(bound and bound.value())
    return {"x": np.array(models), "clip": np.array(bounds)} if bound else {"x": np.array(models)}


def pfl_fixed(z: float, chosen: np.ndarray = ALL) -> dict[str, np.ndarray]:
    return run_pfl(CentrallyAppliedPrivacyMechanism(GaussianMechanism(CLIP, z)), chosen, noise=z > 0)


def pfl_adaptive(noise: bool, double: bool) -> dict[str, np.ndarray]:
    """Return trajectories; a multiplier of 0 would divide by 0, so without ``noise`` what is drawn is 0."""
    to_tensor = partial(np.asarray, dtype=np.float64) if double else numpy_ops.to_tensor
    mechanism = AdaptiveClippingGaussianMechanism(
        lambda bound: GaussianMechanism(bound, MULTIPLIER), FIRST_CLIP, 2 * COUNT_NOISE, 0.5, 0.2
    )
    with mock.patch.object(numpy_ops, "to_tensor", to_tensor), mock.patch.object(numpy_ops, "to_numpy", to_tensor):
        return run_pfl(mechanism, ALL, noise)


def spent(z: float, q: float, rounds: int, delta: float) -> tuple[float, float, float, float]:
    """Return ε by Opacus' Rényi accountant, with all of its orders and with mpifed's whole ones, and by pfl-research's
    loss distributions, with its own grid and with mpifed's or, where mpifed has none, with one ten times finer."""
    accountant = RDPAccountant()
    accountant.history = [(z, q, rounds)]
    orders, _ = accounting.renyi_curve(z, q)
    with mock.patch.object(accounting, "privacy_loss", wraps=accounting.privacy_loss) as asked:
        if q < 1:
            accounting.GaussianRounds(z, q).epsilon(int(rounds), delta)
    width = asked.call_args.args[2] if asked.called else 1e-5

    def pfl(width: float) -> float:
        given = {"noise_parameter": z, "value_discretization_interval": width}
        found = PLDPrivacyAccountant(rounds, q, "gaussian", delta=delta, **given).epsilon
        assert found is not None
        return found

    whole = accountant.get_epsilon(delta, alphas=[order for order in orders if order == int(order)])
    return accountant.get_epsilon(delta), whole, pfl(1e-4), pfl(width)


def trajectories() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    server, client = (
        flower.DifferentialPrivacyServerSideFixedClipping,
        flower.DifferentialPrivacyClientSideFixedClipping,
    )
    yield "flower fixed", flower_fixed(server, 0.0)
    yield "flower fixed, five", flower_fixed(server, 0.0, FIVE)
    yield "flower fixed, noise", flower_fixed(server, MULTIPLIER)
    yield "flower fixed, five, noise", flower_fixed(server, MULTIPLIER, FIVE)
    yield "flower fixed at clients", flower_fixed(client, 0.0, mod=fixedclipping_mod)
    yield "flower fixed at clients, noise", flower_fixed(client, MULTIPLIER, mod=fixedclipping_mod)
    sides: list[tuple[str, Callable[[float], dict[str, np.ndarray]]]] = [
        ("", partial(flower_adaptive, flower.DifferentialPrivacyServerSideAdaptiveClipping)),
        (
            " at clients",
            partial(flower_adaptive, flower.DifferentialPrivacyClientSideAdaptiveClipping, mod=adaptiveclipping_mod),
        ),
    ]
    for side, run in sides:
        yield f"flower adaptive{side}", run(0.0)
        with right_bit():
            yield f"flower adaptive{side}, bit", run(0.0)
            yield f"flower adaptive{side}, noise, bit", run(MULTIPLIER)
            with bound_of_the_round():
                yield f"flower adaptive{side}, noise, bit and bound", run(MULTIPLIER)
    yield "pfl fixed", pfl_fixed(0.0)
    yield "pfl fixed, five", pfl_fixed(0.0, FIVE)
    yield "pfl fixed, noise", pfl_fixed(MULTIPLIER)
    for noise in ("", ", noise"):
        yield f"pfl adaptive{noise}", pfl_adaptive(bool(noise), double=False)
        yield f"pfl adaptive{noise}, double", pfl_adaptive(bool(noise), double=True)


if __name__ == "__main__":
    logging.disable()
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # which messages have
    stored = {f"{case}/{what}": array for case, found in trajectories() for what, array in found.items()}
    constants = {"clip": CLIP, "first_clip": FIRST_CLIP, "z": MULTIPLIER, "count_noise": COUNT_NOISE, "seed": SEED}
    problem = {"A": A, "b": B, "sizes": SIZES, "five": FIVE, "steps": STEPS, "rate": RATE, "rounds": ROUNDS}
    names = ("opacus", "opacus whole", "pfl", "pfl grid")
    epsilons = dict(zip(names, np.array([spent(*setting) for setting in SETTINGS]).T, strict=True))
    epsilons["settings"] = np.array(SETTINGS)
    np.savez_compressed(STORED, **stored, **constants, **problem, **epsilons)
