"""Which runs measure how large blocks of samples should be, and what their result files say of it."""

from typing import Any

from mpifed.core.guards import own
from mpifed.experiment.job import Job
from mpifed.experiment.kernels import on_device
from mpifed.experiment.prepare import Prepared
from mpifed.federation.block_sizes import BlockSizes
from mpifed.federation.traits import needs
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel


def measure(parts: Prepared, job: Job) -> None:
    """Have the first rounds of a run measure it on this rank, where it can be measured and none is set."""
    if parts.host is not None and job.config.block_bytes is None and measurable(parts, job):
        before = 0 if job.saved is None else job.saved.round
        BlockSizes(parts.host, job.config.rounds - before).begin()


def measurable(parts: Prepared, job: Job) -> bool:
    """Whether blocks can be cut anew at no cost, and no bit depends on them, which classes of a user's own may forget.

    Samples are dense and in memory; the model is linear; no matrices of second derivatives, which order clients by
    another rule.
    """
    problem, algorithm = job.config.problem, job.config.algorithm
    linear = isinstance(problem, LinearModel | Classifier) and "hess" not in needs(algorithm)
    memory = not on_device(parts.setup.kernels)
    written = own(type(problem)) or own(type(algorithm))
    plain = not parts.data.sparse and parts.data.columns is None
    return linear and memory and not written and plain and job.config.asynchronous is None


def recorded(ranks: dict[str, Any]) -> dict[str, Any]:
    """The root attributes of a result at the end of a run: the size of the first rank with clients, and why."""
    first = next(k for k, clients in enumerate(ranks["clients"]) if clients)
    sizes = sorted({size for size, clients in zip(ranks["block_bytes"], ranks["clients"], strict=True) if clients})
    others = f"; ranks chose {sizes[0]:,} to {sizes[-1]:,} bytes" if len(sizes) > 1 else ""
    return {
        "block_bytes": ranks["block_bytes"][first],
        "block_bytes_because": ranks["block_bytes_because"][first] + others,
    }
