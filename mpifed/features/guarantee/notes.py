"""Notes about a run whose uploads have noise: what is guaranteed, and what else leaves the clients."""

from mpifed.features.conditions import guarantees_privacy
from mpifed.features.guarantee.prepared_data import preprocessing_notes
from mpifed.features.settings import Experiment
from mpifed.features.stop import StopRules
from mpifed.problems.problem import Problem

TRUE_DATA = ("gradient", "objective_gap", "accuracy", "variance", "rising")  # stop rules that look at the true data


def privacy_notes(config: Experiment) -> list[str]:
    """Return sentences about what uploads guarantee and what else leaves the clients; none without noise."""
    privacy = config.algorithm.privacy()
    if privacy is None:
        return []
    if not privacy.holds:
        return [f"no privacy is guaranteed: {privacy.text}"]
    notes = [
        f"privacy: {privacy.text}",
        f"only models{'' if privacy.sums else ' and uploads'} may be published: {of_true_data(config)} are of the true "
        "data",
        "the noise comes from the operating system's entropy, so this run cannot be repeated to the bit",
        *describe_stop_rules(config.stop, config.problem),
    ]
    notes += describe_limits(config)
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
    privacy = config.algorithm.privacy()
    if system is not None and system.speed and privacy is not None and privacy.clients:
        notes.append(
            "system.speed: simulated times, and who is late, follow from the numbers of samples, so the guarantee for "
            "whole clients does not cover these"
        )
    elif system is not None and system.speed and system.deadline:
        notes.append("system.deadline: who is late follows from the numbers of samples, which are public here")
    return notes
