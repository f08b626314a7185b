"""What a user should know of a run before its first round."""

from mpifed.experiment.config import Experiment
from mpifed.experiment.privacy import privacy_notes
from mpifed.federation.traits import Takes


def notes(config: Experiment, m: int) -> list[str]:
    """Sentences about a run with m clients: what theory does not cover, privacy, and what [selection] leaves open."""
    advice = config.algorithm.advice(m)
    return [*([] if advice is None else [advice]), *privacy_notes(config), *compressing(config), *selecting(config)]


def compressing(config: Experiment) -> list[str]:
    """A sentence where compression cannot end at the limit of the method."""
    if config.compress is None or config.compress.up is None or not config.compress.biased():
        return []
    name = config.compress.up.label()
    return [
        f'compress.feedback = "none": the errors of {name} do not cancel, so the run ends elsewhere than without them; '
        '"memory" and "error" make up for them'
    ]


def selecting(config: Experiment) -> list[str]:
    """A sentence where the method also asks clients that are not selected."""
    algorithm, name = config.algorithm, config.algorithm.label()
    if algorithm.takes is Takes.ALL:
        return [f"{name} asks all clients; selection has no effect"]
    if algorithm.takes is Takes.SELECTED_OR_ALL:
        return [f"{name} asks all clients in some rounds; selection decides which ones reply in the others"]
    if algorithm.takes is Takes.SELECTED_AND_ALL:
        return [f"{name} asks all clients; selection decides what each computes, not which ones reply"]
    return []


def worth_saying(config: Experiment, m: int) -> list[str]:
    """The notes with which a run begins: those on selection only where the user changed that table."""
    changed = any(key.partition(".")[0] == "selection" for key in config.changed())
    return [note for note in notes(config, m) if changed or note not in selecting(config)]
