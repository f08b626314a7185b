"""Base of asynchronous methods whose stateless clients send one gradient at the model they received."""

from typing import Annotated

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Client, Local, count_gradients, minibatch
from mpifed.federation.traits import Requirement


class ArrivingGradients(Algorithm):
    """Base of methods whose clients send ∇f_i or a mini-batch gradient; the server decides which to use."""

    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0

    requires = (Requirement("lipschitz", unless=("gamma",)),)
    asynchronous = True

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def init_client(self, f: Local) -> Client:
        return Client()

    def gradient(self, f: Local, client: Client, x: Array) -> tuple[Client, Array]:
        """Return ∇f_i, or a mini-batch gradient, at the model x that the client received."""
        return client, minibatch(f, self.batch_size).grad(x)
