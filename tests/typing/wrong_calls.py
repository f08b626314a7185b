"""Calls that a type checker refuses: a line with an error ends in ``# error``, and no other line has one."""

from typing import NamedTuple

from mpifed.extend import Algorithm, Array, Federation, GraphFederation, Local


class State(NamedTuple):
    x: Array


class Calls(Algorithm):
    """Right calls and wrong ones of each verb."""

    def init_client(self, f: Local) -> State:
        return State(f.initial())

    def init_server(self, fed: Federation) -> State:
        return State(fed.initial())

    def round(self, fed: Federation, server: State) -> State:
        x = server.x
        selected = fed.select(x)
        fed.mean(self.step, x, 3, 0.5)
        fed.sum(self.step, x, 3, x, to=selected, last="x", bits=8)
        fed.call(self.mask, x, each=fed.mask(selected))
        fed.mean(self.limit, x)
        fed.send(self.limit, x, to=selected, each=fed.local_steps)
        fed.mean(of=fed.arrivals(), last="x")
        fed.max(self.bound)
        fed.mean(self.step, "three", 4, 0.5)  # error
        fed.sum(self.step, x, 3)  # error
        fed.call(self.step, x, 3, 0.5, x)  # error
        fed.call(self.mask, x)  # error
        fed.send(self.bound, each=x)  # error
        fed.max(self.bound, x)  # error
        fed.mean(self.step, x, 3, 0.5, byte=8)  # error
        return server

    def nodes(self, net: GraphFederation) -> None:
        net.local(self.rest, 3)
        net.mix("x")
        net.mix("x", self.mixed, 3)
        net.mix(("x", "y"), self.both)
        net.add("x", self.mixed, 3)
        net.mix("x", self.mixed, "three")  # error
        net.mix(("x", "y"), self.mixed, 3)  # error
        net.mix("x", self.rest, 3)  # error
        net.gather("x", self.mixed, 3)  # error
        net.local(self.bound)  # error

    def step(self, f: Local, client: State, x: Array, k: int, gamma: Array | float) -> tuple[State, Array]:
        return client, x

    def mask(self, f: Local, client: State, x: Array, selected: Array) -> tuple[State, Array]:
        return client, x

    def limit(self, f: Local, client: State, x: Array, most: Array | None = None) -> tuple[State, Array]:
        return client, x

    def bound(self, f: Local, client: State) -> tuple[State, Array]:
        return client, f.lipschitz()

    def rest(self, f: Local, client: State, k: int) -> tuple[State, None]:
        return client, None

    def mixed(self, f: Local, client: State, x: Array, k: int) -> tuple[State, None]:
        return State(k * x), None

    def both(self, f: Local, client: State, x: Array, y: Array) -> tuple[State, None]:
        return State(x + y), None
