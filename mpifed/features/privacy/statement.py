"""The privacy of a study in ten lines: mechanism, sensitivity, composition, and what is assumed."""

from collections.abc import Iterator

from mpifed.features.privacy.accounting import PrivateRounds
from mpifed.features.privacy.private_means import PrivateMeans
from mpifed.features.privacy.transform import Noise

WIDTH = 13  # characters of the words before a line


def describe_privacy(table: PrivateMeans, noise: Noise, rounds: PrivateRounds, spent: int, heaviest: float) -> str:
    """Return what a study guarantees after ``spent`` rounds, in ten lines."""
    return "\n".join(f"{word:<{WIDTH}}{line}" for word, line in list_statements(table, noise, rounds, spent, heaviest))


def list_statements(
    table: PrivateMeans, noise: Noise, rounds: PrivateRounds, spent: int, heaviest: float
) -> Iterator[tuple[str, str]]:
    """Yield words, and the sentences that they stand before."""
    poisson = rounds.probability is not None
    moved = table.clip * heaviest * (1 if poisson else 2)
    deviation = noise.multiplier * table.clip * heaviest
    yield "mechanism", f"{table.mechanism.label()}: {table.mechanism.describe_noise(deviation)}"
    yield (
        "sensitivity",
        f"a client moves the sum by {moved:.4g} at most in the 2-norm; {describe_neighbours(rounds.probability)}"
        + table.mechanism.describe_reach(moved),
    )
    yield "clipping", describe_clipping(table)
    yield "mean", f"the sum over {noise.weight:.6g}, {'expected' if poisson else 'whoever replies'}"
    yield "sampling", describe_sampling(rounds)
    yield "composition", describe_budget(table, rounds, spent)
    seed = "privacy.noise_seed: whoever knows it can subtract the noise, so nothing is guaranteed"
    yield "noise", "from the system's entropy, which nobody can repeat" if table.noise_seed is None else seed
    yield "protects", "all data of a client, from those who see every model and nothing else"
    yield "not from", table.mechanism.observers
    yield "assumes", "clip, rounds, selection and weights do not come from the data; other runs on them add to ε"


def describe_neighbours(probability: float | None) -> str:
    """Return the neighbouring relation in words, with Poisson sampling of this probability or without (None)."""
    if probability is None:
        return "neighbours differ in all data of one client (replace)"
    return "neighbours have one client more or less (add or remove)"


def describe_clipping(table: PrivateMeans) -> str:
    """Return what is clipped to which bound."""
    what = "each layer" if table.per == "layer" else "all that a client sends in a round"
    bound = f"to a 2-norm of {table.clip:g}" + (" together" if table.per == "layer" else "")
    if table.quantile is None:
        return f"{what}, {bound}"
    return f"{what}, {bound} at first, then to the {table.quantile:g}-quantile of the norms, from noisy counts"


def describe_sampling(rounds: PrivateRounds) -> str:
    """Return how clients are drawn, and whether that lowers ε."""
    if rounds.probability is None:
        return "not amplified: of all clients the one that took part in most rounds is counted, in these"
    return f"Poisson, each client with probability {rounds.probability:g}: amplified, while nobody knows who took part"


def describe_budget(table: PrivateMeans, rounds: PrivateRounds, spent: int) -> str:
    """Return ε of so many rounds by both accountants."""
    z = rounds.noise_multiplier
    if not z:
        return "no noise, no privacy: noise_multiplier = 0"
    words = {"pld": "loss distributions", "rdp": "Rényi divergences"}
    spends = (f"{rounds.epsilon(spent, table.delta, by):.4g} by {words[by]}" for by in rounds.accountants)
    return f"{spent} rounds with z = {z:.4g}: ε = {', '.join(spends)}, at δ = {table.delta:g}"
