"""Conflicts of the table [privacy]: methods whose uploads it cannot make private, and what does not go with it."""

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.features.conditions import Violation, find_lossy
from mpifed.features.conflict import Conflict, LoadedSettings, Moment, list_methods
from mpifed.features.privacy.mechanisms import MAX_BITS
from mpifed.features.settings import Experiment
from mpifed.federation.traits import MeanEstimate, Participation, has_options, required_methods

MODEL = 1000  # any number of parameters


def explain_unfit(method: Algorithm) -> str:
    """Return why the uploads of a method cannot be made private; empty where they can."""
    upload = method.upload
    single = upload.single is not None and has_options(method, upload.single)
    reasons = {
        "it has no server, and noise is added to sums at a server": method.on_graph,
        "its uploads have noise of their own": method.privacy() is not None,
        "its server adds up the last uploads of all clients, so that a round uses those of earlier rounds again": (
            upload.last(method)
        ),
        "its clients upload gradients or compressed vectors, and what is clipped is a change of the model": (
            upload.content not in ("model", "change")
        ),
        "its rounds ask more clients than those of one selection": (method.participation is not Participation.SELECTED),
        "what its clients exchange must add up to 0, which noise prevents": method.mean_estimate
        is MeanEstimate.COUPLED,
        "it asks clients for constants of their data before round one": "lipschitz" in required_methods(method),
        "its server needs single uploads": single,
        "its clients upload numbers beside their vectors, and the bound is one of vectors": (
            method.message_size(MODEL)[1] != upload.vectors * MODEL
        ),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def unfit_method(c: Experiment) -> Violation:
    """Return why the method of a study cannot be made private, and which can; or None."""
    why = explain_unfit(c.algorithm)
    return {"why": why, "able": list_methods(lambda method: not explain_unfit(method))} if why else None


def client_noise(c: Experiment) -> Violation:
    """Return the name of a mechanism whose clients add the noise, and send integers; else None."""
    assert c.privacy is not None
    return {"mechanism": c.privacy.mechanism.label()} if c.privacy.mechanism.under_masks else None


def unfit_bits(c: Experiment) -> Violation:
    """Return how many bits the integers that clients send may have at most; None where they have no more."""
    limit = 24 if c.dtype == "float32" else MAX_BITS
    name = client_noise(c)
    return {**name, "limit": limit} if name and c.masks is not None and c.masks.bits > limit else None


def early_return(c: LoadedSettings) -> Violation:
    """Return why clients take part too often for rounds that share noise, and what helps; or None."""
    assert c.config.privacy is not None
    mechanism = c.config.privacy.mechanism
    if c.selector.apart >= mechanism.span:
        return None
    count = c.m // mechanism.span
    cure = f'set selection.name = "cyclic", selection.overlap = 0 and selection.count = {count} or less'
    few = f"set privacy.mechanism.bands = {c.m} or less"
    words = {"mechanism": mechanism.label(), "span": mechanism.span, "apart": c.selector.apart}
    return words | {"cure": cure if count else few}


SHARED_NOISE = [
    Conflict(
        ("privacy.mechanism whose rounds share noise", "a selection whose clients come back earlier"),
        'selection.name = "{selected}" is wrong with privacy.mechanism = "{mechanism}": {span} rounds share noise, '
        "and a client must be in one of them alone, but may be selected again after {apart} here, so {cure}",
        early_return,
        Moment.DATA,
    ),
    Conflict(
        ("privacy.mechanism whose rounds share noise", "privacy.quantile"),
        'privacy.quantile = {privacy.quantile} is wrong with privacy.mechanism = "{mechanism}": noise of a round is '
        "sized for the bounds of all rounds that share it, and they would move, so leave it out",
        lambda c: (
            c.privacy.quantile is not None
            and c.privacy.mechanism.span > 1
            and {"mechanism": c.privacy.mechanism.label()}
        ),
    ),
]

CLIENT_NOISE = [
    Conflict(
        ("privacy.mechanism whose noise is drawn by clients", "no masks that add up integers"),
        'privacy.mechanism = "{mechanism}" is wrong: clients send integers, which need masks that add them up modulo '
        '2^bits, so set masks.sums = "fixed-point" or "masked", and masks.bits = 16',
        lambda c: (c.masks is None or c.masks.sums == "float") and client_noise(c),
    ),
    Conflict(
        ("privacy.mechanism whose noise is drawn by clients", "masks.bits above what a number holds"),
        'masks.bits = {masks.bits} is wrong with privacy.mechanism = "{mechanism}": integers in {dtype} have at most '
        "{limit} bits, so take that or less, such as masks.bits = 16",
        unfit_bits,
    ),
    Conflict(
        ("privacy.mechanism whose noise is drawn by clients", "privacy.quantile"),
        'privacy.quantile = {privacy.quantile} is wrong with privacy.mechanism = "{mechanism}": clients that the bound '
        "leaves as they are would be counted without noise, so leave it out",
        lambda c: c.privacy.quantile is not None and client_noise(c),
    ),
]


PRIVATE_MEANS = [
    Conflict(
        ("privacy", "algorithm.certify"),
        "algorithm.certify = true cannot be used with privacy: theorems are about uploads without clipping and noise",
        lambda c: c.algorithm.certify,
    ),
    Conflict(
        ("privacy", "a method whose uploads are no changes of the model in one mean"),
        "privacy cannot be used with {name}, because {why}; it can be with the default options of {able}",
        unfit_method,
    ),
    Conflict(
        ("privacy", "asynchronous"),
        "privacy cannot be used with [asynchronous]: ε counts rounds whose clients are selected before they begin",
    ),
    Conflict(
        ("privacy", "compress.up"),
        'compress.up = "{up}" cannot be used with privacy: a compressor may make a clipped upload longer than '
        "its bound",
        lambda c: find_lossy(c, "up"),
    ),
    Conflict(
        ("privacy", "robust"),
        'robust = "{robust_name}" cannot be used with privacy: the noise is sized for a sum, not for other means',
    ),
    Conflict(
        ("privacy", "an attack on uploads"),
        'attack = "{attack_name}" cannot be used with privacy: attackers would not clip their uploads',
        lambda c: c.attack is not None and not c.attack.on_labels,
    ),
    Conflict(
        ("privacy", "a selection with unequal probabilities"),
        'selection = "{selected}" cannot be used with privacy: it weights uploads by the odds of their clients, and '
        "the noise is sized for other weights",
        lambda c: c.selection.weighs_replies,
    ),
    *CLIENT_NOISE,
    *SHARED_NOISE,
]
