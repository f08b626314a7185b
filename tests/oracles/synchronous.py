"""Rounds of methods that can also be asynchronous: each is a class, as rounds and as the event loop meet it.

``begin(i)`` is the upload that client i makes of what the server has now, ``step(uploads, ages)`` moves the server's
model ``x``, from uploads by client that are so many steps old. In a synchronous round all uploads are new.
"""

import numpy as np

from .problems import mean_value, zeros


def rounds(kind):
    """The ``run`` of an oracle: the model at the start and after every round, with what else the method ``shows``."""

    def run(clients, selections, **options):
        method = kind(clients, **options)
        yield method.x, method.shows()
        for chosen in selections:
            method.step({i: method.begin(i) for i in chosen}, [0] * len(chosen))
            yield method.x, method.shows()

    return run


class Server:
    """The server's model is 0 at the start."""

    def __init__(self, clients):
        self.clients = clients
        self.m = len(clients)
        self.x = np.zeros(clients[0].n)

    def shows(self):
        return {}

    def personal(self, models):
        """What is recorded of models that clients have for themselves."""
        return {"personal_objective": mean_value(self.clients, models), "personal": np.array(models)}


class Lasting(Server):
    """The server's model is the mean of the last uploads of all clients, or what ``mean`` makes of them."""

    def __init__(self, clients):
        super().__init__(clients)
        self.z, self.pi = zeros(clients), zeros(clients)

    def step(self, uploads, ages):
        for i, z in uploads.items():
            self.z[i] = z
        self.x = self.mean()

    def mean(self):
        return sum(self.z) / self.m
