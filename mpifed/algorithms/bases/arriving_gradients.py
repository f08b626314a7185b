"""What asynchronous methods share whose clients keep nothing and send one gradient at the model that they were sent."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Client, Local, minibatch, passes
from mpifed.federation.traits import Need


class ArrivingGradients(Algorithm):
    """Methods whose clients send ∇f_i, or that of a mini-batch, and begin anew; the server decides what it uses."""

    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0

    requires = (Need("lipschitz", unless=("gamma",)),)
    asynchronous = True

    def work(self, d: Array) -> Array:
        return passes(d, 1, 0, self.batch_size)

    def join(self, f: Local) -> Client:
        return Client()

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """∇f_i at the model x that the client was sent, or that of a mini-batch."""
        return client, minibatch(f, self.batch_size).grad(x)
