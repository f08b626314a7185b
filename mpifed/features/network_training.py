"""Feature of networks in training: dropout, random changes of samples, and half precision."""

from copy import copy

import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.streams import hash_numbers, streams, to_signed_64, user_purpose_number
from mpifed.core.typing import Array
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.features.settings import Experiment
from mpifed.federation.local_transform import F, Gradient, LocalClients, LocalTransform, Steps
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem


class SeededGradient:
    """The gradient of a problem with random numbers from ``seeds`` (c,), and whole steps along it."""

    def __init__(self, problem: Problem, seeds: Array) -> None:
        self.problem = problem
        self.seeds = seeds

    def __call__(self, block: Block, X: Array) -> Array:
        return self.problem.seeded_grad(block, X, self.seeds)

    def descend(self, block: Block, X: Array, rate: Array | float) -> Array:
        """Return x_i − rate·∇f_i(x_i): (c, n)."""
        return self.problem.seeded_descent(block, X, rate, self.seeds)


class Dropout(LocalTransform):
    """Local transform of gradients with random numbers of the problem, such as masks, from a seed for each client.

    The seed follows from that of the ``run``, the client, the round and the call, and in ``steps`` from the number of
    the local step. At two points of one step it is the same.
    """

    def __init__(self, run: int, seeds: Array | None = None, loops: int = 0) -> None:
        self.run = run
        self.seeds = seeds
        self.loops = loops  # how often ``steps`` was called

    def of(self, f: LocalClients, rows: Array | None = None) -> LocalTransform:
        if rows is None:
            return Dropout(self.run)
        # clients in the midst of a step go on with its seeds, and their next loop is the next one
        return Dropout(self.run, None if self.seeds is None else self.seeds[rows], self.loops)

    def get_seeds(self, f: LocalClients) -> Array:
        """Return the random seed of each client, an integer of 64 bits: (c,)."""
        # computed only here: most calls need none, such as evaluations
        if self.seeds is None:
            run = np.full(len(f), to_signed_64(self.run))
            self.seeds = hash_numbers(run, to_signed_64(user_purpose_number("dropout")), f.ids, *f.key)
        return self.seeds

    def gradient(self, f: LocalClients, before: Gradient) -> Gradient:
        return SeededGradient(f.problem, self.get_seeds(f))

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        self.loops += 1
        # a copy: loops that begin before this one has ended count on
        loop = self.loops
        position = f.transforms.index(self)
        epoch = -1
        k = 0  # mini-batches are counted anew in each epoch: other clients may have more of them
        for j, batch, has in steps:
            k = k + 1 if j == epoch else 0
            epoch = j
            # with full batches every step has this f, which needs its own seeds after the loop: a copy is changed
            step = f.with_key(f.key) if batch is f else batch
            step.transforms[position] = Dropout(self.run, hash_numbers(self.get_seeds(f), loop, j, k))
            yield j, step, has


class Augmentation(LocalTransform):
    """Local transform that changes samples of mini-batches at random; those of full batches and evaluations stay."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.changes: list[np.random.Generator] = []  # a random stream per client, for a round and call

    def of(self, f: LocalClients, rows: Array | None = None) -> LocalTransform:
        # streams begin anew for some of the clients too, like those from which mini-batches are drawn
        return Augmentation(self.run)

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        for j, batch, has in steps:
            if batch.block is not f.block:  # not a full batch
                batch.block = self.augment(f, batch.block)
            yield j, batch, has

    def augment(self, f: LocalClients, block: Block) -> Block:
        """Return a mini-batch with changed samples; a client's draws depend on its own number of samples alone."""
        # later loops continue the same streams
        self.changes = self.changes or streams(self.run, "augment", f.ids, *f.key)
        augmented = copy(block)
        counts = (block.w > 0).sum(axis=1).tolist()
        augmented.A = f.problem.augment_samples(block.A, counts, self.changes)
        return augmented


class NetworkTraining(Plugin):
    """Network whose local steps are random or compute in half precision."""

    # Changes of samples are drawn from a stream of each client and stay where the samples are.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["network_training"]

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[LocalTransform]:
        return training_transforms(self.config)


def training_transforms(c: Experiment) -> list[LocalTransform]:
    """Return the transforms that make local steps of a study's problem random."""
    transforms: list[LocalTransform] = [Dropout(c.seed)] if c.problem.has("seeded_grad") else []
    # after dropout, which gives every step its own f: the samples of that f are changed
    return [*transforms, Augmentation(c.seed)] if c.problem.augments() else transforms
