"""What a user should know of a run before its first round."""

from collections.abc import Iterable

from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import Saved
from mpifed.features.compression.notes import above
from mpifed.features.feature import Feature
from mpifed.features.settings import Experiment
from mpifed.federation.traits import Takes, needs
from mpifed.results.result import Result

SELECTING = {
    Takes.ALL: "; selection has no effect",
    Takes.SELECTED_OR_ALL: " in some rounds; selection decides which ones reply in the others",
    Takes.SELECTED_AND_ALL: "; selection decides what each computes, not which ones reply",
}


def notes(config: Experiment, m: int, features: Iterable[Feature]) -> list[str]:
    """Sentences about a run with m clients: what theory does not cover, those of its features, and what [selection]
    leaves open."""
    own = [note for feature in features for note in feature.notes()]
    return [*filter(None, [config.algorithm.advice(m)]), *own, *selecting(config)]


def without_effect(config: Experiment, sizes: Array, n: int) -> list[str]:
    """A sentence for each number that is larger than what it is about: a mini-batch, or the entries of a message."""
    most = int(sizes.max())
    size = getattr(config.algorithm, "batch_size", 0)
    found = []
    if size > most:
        found.append(f"algorithm.batch_size = {size} is above the {most} samples of the largest client: all are taken")
    numbers = n * (n + 1) // 2 if "hess" in needs(config.algorithm) else n
    own = getattr(config.algorithm, "compressor", None)
    return found if own is None else found + above("algorithm.compressor", own, numbers)


def selecting(config: Experiment) -> list[str]:
    """A sentence where the method also asks clients that are not selected."""
    said = SELECTING.get(config.algorithm.takes)
    return [] if said is None else [f"{config.algorithm.label()} asks all clients{said}"]


def worth_saying(config: Experiment, m: int, features: Iterable[Feature]) -> list[str]:
    """The notes with which a run begins: those on selection only where the user changed that table."""
    changed = any(key.partition(".")[0] == "selection" for key in config.changed())
    return [note for note in notes(config, m, features) if changed or note not in selecting(config)]


def redrawn(before: Result | None, saved: Saved | None) -> int:
    """Rounds whose uploads were drawn before an interruption and are drawn again, now and at earlier resumptions.

    ``before`` is the result so far and ``saved`` the checkpoint that the run goes on from (None: it starts again). Of a
    run that was cut off, the round under way counts too.
    """
    if before is None:
        return 0
    lost = before.cr - (0 if saved is None else saved.round)
    in_order = before.status == "finished" or (before.status == "stopped" and "after round" in before.stop_reason)
    return int(before.attrs.get("rounds_redrawn", 0)) + lost + (0 if in_order else 1)
