"""Table [attack]: clients that attack, and what they send in place of their uploads."""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.compressors.compressor import Draws
from mpifed.core.arrays import floor_fraction
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.guards import Guard, shaped_like
from mpifed.core.promises import Reasons, Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.sums import sum_dense

# Who attacks follows from the seed, and what it sends from its own stream or from the rows of the round.
BITS_AND_RESUME = Supports.BITS | Supports.RESUME


class Attack(Component):
    """Attack: some clients follow the method and then send something else, from round one on.

    An upload is seen as a change u_i: of a method that uploads models, the model less the one received. ``clients``
    attack in all rounds; a share is rounded down, and which clients these are is drawn from the seed. Attacks that are
    made ``jointly`` know the uploads of all honest clients that reply in the round, H, and the number of these: more
    than attackers may know, and so the worst case. In a round without honest ones they know their own instead.

        >>> class Silence(mpifed.extend.Attack):
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
        "labels": "mpifed.features.attack.attacks:LabelFlip",
    }
    default: ClassVar[str] = "sign-flip"
    kind: ClassVar[str] = "attacks"
    guards: ClassVar[dict[str, Guard]] = {
        "alone": shaped_like(0, 0, ": it must return what attackers send, (c, n) as their own changes"),
        "together": shaped_like(0, 1, ": it must return what each attacker sends, a number for each column of rows"),
        "change_labels": shaped_like(0, 0, ": it must return a label in the place of each"),
    }

    jointly: ClassVar[bool] = False  # attackers send what ``together`` makes of the honest uploads
    on_labels: ClassVar[bool] = False  # attackers change their training labels and nothing else
    unsupported: ClassVar[Reasons] = {
        Supports.PRIVACY: "attackers send uploads without the noise that {name} counts on, so leave attack out",
        Supports.DEVICES: "attackers change their uploads in memory",
    }

    clients: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | Annotated[int, Meta(ge=0)] | tuple[Annotated[int, Meta(ge=0)], ...],
        Meta(description="clients that attack: a share up to 1.0, how many, or a list of their numbers"),
    ] = 0.1

    def alone(self, u: Array, draws: Draws) -> Array:
        """Return what attackers send in place of their own changes u (c, n); draws() has a generator for each."""
        return u

    def together(self, honest: Array, attackers: int) -> Array:
        """Return what each attacker sends: (w,), from the changes ``honest`` (h, w), column by column."""
        return average_rows(honest)

    def change_labels(self, y: Array, total: float) -> Array:
        """Return an attacker's labels in place of y (d,); ``total``: least plus largest class, 0 for numbers."""
        return y

    def attackers(self, m: int, seed: int) -> Array:
        """Return which of m clients attack: (m,) bool; raise UserError for clients that do not exist."""
        match self.clients:
            case tuple(numbers):
                chosen = check_numbers(numbers, m)
            case float(fraction):
                chosen = draw_attackers(floor_fraction(m, fraction), m, seed)
            case count:
                chosen = draw_attackers(count, m, seed)
        return np.isin(np.arange(m), chosen)


def check_numbers(numbers: tuple[int, ...], m: int) -> Array:
    """Return attackers that are named by their numbers; raise UserError unless all exist and differ."""
    if len(set(numbers)) < len(numbers):
        raise UserError("attack.clients names a client twice: name each once")
    if numbers and max(numbers) >= m:
        raise UserError(f"attack.clients names client {max(numbers)}, and there are the clients 0 to {m - 1}")
    return np.array(numbers, np.int64)


def draw_attackers(count: int, m: int, seed: int) -> Array:
    """Draw ``count`` of m clients."""
    if count > m:
        raise UserError(f"attack.clients = {count} is wrong: there are {m} clients, and no more can attack")
    return stream(seed, "attackers").choice(m, count, replace=False, shuffle=False)


def average_rows(rows: Array) -> Array:
    """Return the mean (w,) of rows (k, w); the additions of a column do not depend on other columns."""
    return sum_dense(rows) / len(rows)


class SignFlip(Attack, tag="sign-flip"):
    """Changes with the wrong sign: −scale · u_i."""

    # A function of the client's own upload.
    supports = BITS_AND_RESUME

    scale: Annotated[float, Meta(ge=0, description="how long these are, of the honest length")] = 1.0

    def alone(self, u: Array, draws: Draws) -> Array:
        return -self.scale * u


class Random(Attack, tag="random"):
    """Noise that has nothing to do with the data: N(0, scale² I), drawn anew in every round."""

    # Drawn from the client's own stream.
    supports = BITS_AND_RESUME

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
    supports = BITS_AND_RESUME

    jointly = True
    z: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="z (default: as above)")] = None

    def together(self, honest: Array, attackers: int) -> Array:
        mean = average_rows(honest)
        z = self.z if self.z is not None else largest_z(len(honest), attackers)
        return (mean - z * np.sqrt(average_rows((honest - mean) ** 2))).astype(honest.dtype)


def largest_z(honest: int, attackers: int) -> float:
    """Return the largest z with which ``attackers`` and the honest clients further away are a majority."""
    # imported here: every run loads this table, and most need no scipy
    from scipy.special import ndtri

    # attackers that are a majority need no honest client, but hide behind one
    needed = max((honest + attackers) // 2 + 1 - attackers, 1)
    return max(0.0, float(ndtri((honest - needed) / honest)))


class InnerProduct(Attack, tag="inner-product"):
    """Changes against the honest ones: −scale · mean of H, so that the inner product with the true mean is negative.

    Source: C. Xie, O. Koyejo, I. Gupta, "Fall of empires: Breaking Byzantine-tolerant SGD by inner product
    manipulation", arXiv:1903.03936 (2019).
    """

    # A function of the honest rows, column by column.
    supports = BITS_AND_RESUME

    jointly = True
    scale: Annotated[float, Meta(ge=0, description="ε, how long these are, of the mean's length")] = 1.0

    def together(self, honest: Array, attackers: int) -> Array:
        return (-self.scale * average_rows(honest)).astype(honest.dtype)


class LabelFlip(Attack, tag="labels"):
    """Honest training on wrong labels: class y becomes C − 1 − y of C classes, and a number changes its sign.

    Test samples stay as they are. The recorded f and ∇f are those of the changed labels.
    """

    # Labels are changed where they are read, by the number of the client alone.
    supports = BITS_AND_RESUME

    on_labels = True

    def change_labels(self, y: Array, total: float) -> Array:
        return total - y
