"""Feature of methods with noise: notes on the privacy that a run guarantees, and on what else leaves the clients."""

from collections.abc import Iterator, Sequence
from typing import Any

from mpifed.core.component import fields_of
from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value
from mpifed.data.dataset import CLASSES, Dataset, Inference
from mpifed.data.labels import abridge
from mpifed.features.conditions import guarantees_privacy
from mpifed.features.feature import Plugin
from mpifed.features.settings import Experiment
from mpifed.features.stop import StopRules
from mpifed.federation.callback import Callback
from mpifed.federation.setup import RunSpec
from mpifed.problems.problem import Problem

ALL = "the training samples of all clients"


def describe_pooled(c: Experiment) -> list[str]:
    """Return sentences where preprocessing one client depends on other clients' samples."""
    rule = getattr(c.data, "partition", None) or getattr(c.data, "default_partition", None)
    notes = [c.data.common, "" if rule is None else rule.common]
    if getattr(c.data, "standardise", None) == "pooled":
        notes.append(f"features have mean 0 and deviation 1 over {ALL}")
    if getattr(c.data, "missing", "") == "mean":
        notes.append(f"missing cells are filled with means over {ALL}")
    if getattr(c.data, "time", None) is not None:
        notes.append("times of 0 become half of the least time in the samples of all clients")
    return [note for note in notes if note]


def unseen_notes(c: Experiment) -> tuple[str, ...]:
    """Return sentences where preprocessing depends on all clients, those that never train included."""
    return tuple(f"{note}, also of those that never train" for note in describe_pooled(c))


def preprocessing_notes(c: Experiment) -> list[str]:
    """Return sentences about preprocessing that happens before a guarantee begins."""
    notes = describe_pooled(c)
    if getattr(c.data, "missing", "") == "client-mean":
        notes.append(f"missing cells in a column of which a client knows nothing are filled with means over {ALL}")
    return [add_consequence(note) for note in notes]


def inference_notes(c: Experiment, data: Dataset) -> list[str]:
    """Return sentences about what was inferred from all clients' samples, where uploads have a guarantee."""
    if not guarantees_privacy(c):
        return []
    keys = fields_of(type(c.data))
    return [add_consequence(note, key if key in keys else "") for note, key in dict.fromkeys(inferences(c, data))]


def inferences(c: Experiment, data: Dataset) -> Iterator[Inference]:
    """Yield what is inferred from the samples of a run."""
    names = [repr(feature.name) for feature in data.table if feature.category]
    if names:
        levels = f"the levels of {', '.join(abridge(names))}"
        yield Inference(f"{levels} are those that occur in the samples of all clients")
    yield from data.inferred
    by_labels = c.problem.takes() in ("classes", "binary") or c.problem.has("predict")
    if by_labels and not data.stated and data.values() is not None:
        yield CLASSES


def add_consequence(note: str, key: str = "") -> str:
    """Return a note with its consequence for a guarantee, and the ``key`` of [data] that states the same."""
    sentence = f"{note}, so one sample changes others too: privacy is guaranteed for the data after that, not before"
    return f"{sentence}; data.{key} states it instead" if key else sentence


# stop rules that look at the true data
TRUE_DATA = ("gradient", "gradient_relative", "objective_gap", "accuracy", "patience", "variance", "rising")


def privacy_notes(config: Experiment) -> list[str]:
    """Return sentences about what uploads guarantee and what else leaves the clients; none without noise."""
    privacy = config.guarantee()
    if privacy is None:
        return []
    if not privacy.holds:
        return [f"no privacy is guaranteed: {privacy.text}"]
    notes = [
        f"privacy: {privacy.text}",
        f"only models{'' if privacy.sums or privacy.central else ' and uploads'} may be published: "
        f"{of_true_data(config)} are of the true data",
        "the noise comes from the operating system's entropy, so this run cannot be repeated to the bit",
        *describe_stop_rules(config.stop, config.problem),
    ]
    notes += describe_limits(config)
    if config.record.best:
        notes.append("record.best chooses by the true data: /model/best may not be published, nor which round it is of")
    if config.start is not None:
        notes.append("start: if this model was trained on the same data, the privacy that it spent is not counted here")
    return notes


def describe_stop_rules(stop: StopRules, problem: Problem) -> list[str]:
    """Return sentences about stop rules that look at the true data, and about the user's metric, which may fail."""
    ending = [f"stop.{rule}" for rule in TRUE_DATA if getattr(stop, rule)]
    # optimum may be 0: a run that comes below it fails
    failing = {
        "stop.optimum": stop.optimum is not None,
        "stop.diverged": stop.diverged,
        "problem.metric": hasattr(problem, "metric") and problem.measure_names(),
    }
    leaks = {
        "the number of rounds": ending,
        "whether the run fails": [rule for rule, is_set in failing.items() if is_set],
    }
    return [
        f"{' and '.join(rules)} look{'s' if len(rules) == 1 else ''} at the true data: {what} is then not private"
        for what, rules in leaks.items()
        if rules
    ]


def of_true_data(config: Experiment) -> str:
    """Return the names of what is recorded beside models, in words."""
    names = ["f", "‖∇f‖²", "accuracy"]
    if config.evaluate.clients:
        names.append("numbers of each client")
    if config.evaluate.unseen:
        names.append("/unseen")
    if config.record.personal:
        names.append("personal models")
    if config.algorithm.certify:
        names.append("/certificate")
    return f"{', '.join(names)} and snr"


def guarantee_fit_notes(config: Experiment) -> list[str]:
    """Return a sentence about the fit of a model whose uploads have a guarantee; none without one."""
    if not guarantees_privacy(config):
        return []
    which = "the estimates alone are"
    if getattr(config.data, "standardise", None) == "pooled":
        which = "x of the result, not the estimates, for which means and deviations of the true data are taken, is"
    return [
        f"{which} a model that may be published: f, standard errors and all else here are computed from "
        "the true data, without noise, so the privacy that the run guarantees is not theirs"
    ]


def describe_limits(config: Experiment) -> list[str]:
    """Return sentences about data and clients on which a guarantee makes assumptions."""
    notes = preprocessing_notes(config)
    system = config.system
    if system is not None and system.absence():
        notes.append(
            f"system.{system.absence()}: clients that do not reply are taken to send nothing, so an upload that leaves "
            "one all the same is not counted"
        )
    privacy = config.guarantee()
    if config.privacy is not None and (config.objective.weights == "samples" or config.objective.column):
        notes.append(
            f"objective.weights = {toml_value(config.objective.weights)}: weights of uploads follow from the data, all "
            "of them where one client changes, so the guarantee for whole clients does not cover these"
        )
    if system is not None and system.speed and privacy is not None and privacy.clients:
        notes.append(
            "system.speed: simulated times, and who is late, follow from the numbers of samples, so the guarantee for "
            "whole clients does not cover these"
        )
    elif system is not None and system.speed and system.deadline:
        notes.append("system.deadline: who is late follows from the numbers of samples, which are public here")
    return notes


class Guarantee(Plugin, Callback):
    """Method whose uploads have noise, with a guarantee of privacy or without one."""

    # It says what is guaranteed; each part says whether it keeps that.
    supports = Supports.EVERYTHING

    inferred: Sequence[str] = ()

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.inferred = inference_notes(self.config, data)
        # f is of the true data: a run must not show that it is not finite, or for which client.
        return setup._replace(records_nonfinite=guarantees_privacy(self.config))

    def attributes(self, replayed: int) -> dict[str, Any]:
        privacy = self.config.guarantee()
        assert privacy is not None
        return {"privacy": str(privacy)} | ({"rounds_redrawn": replayed} if privacy.holds else {})

    def notes(self) -> list[str]:
        return [*privacy_notes(self.config), *self.inferred]
