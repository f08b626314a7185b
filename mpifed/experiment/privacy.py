"""What a run says of itself where its uploads guarantee privacy, and where they do not."""

from mpifed.experiment.checkpoint import Saved
from mpifed.experiment.config import Experiment
from mpifed.results.result import Result

TRUE_DATA = ("gradient", "objective_gap", "accuracy", "variance", "rising")  # stop rules that look at the true data


def privacy_notes(config: Experiment) -> list[str]:
    """Sentences about what the uploads guarantee, and what else leaves the clients; none without noise."""
    privacy = config.algorithm.privacy()
    if privacy is None:
        return []
    if not privacy.holds:
        return [f"no privacy is guaranteed: {privacy.text}"]
    found = [
        f"privacy: {privacy.text}",
        f"only models{'' if privacy.sums else ' and uploads'} may be published: f, ‖∇f‖², accuracy and snr are of the "
        "true data",
        "the noise comes from the operating system's entropy, so this run cannot be repeated to the bit",
    ]
    rules = [f"stop.{rule}" for rule in TRUE_DATA if getattr(config.stop, rule)]
    if rules:
        found.append(
            f"{' and '.join(rules)} look{'s' if len(rules) == 1 else ''} at the true data: "
            "the number of rounds is then not private"
        )
    if config.start is not None:
        found.append("start: if this model was trained on the same data, the privacy that it spent is not counted here")
    return found


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
