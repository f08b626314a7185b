"""The table [attack]: which clients attack, and what they send in the place of what they have computed."""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.compressors.compressor import Draws
from mpifed.core.arrays import part_of
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps, Reasons
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.sums import dense

# Who attacks follows from the seed, and what it sends from its own stream or from the rows of the round.
BITS_AND_RESUME = Keeps.BITS | Keeps.RESUME


class Attack(Component):
    """Some clients follow the method and then send something else, from round one on.

    An upload is seen as a change u_i: of a method that uploads models, the model less the one received. ``clients``
    attack in all rounds; a share is rounded down, and which clients these are is drawn from the seed. Attacks that are
    made ``jointly`` know the uploads of all honest clients that reply in the round, H, and the number of these: more
    than attackers may know, and so the worst case. In a round without honest ones they know their own instead.

        >>> class Silence(mpifed.Attack):
        ...     def alone(self, u, draws):
        ...         return 0 * u
        >>> mpifed.run(algorithm="gd", attack=Silence(clients=0.2), rounds=2).cr
        2
    """

    choices: ClassVar[dict[str, str]] = {
        "sign-flip": "mpifed.features.attack.attacks:SignFlip",
        "random": "mpifed.features.attack.attacks:Random",
        "little": "mpifed.features.attack.attacks:Little",
        "inner-product": "mpifed.features.attack.attacks:InnerProduct",
        "labels": "mpifed.features.attack.attacks:Labels",
    }
    default: ClassVar[str] = "sign-flip"
    kind: ClassVar[str] = "attacks"
    checks: ClassVar[str] = "mpifed.features.robust.robust_guards"

    jointly: ClassVar[bool] = False  # whether ``together`` says what attackers send, from what honest ones have sent
    on_labels: ClassVar[bool] = False  # whether attackers change their training labels and nothing else
    unkept: ClassVar[Reasons] = {
        Keeps.PRIVACY: "attackers send uploads without the noise that {name} counts on, so leave attack out",
        Keeps.DEVICES: "attackers change their uploads in memory",
    }

    clients: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | Annotated[int, Meta(ge=0)] | tuple[Annotated[int, Meta(ge=0)], ...],
        Meta(description="clients that attack: a share up to 1.0, how many, or a list of their numbers"),
    ] = 0.1

    def alone(self, u: Array, draws: Draws) -> Array:
        """What attackers send in the place of their own changes u (c, n); draws() has a generator each."""
        return u

    def together(self, honest: Array, attackers: int) -> Array:
        """What each attacker sends: (w,), from the changes ``honest`` (h, w). Each column on its own."""
        return mean_of(honest)

    def changed(self, y: Array, total: float) -> Array:
        """The labels of an attacker in the place of y (d,); ``total`` of least and largest class, 0 for numbers."""
        return y

    def attackers(self, m: int, seed: int) -> Array:
        """Which of m clients attack: (m,) bool. UserError for clients that are not there."""
        match self.clients:
            case tuple(given):
                chosen = numbered(given, m)
            case float(share):
                chosen = drawn(part_of(m, share), m, seed)
            case count:
                chosen = drawn(count, m, seed)
        return np.isin(np.arange(m), chosen)


def numbered(given: tuple[int, ...], m: int) -> Array:
    """Clients that are given by their numbers."""
    if len(set(given)) < len(given):
        raise UserError("attack.clients names a client twice: name each once")
    if given and max(given) >= m:
        raise UserError(f"attack.clients names client {max(given)}, and there are the clients 0 to {m - 1}")
    return np.array(given, np.int64)


def drawn(count: int, m: int, seed: int) -> Array:
    """So many of m clients."""
    if count > m:
        raise UserError(f"attack.clients = {count} is wrong: there are {m} clients, and no more can attack")
    return stream(seed, "attackers").choice(m, count, replace=False, shuffle=False)


def mean_of(rows: Array) -> Array:
    """The mean (w,) of rows (k, w), each column with the same additions whatever the others are."""
    return dense(rows) / len(rows)


class SignFlip(Attack, tag="sign-flip"):
    """Changes with the wrong sign: −scale · u_i."""

    # A function of the client's own upload.
    keeps = BITS_AND_RESUME

    scale: Annotated[float, Meta(ge=0, description="how long these are, of the honest length")] = 1.0

    def alone(self, u: Array, draws: Draws) -> Array:
        return -self.scale * u


class Random(Attack, tag="random"):
    """Noise that has nothing to do with the data: N(0, scale² I), drawn anew in every round."""

    # Drawn from the client's own stream.
    keeps = BITS_AND_RESUME

    scale: Annotated[float, Meta(ge=0, description="standard deviation of each number")] = 1.0

    def alone(self, u: Array, draws: Draws) -> Array:
        noise = np.stack([rng.standard_normal(u.shape[1]) for rng in draws()])
        return (self.scale * noise).astype(u.dtype)


class Little(Attack, tag="little"):
    """A little is enough: μ − zσ of the honest changes, coordinate by coordinate, close enough to pass for one of them.

    μ and σ are mean and standard deviation over H. By default z is the largest with which honest clients that are
    further away make a majority with the attackers: z = Φ⁻¹((k − f − s)/(k − f)) for f attackers among k replies,
    s = ⌊k/2 + 1⌋ − f, and 0 where that is below.
    Source: M. Baruch, G. Baruch, Y. Goldberg, "A little is enough: Circumventing defenses for distributed learning",
    arXiv:1902.06156 (2019).
    """

    # A function of the honest rows, column by column.
    keeps = BITS_AND_RESUME

    jointly = True
    z: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="z (default: as above)")] = None

    def together(self, honest: Array, attackers: int) -> Array:
        mean = mean_of(honest)
        z = self.z if self.z is not None else largest(len(honest), attackers)
        return (mean - z * np.sqrt(mean_of((honest - mean) ** 2))).astype(honest.dtype)


def largest(honest: int, attackers: int) -> float:
    """The z of the paper: with it the ``attackers`` and the honest ones that are further away are a majority."""
    # imported here, for every run reads this table, and most have nothing of scipy's
    from scipy.special import ndtri

    # attackers that are a majority need nobody, and hide behind one
    needed = max((honest + attackers) // 2 + 1 - attackers, 1)
    return max(0.0, float(ndtri((honest - needed) / honest)))


class InnerProduct(Attack, tag="inner-product"):
    """Changes against the honest ones: −scale · mean of H, so that the inner product with the true mean is negative.

    Source: C. Xie, O. Koyejo, I. Gupta, "Fall of empires: Breaking Byzantine-tolerant SGD by inner product
    manipulation", arXiv:1903.03936 (2019).
    """

    # A function of the honest rows, column by column.
    keeps = BITS_AND_RESUME

    jointly = True
    scale: Annotated[float, Meta(ge=0, description="ε, how long these are, of the mean's length")] = 1.0

    def together(self, honest: Array, attackers: int) -> Array:
        return (-self.scale * mean_of(honest)).astype(honest.dtype)


class Labels(Attack, tag="labels"):
    """Honest training on wrong labels: class y becomes C − 1 − y of C classes, and a number changes its sign.

    Test samples stay as they are. The recorded f and ∇f are those of the changed labels.
    """

    # Labels are changed where they are read, by the number of the client alone.
    keeps = BITS_AND_RESUME

    on_labels = True

    def changed(self, y: Array, total: float) -> Array:
        return total - y
