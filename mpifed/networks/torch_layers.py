"""Layers of torch networks that need care: batch normalisation, buffers, and what cannot be a function of x."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mpifed.core.errors import UserError
from mpifed.kernels.torch_device import pytorch


class Normalisation:
    """The batch normalisation of a module, made a function of parameters and samples alone.

    A layer normalises with the statistics of the samples at hand, in training and in evaluation; it keeps no running
    ones. A layer whose weight and bias are frozen keeps the running statistics that it came with, as constants.
    ``live``: the layers of the first kind, which make the output for a sample depend on the other samples.
    """

    def __init__(self, module: Any) -> None:
        layers = normalising(module)
        self.constant = [part for part in layers if part.running_mean is not None and frozen(part)]
        others = [part for part in layers if part not in self.constant]
        for part in others:
            forget(part)
        # instance normalisation takes the statistics of each sample alone, which no other sample changes
        self.live = [part for part in others if isinstance(part, pytorch().nn.modules.batchnorm._BatchNorm)]

    def mode(self, module: Any, train: bool) -> None:
        """Training or evaluation mode; layers with constant statistics stay in evaluation mode."""
        module.train(train)
        for part in self.constant:
            part.eval()

    @contextmanager
    def statistics(self, forward: Callable[[], Any]) -> Iterator[None]:
        """Normalise with the statistics that ``forward``, a call of the module on other samples, normalises with."""
        found: dict[Any, tuple[Any, Any]] = {}

        def observe(part: Any, inputs: tuple[Any, ...], _: Any) -> None:
            others = [k for k in range(inputs[0].ndim) if k != 1]  # every axis but that of the channels
            samples = inputs[0] if part.weight is None else inputs[0].to(part.weight.dtype)  # half under autocast
            found[part] = pytorch().var_mean(samples, others, correction=0)

        # by hooks, because only a pass through the layers before knows what comes into a layer. Once all are known each
        # layer has running statistics, which evaluation mode takes, until they are forgotten again
        hooks = [part.register_forward_hook(observe) for part in self.live]
        try:
            forward()
            for part, (var, mean) in found.items():
                part.running_mean, part.running_var = mean, var
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for part in self.live:
                forget(part)


def normalising(module: Any) -> list[Any]:
    """The layers of batch and instance normalisation of a module."""
    base = pytorch().nn.modules.batchnorm._NormBase
    return [part for part in module.modules() if isinstance(part, base)]


def frozen(part: Any) -> bool:
    """Whether a layer has parameters, none of which is trained."""
    found = list(part.parameters(recurse=False))
    return bool(found) and not any(p.requires_grad for p in found)


def forget(part: Any) -> None:
    """Take the running statistics from a normalisation layer: it then uses those of the samples."""
    part.running_mean = part.running_var = part.num_batches_tracked = None
    part.track_running_stats = False


def embeddings(module: Any) -> dict[str, Any]:
    """The layers of a module that take whole numbers, by name."""
    nn = pytorch().nn
    return {name: part for name, part in module.named_modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)}


def zeros(module: Any, shape: tuple[int, ...], integers: bool) -> Any:
    """Samples of zeros to try a module with; in double precision where all of its real parameters have it."""
    torch = pytorch()
    found = {p.dtype for p in module.parameters() if p.is_floating_point()}
    real = torch.float64 if found == {torch.float64} else torch.float32
    return torch.zeros(shape, dtype=torch.int64 if integers else real)


def check(module: Any) -> None:
    """UserError where the parameters of a module cannot be a vector of real numbers, or its layers have no gradient."""
    wrong = {name: "is complex" for name, p in module.named_parameters() if p.is_complex() and p.requires_grad}
    wrong |= {
        f"{name}.weight": "has sparse gradients (write sparse=False)"
        for name, part in embeddings(module).items()
        if part.sparse and part.weight.requires_grad
    }
    if wrong:
        parts = ", ".join(f"{name} {what}" for name, what in wrong.items())
        right = "a function of one vector of real numbers"
        raise UserError(f"the network of the problem must be {right}, but its parameter {parts}")


def refuse_no_tensor(scores: Any, when: str) -> None:
    """ValueError where a network returns something else than a tensor."""
    if not pytorch().is_tensor(scores):
        given = type(scores).__name__
        raise ValueError(f"the network returns a {given}{when}: it must return the scores alone, a tensor")


def marks(module: Any) -> dict[str, tuple[Any, int]]:
    """Which tensor each buffer and frozen parameter is, and how often it was changed in place."""
    # _version is what autograd itself goes by: it counts changes in place, however deep in a module they are
    fixed = {name: p for name, p in module.named_parameters() if not p.requires_grad}
    return {name: (t, t._version) for name, t in (fixed | dict(module.named_buffers())).items()}


def refuse_memory(before: dict[str, tuple[Any, int]], after: dict[str, tuple[Any, int]]) -> None:
    """UserError where buffers were changed by a call: the gradient would depend on the order of the calls."""
    changed = [
        name
        for name, (tensor, version) in after.items()
        if name not in before or before[name][0] is not tensor or before[name][1] != version
    ]
    if changed:
        raise UserError(
            f"the network of the problem must not change its buffers in a call, but it changes {', '.join(changed)}: "
            "f_i would depend on the order of the calls"
        )
