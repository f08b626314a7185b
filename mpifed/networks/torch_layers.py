"""Layers of torch networks that need care: batch normalisation, buffers, dropout, and what is no function of x.

Masks of dropout depend on client, step and position only, not on who is computed beside the client. The mask of the
ℓ-th layer keeps position i of a client's activation if hash(seed, ℓ, i) mod 2³² ≥ p·2³². The seed is that of the client
and the local step (``features.network_training.dropout``). All arithmetic is that of whole numbers modulo 2⁶⁴: no
result depends on the order of sums, on the device or on the number of ranks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.streams import hash_positions
from mpifed.kernels.torch_device import import_torch

# the fewest axes of a batch: an array with fewer is a single sample. Whole channels are kept or dropped
BATCH_NDIM = {"Dropout": None, "Dropout1d": 3, "Dropout2d": 2, "Dropout3d": 5}


class Normalisation:
    """The batch normalisation of a module, made a function of parameters and samples alone.

    A layer normalises with the statistics of the samples at hand, in training and in evaluation; it keeps no running
    ones. A layer whose weight and bias are frozen keeps its running statistics as constants. ``live``: the layers of
    the first kind, which make the output for a sample depend on the other samples.
    """

    def __init__(self, module: Any) -> None:
        layers = normalisation_layers(module)
        self.constant = [part for part in layers if part.running_mean is not None and is_frozen(part)]
        others = [part for part in layers if part not in self.constant]
        for part in others:
            drop_running_statistics(part)
        # instance normalisation is not live: it uses the statistics of each sample alone
        self.live = [part for part in others if isinstance(part, import_torch().nn.modules.batchnorm._BatchNorm)]

    def set_mode(self, module: Any, train: bool) -> None:
        """Set training or evaluation mode; layers with constant statistics stay in evaluation mode."""
        module.train(train)
        for part in self.constant:
            part.eval()

    @contextmanager
    def statistics(self, forward: Callable[[], Any]) -> Iterator[None]:
        """Normalise, inside the context, with the statistics of the samples that ``forward`` passes to the module."""
        moments: dict[Any, tuple[Any, Any]] = {}

        def observe(part: Any, inputs: tuple[Any, ...], _: Any) -> None:
            others = [k for k in range(inputs[0].ndim) if k != 1]  # every axis but that of the channels
            samples = inputs[0] if part.weight is None else inputs[0].to(part.weight.dtype)  # half under autocast
            moments[part] = import_torch().var_mean(samples, others, correction=0)

        # hooks, because only a pass through the earlier layers computes the inputs of a layer. Afterwards each
        # layer has running statistics, which evaluation mode uses, until they are dropped again
        hooks = [part.register_forward_hook(observe) for part in self.live]
        try:
            forward()
            for part, (var, mean) in moments.items():
                part.running_mean, part.running_var = mean, var
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for part in self.live:
                drop_running_statistics(part)


def normalisation_layers(module: Any) -> list[Any]:
    """Return the layers of batch and instance normalisation of a module."""
    base = import_torch().nn.modules.batchnorm._NormBase
    return [part for part in module.modules() if isinstance(part, base)]


def is_frozen(part: Any) -> bool:
    """Return whether a layer has parameters, none of which is trained."""
    parameters = list(part.parameters(recurse=False))
    return bool(parameters) and not any(p.requires_grad for p in parameters)


def drop_running_statistics(part: Any) -> None:
    """Drop the running statistics of a normalisation layer: it then uses those of the samples."""
    part.running_mean = part.running_var = part.num_batches_tracked = None
    part.track_running_stats = False


def embedding_layers(module: Any) -> dict[str, Any]:
    """Return the layers of a module that take whole numbers, by name."""
    nn = import_torch().nn
    return {name: part for name, part in module.named_modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)}


def zero_samples(module: Any, shape: tuple[int, ...], integers: bool) -> Any:
    """Return samples of zeros to try a module with; in double precision if all its real parameters have it."""
    torch = import_torch()
    dtypes = {p.dtype for p in module.parameters() if p.is_floating_point()}
    real = torch.float64 if dtypes == {torch.float64} else torch.float32
    return torch.zeros(shape, dtype=torch.int64 if integers else real)


def check_parameters(module: Any) -> None:
    """Raise UserError if parameters of a module are complex or its layers have sparse gradients."""
    wrong = {name: "is complex" for name, p in module.named_parameters() if p.is_complex() and p.requires_grad}
    wrong |= {
        f"{name}.weight": "has sparse gradients (write sparse=False)"
        for name, part in embedding_layers(module).items()
        if part.sparse and part.weight.requires_grad
    }
    if wrong:
        parts = ", ".join(f"{name} {what}" for name, what in wrong.items())
        right = "a function of one vector of real numbers"
        raise UserError(f"the network of the problem must be {right}, but its parameter {parts}")


def require_tensor(scores: Any, when: str) -> None:
    """Raise ValueError if a network returns something other than a tensor."""
    if not import_torch().is_tensor(scores):
        given = type(scores).__name__
        raise ValueError(f"the network returns a {given}{when}: it must return the scores alone, a tensor")


def buffer_versions(module: Any) -> dict[str, tuple[Any, int]]:
    """Return each buffer and frozen parameter by name, with the count of its changes in place."""
    # autograd itself relies on _version: it counts changes in place, however deep in a module they are
    fixed = {name: p for name, p in module.named_parameters() if not p.requires_grad}
    return {name: (t, t._version) for name, t in (fixed | dict(module.named_buffers())).items()}


def refuse_changed_buffers(before: dict[str, tuple[Any, int]], after: dict[str, tuple[Any, int]]) -> None:
    """Raise UserError if a call changed buffers: the gradient would depend on the order of the calls."""
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


class MaskedDropout:
    """The forward pass of a dropout layer, whose buffer ``seed`` holds the seed of the client and step."""

    def __init__(self, layer: Any, number: int) -> None:
        self.layer = layer
        self.number = number
        self.batch_ndim = BATCH_NDIM[type(layer).__name__]
        self.calls = 0  # in this pass of the network: a layer that is used twice has two masks

    def __call__(self, values: Any) -> Any:
        p = self.layer.p
        if not self.layer.training or not p:
            return values
        self.calls += 1
        shape = values.shape
        if self.batch_ndim is not None:
            leading = 2 if values.ndim >= self.batch_ndim else 1  # axes of samples and channels
            shape = shape[:leading] + (1,) * (values.ndim - leading)
        # not torch's dropout: its generator draws along the batch, so a mask would depend on the clients beside
        torch = import_torch()
        positions = torch.arange(shape.numel(), device=values.device)
        hashed = hash_positions(self.layer.seed, self.number + 1000 * self.calls, positions)
        # whole numbers of 32 bits: as floats, devices might round p differently
        mask = (hashed & 0xFFFFFFFF) >= int(p * 2**32)
        factor = 0.0 if p == 1 else 1 / (1 - p)
        return values * (mask.to(values.dtype) * factor).view(shape)


def replace_dropout(module: Any) -> dict[str, MaskedDropout]:
    """Give the dropout layers of a module such masks; return the layers by the names of their seeds."""
    torch = import_torch()
    layers: dict[str, MaskedDropout] = {}
    for name, part in module.named_modules():
        if type(part).__module__ == "torch.nn.modules.dropout" and type(part).__name__ in BATCH_NDIM:
            part.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)
            part.forward = layers[f"{name}.seed".lstrip(".")] = MaskedDropout(part, len(layers))
    return layers
