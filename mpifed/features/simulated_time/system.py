"""Table [system]: clients that are slow, distant or absent."""

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.component import StudyTable, shorten_value
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array, PositiveFloat
from mpifed.features.simulated_time.availability import Availability, Intervals, check_availability
from mpifed.features.simulated_time.distributions import Distribution
from mpifed.federation.method import FederatedMethod

KEYS = ("speed", "bandwidth_down", "bandwidth_up", "latency")
RATES = KEYS[:3]
Property = Distribution | None  # of clients


class System(StudyTable):
    """Slow, distant and absent clients, and simulated_seconds; without this table all clients are equal and reply.

    From the request to its reply a selected client takes T = latency + b/bandwidth_down + w/speed·exp(jitter·N(0, 1)) +
    latency + b/bandwidth_up  seconds. b are the bytes that the algorithm sends to a client, and gets back, between two
    selections; w are the sample gradients that the client computes: as many as the algorithm states (FedADMM: at most),
    of a class of your own that does not state them as many as a rehearsal counts, or ``passes`` times its samples. T is
    computed from these numbers and never measured. Of the selected clients

    - each drops out with probability ``dropout``, and the server does not wait for it;
    - those with T > deadline are late, and the server goes on without them after ``deadline`` seconds;
    - with ``partial``, a client that would be late takes as many of its local steps as fit into the deadline, and
      replies in time; where not even one fits, it is late, and takes one. Each of its steps takes the same time;
    - where fewer than ``least`` remain (or than were selected), the server waits for the fastest of the late ones until
      there are that many; where these are too few, for the fastest of those that dropped out, which then reply in T.

    With ``availability``, only clients that are there when a round begins are selected, all of them where they are
    fewer than a round selects. One that leaves before T and the deadline drops out. Where fewer than ``least`` are
    there, simulated time goes on to the next moment at which enough are; probabilities are drawn again, at no time.

    To the algorithm, a client that does not reply looks like one that was not selected: it computes and sends nothing,
    not even late, and the ledger charges only what the others exchange. A selection lasts as long as the largest T of
    the clients that reply (FedGiA: of all clients, because it uses all), and at least ``deadline`` if a client is late.
    All candidates of a selection by scores are awaited, each with the model down, one number up and its samples between
    (greedy: the work of a selection). simulated_seconds adds these times up.
    Numbers that an algorithm derives from the size of the selection do not change when clients are absent.
    """

    speed: Annotated[Property, Meta(description="sample gradients a second of a client; absent: no time")] = None
    bandwidth_down: Annotated[Property, Meta(description="bytes a second to a client; absent: no time")] = None
    bandwidth_up: Annotated[Property, Meta(description="bytes a second from a client; absent: no time")] = None
    latency: Annotated[Property, Meta(description="seconds of a message, one way; absent: 0")] = None
    jitter: Annotated[
        float, Meta(ge=0, description="σ of the logarithm of a factor on computing, new in every selection")
    ] = 0.0
    passes: Annotated[
        PositiveFloat | None,
        Meta(description="a client's passes over its samples between two selections; absent: the algorithm's"),
    ] = None
    dropout: Annotated[float, Meta(ge=0, lt=1, description="probability that a client does not reply")] = 0.0
    deadline: Annotated[PositiveFloat | None, Meta(description="seconds until the server goes on; absent: never")] = (
        None
    )
    least: Annotated[int, Meta(ge=1, description="fewest replies that the server goes on with")] = 1
    availability: Annotated[
        Availability | None,
        Meta(
            description="who is there: a probability, a list with one for each client, diurnal, or a trace (.csv, .h5) "
            "of client, from and until in simulated seconds; absent: all"
        ),
    ] = None
    partial: Annotated[
        bool, Meta(description="clients take fewer local steps where all of them do not fit into the deadline")
    ] = False

    def absence(self) -> str | None:
        """Return the key by which clients may be absent, or None."""
        return next((key for key in ("dropout", "deadline", "availability") if getattr(self, key)), None)

    def takes_time(self) -> bool:
        """Return whether rounds take simulated time."""
        return any(getattr(self, key) is not None for key in KEYS)

    def count_work(self, algorithm: FederatedMethod, sizes: Array) -> Array:
        """Return the sample gradients (m,) between two selections; 0 where nobody knows them, nor has a speed."""
        work = algorithm.sample_gradients(sizes) if self.passes is None else self.passes * sizes
        return np.zeros(len(sizes)) if work is None else work

    def draw_availability(self, seed: int, m: int) -> Array | Intervals | None:
        """Return the probabilities (m,) or the intervals of m clients; raise UserError for those that cannot be."""
        if self.availability is None:
            return None
        try:
            return check_availability(self.availability.draw(stream(seed, "system", 0, len(KEYS)), m), m)
        except ValueError as error:
            value = shorten_value(msgspec.to_builtins(self.availability))
            raise UserError(f"system.availability = {value} is wrong: {error}") from None

    def draw_property(self, seed: int, key: str, m: int) -> Array:
        """Return a property of m clients: (m,); raise UserError for rates that are not above 0."""
        distribution: Property = getattr(self, key)
        if distribution is None:
            return np.full(m, np.inf if key in RATES else 0.0)
        prefix = f"system.{key} = {shorten_value(msgspec.to_builtins(distribution))} is wrong:"
        try:
            values = distribution.draw(stream(seed, "system", 0, KEYS.index(key)), m)
        except ValueError as error:
            raise UserError(f"{prefix} {error}") from None
        if len(values) != m:
            raise UserError(f"{prefix} it has {len(values)} numbers, and there are {m} clients")
        is_valid = np.isfinite(values) & ((values > 0) if key in RATES else (values >= 0))
        if not is_valid.all():
            right = "above 0 and finite" if key in RATES else "finite and not negative"
            first = int(np.argmin(is_valid))
            raise UserError(f"{prefix} it must be {right} for every client, and client {first} has {values[first]:g}")
        return values
