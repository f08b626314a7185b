"""Losses and metrics of torch networks: built-in ones by name, and functions of the user."""

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from mpifed.core import plugins
from mpifed.core.errors import UserError, error_line
from mpifed.core.toml import toml_value, wrong_value
from mpifed.kernels.torch_device import import_torch

Targets = Literal["classes", "numbers"]
LOSSES: dict[str, tuple[Targets, str]] = {  # name -> its targets, and its name in torch.nn.functional
    "cross-entropy": ("classes", "cross_entropy"),
    "binary-cross-entropy": ("classes", "binary_cross_entropy_with_logits"),
    "mse": ("numbers", "mse_loss"),
    "l1": ("numbers", "l1_loss"),
    "huber": ("numbers", "huber_loss"),
}


class Loss(NamedTuple):
    """A loss: ``function`` maps scores (k, …) and targets (k,) to one loss for each sample (k, …), or to their mean."""

    name: str
    function: Callable[[Any, Any], Any]
    targets: Targets

    def of(self, scores: Any, targets: Any, w: Any) -> Any:
        """Return Σ_j w_j loss_j, or the mean if the function gives that; scores (k, 1) reach the function as (k,)."""
        losses = self.function(squeeze_scores(scores), targets)
        if not import_torch().is_tensor(losses) or (losses.ndim and len(losses) != len(w)):
            shape = getattr(losses, "shape", None)
            given = f"a {type(losses).__name__}" if shape is None else f"an array {toml_value(tuple(shape))}"
            raise ValueError(f"it gives {given} for {len(w)} samples: one loss each, or their mean, is needed")
        if losses.ndim > 1:
            losses = losses.flatten(1).mean(1)
        return (w * losses).sum() if losses.ndim else losses

    def is_mean(self, scores: Any, targets: Any) -> bool:
        """Return whether the function gives a mean for these scores; raise UserError if it cannot be used."""
        scores = scores.detach().requires_grad_()
        try:
            with import_torch().enable_grad():
                self.refuse_writing(scores, targets)
                self.of(scores, targets, targets.new_ones(len(targets), dtype=scores.dtype))
                losses = self.function(squeeze_scores(scores), targets)
        except UserError:
            raise
        except Exception as error:  # the user's code may raise anything
            shapes = f"scores {toml_value(tuple(scores.shape))} and targets {toml_value(tuple(targets.shape))}"
            raise self.wrong(f"it cannot take {shapes}: {error_line(error)}") from None
        if not losses.requires_grad:
            raise self.wrong("it has no gradient: compute it from the scores with functions of torch alone")
        self.refuse_multiples(scores.detach(), targets)
        return not losses.ndim

    def wrong(self, why: str) -> UserError:
        """Return the error for a loss that cannot be used."""
        return wrong_value("problem.loss", self.name, why)

    def refuse_writing(self, scores: Any, targets: Any) -> None:
        """Raise UserError if the function changes its scores or targets, which others read too."""
        copies = [scores * 1, targets.clone()]  # not a leaf: torch itself refuses changes of leaves
        self.function(squeeze_scores(copies[0]), copies[1])
        for name, tensor, before in zip(("scores", "targets"), copies, (scores, targets), strict=True):
            if is_modified(tensor, before):
                raise self.wrong(f"it changes its {name} in place: change a copy, as in {name} = {name}.clone()")

    def refuse_multiples(self, scores: Any, targets: Any) -> None:
        """Raise UserError if the loss doubles, as a sum does, or halves when each sample comes twice."""
        torch = import_torch()
        # scores whose loss is not 0, as twice 0 is 0 too; and probabilities, as some losses take nothing else
        steps = torch.linspace(0.2, 0.8, scores.numel(), dtype=scores.dtype)
        scores = steps.to(scores.device).reshape(scores.shape)
        try:
            once = self.function(squeeze_scores(scores), targets)
            twice = self.function(squeeze_scores(torch.cat([scores, scores])), torch.cat([targets, targets]))
        except Exception:  # the user's code may raise anything: it takes other scores, so nothing is known here
            return
        if once.shape[1:] != twice.shape[1:]:
            shapes = " for 2 samples and ".join(f"an array {toml_value(tuple(one.shape))}" for one in (once, twice))
            raise self.wrong(f"it gives {shapes} for 4: one loss each, or their mean, is needed")
        twice = twice[: len(once)] if once.ndim else twice
        right = 'return one loss for each sample (reduction="none"), or their mean'
        for factor, verb in ((2, "multiplies"), (0.5, "divides")):
            if bool(once.any()) and bool(((twice - factor * once).abs() <= 1e-3 * once.abs()).all()):
                wrong = f"{verb} the loss of a sample by the number of samples"
                if not once.ndim and factor == 2:
                    wrong = "gives the sum over the samples, and f_i is their mean"
                raise self.wrong(f"it {wrong}: {right}")


def make_loss(reference: str, targets: Targets | None) -> Loss:
    """Return the loss called ``reference``; ``targets`` says which targets a user's function takes."""
    if reference not in LOSSES:
        return Loss(reference, load_function("loss", reference, LOSSES), targets or "classes")
    wanted, name = LOSSES[reference]
    if targets not in (None, wanted):
        raise wrong_value("problem.targets", targets, f"the targets of {reference} are {wanted}")
    if reference == "cross-entropy":
        return Loss(reference, cross_entropy, wanted)
    function = partial(getattr(import_torch().nn.functional, name), reduction="none")
    if reference == "binary-cross-entropy":  # its targets are whole numbers, and torch's function takes real ones
        return Loss(reference, lambda scores, y: function(scores, y.to(scores.dtype)), wanted)
    return Loss(reference, function, wanted)


def cross_entropy(scores: Any, targets: Any) -> Any:
    """Return −log softmax(scores)_target of each sample (k,), in fewer operations than torch's function."""
    classes = import_torch().arange(scores.shape[1], device=scores.device)
    return -scores.log_softmax(1).where(targets[:, None] == classes, 0).sum(1)


class NetworkMetric(NamedTuple):
    """A metric, whose ``function`` maps all scores and targets of a client to one number, or one for each sample."""

    name: str
    function: Callable[[Any, Any], Any]

    def of(self, scores: Any, targets: Any) -> float:
        """Return the metric of a client, a mean over its samples if need be; raise UserError if it is not finite."""
        try:
            value = self.function(squeeze_scores(scores), targets)
            value = float(value.double().mean() if import_torch().is_tensor(value) else value)
        except Exception as error:  # the user's code may raise anything
            why = f"it fails on {len(targets)} samples of a client: {error_line(error)}"
            raise wrong_value("problem.metric", self.name, why) from None
        if value - value:
            why = f"it gives {value} for a client with {len(targets)} samples, not a finite number"
            raise wrong_value("problem.metric", self.name, why)
        return value


def r2(scores: Any, y: Any) -> float:
    """Return 1 − Σ(score − y)²/Σ(y − mean y)²; if all y are equal, 1 for perfect scores and else 0."""
    residual, total = (float(part.square().sum()) for part in (scores - y, y - y.mean()))
    # whether all y are equal is tested directly: their mean may be rounded, and then total is not 0
    return 1 - residual / total if total and bool((y != y[0]).any()) else float(residual == 0)


METRICS: dict[str, Callable[[Any, Any], Any]] = {  # of targets that are numbers
    "rmse": lambda scores, y: (scores - y).square().mean().sqrt(),
    "mae": lambda scores, y: (scores - y).abs().mean(),
    "r2": r2,
}


def check_output_shape(output: tuple[int, ...], scores: int, loss: Loss, metric: str) -> None:
    """Raise ValueError if the ``output`` for two samples is not of the shape of ``scores`` for each."""
    gives = f"for 2 samples the network gives an array {toml_value(output)}: it must be"
    single = output in ((2,), (2, 1))
    if loss.name not in LOSSES:
        if output[:1] != (2,):
            raise ValueError(f"{gives} [2, …], scores for each sample")
        if loss.targets == "classes" and len(output) > 2:
            raise ValueError(f"{gives} [2, C], one score per class")
        if loss.targets == "numbers" and metric in METRICS and not single:
            more = "write metric = path.py:function of (scores, targets) where a sample has more"
            raise ValueError(f"{gives} [2, 1], one score per sample, for the metric {metric}; {more}")
    elif scores > 1 and output != (2, scores):
        raise ValueError(f"{gives} {toml_value((2, scores))}, one score per class")
    elif scores == 1 and not single:
        raise ValueError(f"{gives} [2, 1], one score per sample")


def make_metric(reference: str, targets: Targets) -> NetworkMetric:
    """Return the metric called ``reference``; raise UserError if it does not go with the targets."""
    if reference not in METRICS:
        return NetworkMetric(reference, load_function("metric", reference, METRICS))
    if targets == "classes":
        raise wrong_value("problem.metric", reference, "it is for numbers, and the targets are classes")
    return NetworkMetric(reference, METRICS[reference])


def load_function(key: str, reference: str, names: Any) -> Callable[[Any, Any], Any]:
    """Return the function that path.py:function or package.module:function names; of a class, an instance."""
    key = f"problem.{key}"
    if ":" not in reference:
        near = difflib.get_close_matches(reference, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it is {', '.join(names)} or path.py:function"
        raise wrong_value(key, reference, hint)
    try:
        made = plugins.load_class(reference, "function", Callable)
    except ValueError as error:
        raise wrong_value(key, reference, str(error)) from None
    try:
        return made() if isinstance(made, type) else made
    except Exception as error:  # a class of the user may raise anything
        raise wrong_value(key, reference, f"it cannot be made without arguments: {error_line(error)}") from None


def is_modified(tensor: Any, before: Any) -> bool:
    """Return whether a new tensor with the values ``before`` was changed in place."""
    # _version counts changes in place, but not those by tensor.data or a numpy array on the same memory
    return tensor._version > 0 or not bool(((tensor == before) | (before != before)).all())


def squeeze_scores(scores: Any) -> Any:
    """Return scores (k, 1) as (k,): against targets (k,) they would broadcast to (k, k)."""
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
