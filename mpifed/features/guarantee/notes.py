"""What a user should know of a run whose uploads have noise: what is guaranteed, and what else leaves the clients."""

from mpifed.features.findings import promises
from mpifed.features.guarantee.prepared_data import before_it
from mpifed.features.settings import Experiment
from mpifed.features.stop import Stop
from mpifed.problems.problem import Problem

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
        f"only models{'' if privacy.sums else ' and uploads'} may be published: {of_true_data(config)} are of the true "
        "data",
        "the noise comes from the operating system's entropy, so this run cannot be repeated to the bit",
        *about_stop(config.stop, config.problem),
    ]
    found += elsewhere(config)
    if config.start is not None:
        found.append("start: if this model was trained on the same data, the privacy that it spent is not counted here")
    return found


def about_stop(stop: Stop, problem: Problem) -> list[str]:
    """Sentences about the rules that look at the true data, and a metric of the user's, which may fail on them."""
    ending = [f"stop.{rule}" for rule in TRUE_DATA if getattr(stop, rule)]
    # A least value may be 0; what it ends is a run that comes below it.
    failing = {
        "stop.optimum": stop.optimum is not None,
        "stop.diverged": stop.diverged,
        "problem.metric": hasattr(problem, "metric") and problem.measured(),
    }
    found = {
        "the number of rounds": ending,
        "whether the run fails": [rule for rule, there in failing.items() if there],
    }
    return [
        f"{' and '.join(rules)} look{'s' if len(rules) == 1 else ''} at the true data: {what} is then not private"
        for what, rules in found.items()
        if rules
    ]


def of_true_data(config: Experiment) -> str:
    """What is recorded beside models."""
    found = ["f", "‖∇f‖²", "accuracy"]
    if config.evaluate.clients:
        found.append("numbers of each client")
    if config.evaluate.unseen:
        found.append("/unseen")
    if config.record.personal:
        found.append("personal models")
    if config.algorithm.certify:
        found.append("/certificate")
    return f"{', '.join(found)} and snr"


def of_fit(config: Experiment) -> list[str]:
    """A sentence about the fit of a model whose uploads have a guarantee."""
    if not promises(config):
        return []
    which = "the estimates alone are"
    if getattr(config.data, "standardise", None) == "pooled":
        which = "x of the result, not the estimates, for which means and deviations of the true data are taken, is"
    return [
        f"{which} a model that may be published: f, standard errors and all else here are computed from "
        "the true data, without noise, so the privacy that the run guarantees is not theirs"
    ]


def elsewhere(config: Experiment) -> list[str]:
    """Sentences about data and clients that a guarantee takes to be otherwise than they may be."""
    found = before_it(config)
    system = config.system
    if system is not None and system.absence():
        found.append(
            f"system.{system.absence()}: clients that do not reply are taken to send nothing, so an upload that leaves "
            "one all the same is not counted"
        )
    privacy = config.algorithm.privacy()
    if system is not None and system.speed and privacy is not None and privacy.clients:
        found.append(
            "system.speed: simulated times, and who is late, follow from the numbers of samples, so the guarantee for "
            "whole clients does not cover these"
        )
    elif system is not None and system.speed and system.deadline:
        found.append("system.deadline: who is late follows from the numbers of samples, which are public here")
    return found
