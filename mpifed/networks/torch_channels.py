"""Functions of torch that are computed for all clients of a group side by side, and the context that replaces them.

The channels of the clients stand beside one another, (B, c·C, height, width), and are last in memory: on a CPU the
kernels of such arrays are several times as fast as those that ``torch.func.vmap`` chooses.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np

from mpifed.kernels.torch_device import import_torch
from mpifed.networks.torch_layers import normalisation_layers


@cache
def replacing_mode() -> Any:
    """Return the context class in which functions of torch are replaced by those of this file."""
    torch = import_torch()
    base: Any = torch.overrides.TorchFunctionMode

    class Mode(base):  # type: ignore[misc]
        # a mode, not a patched module: it holds for all calls of this thread inside the context, whoever makes them,
        # because the user's network may call torch.nn.functional itself
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            replacement = REPLACED.get(function.__name__)
            result = replacement(*args, **(kwargs or {})) if replacement else None
            return function(*args, **(kwargs or {})) if result is None else result

    return Mode


def suits(net: Any) -> bool:
    """Return whether a network runs on a CPU, in full precision and without batch or instance normalisation.

    For these two normalisations torch.func.vmap needs channels first, and moving channels costs more than is gained.
    """
    return not normalisation_layers(net.module) and net.device.type == "cpu" and net.options.autocast is None


def channels_last(wanted: bool) -> Any:
    """Return a context in which modules call the functions of this file, if ``wanted``."""
    return replacing_mode()() if wanted else nullcontext()


def linear(x: Any, w: Any, bias: Any = None) -> Any:
    """Compute torch.nn.functional.linear for samples (k, n); return None for others."""
    # w first, so that its gradient comes in the order of memory that w has: copies of its transpose take long
    scores = (w @ x.mT).mT if x.ndim == 2 else None
    return scores if scores is None or bias is None else scores + bias


def convolution(*args: Any, **named: Any) -> Any:
    """Compute torch.nn.functional.conv2d for image batches in single precision; return None for others."""
    x, w, bias, stride, padding, dilation, groups = bind_arguments(CONVOLUTION, args, named)
    # "same" and "valid" are no numbers of pixels
    if not is_image_batch(x) or isinstance(padding, str):
        return None
    return convolution_function().apply(x, w, bias, *as_pairs(stride, padding, dilation), groups)


def pooling(*args: Any, **named: Any) -> Any:
    """Compute torch.nn.functional.max_pool2d for image batches in single precision; return None for others."""
    x, sides, stride, padding, dilation, rounded_up, with_positions = bind_arguments(POOLING, args, named)
    if not is_image_batch(x) or with_positions:
        return None
    pairs = as_pairs(sides, sides if stride is None else stride, padding, dilation)
    return pooling_function().apply(x, *pairs, rounded_up)


def normalisation(*args: Any, **named: Any) -> Any:
    """Compute torch.nn.functional.group_norm for image batches in single precision; return None for others."""
    x, groups, w, bias, eps, *_ = bind_arguments(NORMALISATION, args, named)
    if not is_image_batch(x) or w is None or bias is None:
        return None
    return normalisation_function().apply(x, w, bias, groups, eps)


def averaging(x: Any, sides: Any) -> Any:
    """Compute torch.nn.functional.adaptive_avg_pool2d to 1×1 for image batches; return None for other calls."""
    return x.mean((-2, -1), keepdim=True) if is_image_batch(x) and sides in (1, (1, 1), [1, 1]) else None


def bind_arguments(defaults: dict[str, Any], args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Return the arguments of a call in the order of ``defaults``."""
    return list({**defaults, **dict(zip(defaults, args, strict=False)), **named}.values())


def as_pairs(*sides: Any) -> list[list[int]]:
    """Return [height, width] for each argument; a single number stands for both."""
    return [np.broadcast_to(side, 2).tolist() for side in sides]


def is_image_batch(values: Any) -> bool:
    """Return whether values are images (k, channels, height, width) in single precision."""
    return values.ndim == 4 and values.dtype == import_torch().float32


@cache
def convolution_function() -> Any:
    """Return a convolution (x, weights, biases or None, stride, padding, dilation, groups)."""

    # Example: 16 clients, each with 32 filters for images of 3 channels. Side by side the images have 48 channels,
    # and one convolution with 16 groups and 512 filters applies each client's filters to its own channels
    def convolve(c: int, at: Any, x: Any, w: Any, bias: Any, *options: Any) -> Any:
        biases = None if bias is None else stack_clients(bias, at[2], c)
        parts = side_by_side(x, at[0], c), stack_clients(w, at[1], c), biases
        return import_torch().conv2d(*parts, *options[:-1], options[-1] * c)

    return for_all(convolve)


@cache
def pooling_function() -> Any:
    """Return max pooling (x, sides, stride, padding, dilation, ceil_mode)."""

    def pool(c: int, at: Any, x: Any, *options: Any) -> Any:
        return import_torch().max_pool2d(side_by_side(x, at[0], c), *options)

    return for_all(pool)


@cache
def normalisation_function() -> Any:
    """Return group normalisation (x, weights, biases, groups, ε)."""

    def normalise(c: int, at: Any, x: Any, *arguments: Any) -> Any:
        w, bias, groups, eps = arguments
        parts = stack_clients(w, at[1], c), stack_clients(bias, at[2], c)
        return import_torch().nn.functional.group_norm(side_by_side(x, at[0], c), c * groups, *parts, eps)

    return for_all(normalise)


def for_all(compute: Callable[..., Any]) -> Any:
    """Return a function that ``torch.func.vmap`` calls once for all clients.

    ``compute`` maps (c, axes of clients, *arguments) to images side by side. The derivative is that of what it calls,
    because the backward pass is outside of ``torch.func.vmap``.
    """
    base: Any = import_torch().autograd.Function

    class ForAll(base):  # type: ignore[misc]
        @staticmethod
        def forward(*arguments: Any) -> Any:
            return compute(1, (None,) * len(arguments), *arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        # torch.func.vmap calls this once for all clients instead of looking into the function
        @staticmethod
        def vmap(info: Any, dims: Any, *arguments: Any) -> Any:
            c = info.batch_size
            return compute(c, dims, *arguments).unflatten(1, (c, -1)), 1

    return ForAll


def side_by_side(values: Any, at: int | None, c: int) -> Any:
    """Return images (k, C, h, w) of c clients as (k, c·C, h, w); ``at`` is their axis (None: the same for all)."""
    images = values.unsqueeze(1).expand(-1, c, -1, -1, -1) if at is None else values.movedim(at, 1)
    return images.flatten(1, 2).contiguous(memory_format=import_torch().channels_last)


def stack_clients(weights: Any, at: int | None, c: int) -> Any:
    """Return weights (out, …) of c clients as (c·out, …)."""
    stacked = weights.expand(c, *weights.shape) if at is None else weights.movedim(at, 0)
    return stacked.flatten(0, 1)


CONVOLUTION = {"input": None, "weight": None, "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
POOLING = {"input": None, "kernel_size": 0, "stride": None, "padding": 0, "dilation": 1}
POOLING |= {"ceil_mode": False, "return_indices": False}
NORMALISATION = {"input": None, "num_groups": 1, "weight": None, "bias": None, "eps": 1e-5}
REPLACED: dict[str, Callable[..., Any]] = {  # by the name of torch's function
    "linear": linear,
    "conv2d": convolution,
    "max_pool2d": pooling,
    "_max_pool2d": pooling,
    "adaptive_avg_pool2d": averaging,
    "group_norm": normalisation,
}
