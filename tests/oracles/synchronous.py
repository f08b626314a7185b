"""Rounds of methods, many of which can also be asynchronous: each is a class, as rounds and as the event loop meet it.

``begin(i)`` is the upload that client i makes of what the server has now, ``step(uploads, ages)`` moves the server's
model ``x``, from uploads by client that are so many steps old. In a synchronous round all uploads are new.
"""

import numpy as np

from .problems import mean_value, zeros


def rounds(method, selections):
    """The model at the start and after every round, with what else the method ``shows``."""
    yield method.x, method.shows()
    for chosen in selections:
        some = range(method.m) if method.everyone else chosen
        method.step({i: method.begin(i) for i in some}, [0] * len(some))
        yield method.x, method.shows()


class Server:
    """The server's model is 0 at the start. The options of a method are attributes of its class."""

    asynchronous = True
    everyone = False  # whether a round takes all clients, whoever is selected
    vectors = ()  # names of vectors that every client has, 0 at the start

    def __init__(self, clients, **options):
        self.clients = clients
        self.m = len(clients)
        self.x = np.zeros(clients[0].n)
        for name in self.vectors:
            setattr(self, name, zeros(clients))
        for name, value in options.items():
            assert hasattr(self, name), f"there is no option {name}"
            setattr(self, name, value)
        self.prepare()

    def prepare(self):
        """What follows from the options."""

    def drops(self, age):
        """Whether clients drop what they began so many steps ago."""
        return False

    def shows(self):
        return {}

    def personal(self, models):
        """What is recorded of models that clients have for themselves."""
        return {"personal_objective": mean_value(self.clients, models), "personal": np.array(models)}


class Lasting(Server):
    """The server's model is the mean of the last uploads of all clients, or what ``mean`` makes of them."""

    vectors = ("z", "pi")

    def step(self, uploads, ages):
        for i, z in uploads.items():
            self.z[i] = z
        self.x = self.mean()

    def mean(self):
        return sum(self.z) / self.m
