"""What a user should know of a run before its first round, and what its result says of privacy and of the graph."""

from typing import Any

from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import Saved
from mpifed.features.findings import promises
from mpifed.features.guarantee.prepared_data import before_it
from mpifed.features.settings import Experiment
from mpifed.federation.traits import Takes, needs
from mpifed.graphs.weights import Weights
from mpifed.results.result import Result

TRUE_DATA = ("gradient", "objective_gap", "accuracy", "variance", "rising")  # stop rules that look at the true data
SELECTING = {
    Takes.ALL: "; selection has no effect",
    Takes.SELECTED_OR_ALL: " in some rounds; selection decides which ones reply in the others",
    Takes.SELECTED_AND_ALL: "; selection decides what each computes, not which ones reply",
}


def notes(config: Experiment, m: int) -> list[str]:
    """Sentences about a run with m clients: what theory does not cover, privacy, and what [selection] leaves open."""
    found = [*filter(None, [config.algorithm.advice(m)]), *privacy_notes(config)]
    if config.compress is not None and config.compress.up is not None and config.compress.biased():
        found.append(
            f'compress.feedback = "none": the errors of {config.compress.up.label()} do not cancel, so the run ends '
            'elsewhere than without them; "memory" and "error" make up for them'
        )
    if config.objective.penalised:
        found.append(
            "objective is f with its penalty, F, and grad_norm_sq is ‖x − prox(x − ∇f(x))‖², 0 where F is least"
        )
    return found + selecting(config)


def without_effect(config: Experiment, sizes: Array, n: int) -> list[str]:
    """A sentence for each number that is larger than what it is about: a mini-batch, or the entries of a message."""
    most = int(sizes.max())
    size = getattr(config.algorithm, "batch_size", 0)
    found = []
    if size > most:
        found.append(f"algorithm.batch_size = {size} is above the {most} samples of the largest client: all are taken")
    numbers = n * (n + 1) // 2 if "hess" in needs(config.algorithm) else n
    ways = {} if config.compress is None else {f"compress.{way}": C for way, C in config.compress.ways().items()}
    for key, C in (ways | {"algorithm.compressor": getattr(config.algorithm, "compressor", None)}).items():
        k = getattr(C, "k", None)
        if isinstance(k, int) and k > numbers:
            found.append(f"{key}.k = {k} is above the {numbers:,} numbers of a message: all are sent")
    return found


def selecting(config: Experiment) -> list[str]:
    """A sentence where the method also asks clients that are not selected."""
    said = SELECTING.get(config.algorithm.takes)
    return [] if said is None else [f"{config.algorithm.label()} asks all clients{said}"]


def worth_saying(config: Experiment, m: int) -> list[str]:
    """The notes with which a run begins: those on selection only where the user changed that table."""
    changed = any(key.partition(".")[0] == "selection" for key in config.changed())
    return [note for note in notes(config, m) if changed or note not in selecting(config)]


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
    ]
    rules = [f"stop.{rule}" for rule in TRUE_DATA if getattr(config.stop, rule)]
    if rules:
        found.append(
            f"{' and '.join(rules)} look{'s' if len(rules) == 1 else ''} at the true data: "
            "the number of rounds is then not private"
        )
    found += elsewhere(config)
    if config.start is not None:
        found.append("start: if this model was trained on the same data, the privacy that it spent is not counted here")
    return found


def of_true_data(config: Experiment) -> str:
    """What is recorded beside models."""
    found = ["f", "‖∇f‖²", "accuracy"]
    if config.evaluate.clients:
        found.append("numbers of each client")
    if config.evaluate.unseen:
        found.append("/unseen")
    if config.record.personal:
        found.append("personal models")
    return f"{', '.join(found)} and snr"


def of_fit(config: Experiment) -> list[str]:
    """A sentence about the fit of a model whose uploads have a guarantee."""
    if not promises(config):
        return []
    return [
        "the estimates alone are a model that may be published: f, standard errors and all else here are computed from "
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
    if system is not None and system.deadline and system.speed:
        found.append("system.deadline: who is late follows from the numbers of samples, which are public here")
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


def described(weights: Weights | None) -> dict[str, Any]:
    """The root attributes of a result that say what the graph is; none without one."""
    if weights is None:
        return {}
    spectrum = weights.spectrum
    return {
        "graph_edges": weights.first.edges,
        "graph_parts": spectrum.parts,
        "spectral_gap": spectrum.gap,
        "least_eigenvalue": spectrum.least,
    }


def drawn(weights: Weights | None) -> list[str]:
    """A sentence where the graph is not connected."""
    if weights is None or weights.spectrum.parts == 1:
        return []
    parts = weights.spectrum.parts
    which = "the graph that is drawn first" if weights.graph.drawn_anew else "the graph"
    return [f"{which} is not connected: it has {parts} parts, and only nodes of the same part can agree"]
