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

# maps (c, axes of clients, *arguments) to the arguments of one call for all clients
Arrangement = Callable[..., tuple[Any, ...]]


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


def convolution(*args: Any, **named: Any) -> Any:
    """Compute torch.nn.functional.conv2d for image batches in single precision; return None for others."""
    x, w, bias, stride, padding, dilation, groups = bind_arguments(CONVOLUTION, args, named)
    # "same" and "valid" are paddings that the derivative below does not know
    if not is_image_batch(x) or isinstance(padding, str):
        return None
    return convolution_function().apply(x, w, bias, *as_pairs(stride, padding, dilation), groups)[0]


def pooling(*args: Any, **named: Any) -> Any:
    """Compute torch.nn.functional.max_pool2d for image batches in single precision; return None for others."""
    x, sides, stride, padding, dilation, rounded_up, with_positions = bind_arguments(POOLING, args, named)
    if not is_image_batch(x) or with_positions:
        return None
    pairs = as_pairs(sides, sides if stride is None else stride, padding, dilation)
    return pooling_function().apply(x, *pairs, rounded_up)[0]


def normalisation(*args: Any, **named: Any) -> Any:
    """Compute torch.nn.functional.group_norm for image batches in single precision; return None for others."""
    x, groups, w, bias, eps, *_ = bind_arguments(NORMALISATION, args, named)
    if not is_image_batch(x) or w is None or bias is None:
        return None
    return normalisation_function().apply(x, w, bias, groups, eps)[0]


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
    """Return a convolution (x, weights, biases or None, stride, padding, dilation, groups) with derivatives."""

    def convolve(x: Any, w: Any, bias: Any, *options: Any) -> Any:
        return (import_torch().conv2d(x, w, bias, *options),)

    # Example: 16 clients, each with 32 filters for images of 3 channels. Side by side the images have 48 channels,
    # and one convolution with 16 groups and 512 filters applies each client's filters to its own channels
    def arrange(c: int, at: Any, x: Any, w: Any, bias: Any, *options: Any) -> tuple[Any, ...]:
        biases = None if bias is None else stack_clients(bias, at[2], c)
        return side_by_side(x, at[0], c), stack_clients(w, at[1], c), biases, *options[:-1], options[-1] * c

    class Convolution(for_all(convolve, arrange, (1,))):  # type: ignore[misc]
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, _, *ctx.options = inputs
            ctx.save_for_backward(x, w)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_x, _, by_bias = ctx.needs_input_grad[:3]
            dx, dw, db = convolution_gradient().apply(g, *ctx.saved_tensors, by_x, by_bias, *ctx.options)
            return dx if by_x else None, dw, db if by_bias else None, None, None, None, None

    return Convolution


@cache
def convolution_gradient() -> Any:
    """Return the function for derivatives of a convolution by samples, weights and biases; empty if not needed."""

    def derive(g: Any, x: Any, w: Any, by_x: bool, by_bias: bool, *options: Any) -> Any:
        *shape, groups = options
        wanted = [by_x, True, by_bias]
        biases = [len(w)] if by_bias else None
        gradients = import_torch().ops.aten.convolution_backward(g, x, w, biases, *shape, False, [0, 0], groups, wanted)
        return tuple([part if needed else w.new_empty(0) for part, needed in zip(gradients, wanted, strict=True)])

    def arrange(c: int, at: Any, g: Any, x: Any, w: Any, *options: Any) -> tuple[Any, ...]:
        return *all_side_by_side((g, x), at, c), stack_clients(w, at[2], c), *options[:-1], options[-1] * c

    return for_all(derive, arrange, (1, 0, 0))


@cache
def pooling_function() -> Any:
    """Return max pooling (x, sides, stride, padding, dilation, ceil_mode): largest values and positions."""

    def pool(x: Any, *options: Any) -> Any:
        return import_torch().ops.aten.max_pool2d_with_indices(x, *options)

    def arrange(c: int, at: Any, x: Any, *options: Any) -> tuple[Any, ...]:
        return side_by_side(x, at[0], c), *options

    class Pooling(for_all(pool, arrange, (1, 1))):  # type: ignore[misc]
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, *ctx.options = inputs
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(x, output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return *pooling_gradient().apply(g, *ctx.saved_tensors, *ctx.options), None, None, None, None, None

    return Pooling


@cache
def pooling_gradient() -> Any:
    """Return the function for the derivative of max pooling by the samples."""

    def derive(g: Any, x: Any, positions: Any, *options: Any) -> Any:
        return (import_torch().ops.aten.max_pool2d_with_indices_backward(g, x, *options, positions),)

    def arrange(c: int, at: Any, g: Any, x: Any, positions: Any, *options: Any) -> tuple[Any, ...]:
        return *all_side_by_side((g, x, positions), at, c), *options

    return for_all(derive, arrange, (1,))


@cache
def normalisation_function() -> Any:
    """Return group normalisation (x, weights, biases, groups, ε): values, means and deviations."""

    def normalise(x: Any, w: Any, bias: Any, *options: Any) -> Any:
        return import_torch().ops.aten.native_group_norm(x, w, bias, *image_sizes(x), *options)

    def arrange(c: int, at: Any, x: Any, w: Any, bias: Any, *options: Any) -> tuple[Any, ...]:
        groups, eps = options
        return side_by_side(x, at[0], c), stack_clients(w, at[1], c), stack_clients(bias, at[2], c), c * groups, eps

    class Normalisation(for_all(normalise, arrange, (1, 1, 1))):  # type: ignore[misc]
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, _, ctx.groups, _ = inputs
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(x, w, *output[1:])

        @staticmethod
        def backward(ctx: Any, g: Any, *_: Any) -> Any:
            return *normalisation_gradient().apply(g, *ctx.saved_tensors, ctx.groups), None, None

    return Normalisation


@cache
def normalisation_gradient() -> Any:
    """Return the function for derivatives of group normalisation by samples, weights and biases."""

    def derive(g: Any, x: Any, w: Any, *arguments: Any) -> Any:
        mean, rstd, groups = arguments
        wanted = [True, True, True]
        return import_torch().ops.aten.native_group_norm_backward(g, x, mean, rstd, w, *image_sizes(x), groups, wanted)

    def arrange(c: int, at: Any, g: Any, x: Any, w: Any, *arguments: Any) -> tuple[Any, ...]:
        *moments, groups = arguments
        moments = [part.movedim(axis, 1).flatten(1) for part, axis in zip(moments, at[3:5], strict=True)]
        return *all_side_by_side((g, x), at, c), stack_clients(w, at[2], c), *moments, c * groups

    return for_all(derive, arrange, (1, 0, 0))


def for_all(compute: Callable[..., Any], arrange: Arrangement, axes: tuple[int, ...]) -> Any:
    """Return an autograd function for arrays that ``torch.func.vmap`` calls once for all clients.

    ``axes``: the axis of clients in each array that it returns.
    """
    base: Any = import_torch().autograd.Function

    class ForAll(base):  # type: ignore[misc]
        @staticmethod
        def forward(*arguments: Any) -> Any:
            return compute(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        # torch.func.vmap calls this once for all clients instead of looking into the function
        @staticmethod
        def vmap(info: Any, dims: Any, *arguments: Any) -> Any:
            c = info.batch_size
            results = compute(*arrange(c, dims, *arguments))
            parts = [
                (part.unflatten(axis, (c, -1)), axis) if part.numel() else (part, None)
                for part, axis in zip(results, axes, strict=True)
            ]
            return tuple(zip(*parts, strict=True))

    return ForAll


def all_side_by_side(arrays: tuple[Any, ...], at: Any, c: int) -> list[Any]:
    """Apply ``side_by_side`` to several arrays of images."""
    return [side_by_side(part, axis, c) for part, axis in zip(arrays, at, strict=False)]


def side_by_side(values: Any, at: int | None, c: int) -> Any:
    """Return images (k, C, h, w) of c clients as (k, c·C, h, w); ``at`` is their axis (None: the same for all)."""
    images = values.unsqueeze(1).expand(-1, c, -1, -1, -1) if at is None else values.movedim(at, 1)
    return images.flatten(1, 2).contiguous(memory_format=import_torch().channels_last)


def stack_clients(weights: Any, at: int | None, c: int) -> Any:
    """Return weights (out, …) of c clients as (c·out, …)."""
    stacked = weights.expand(c, *weights.shape) if at is None else weights.movedim(at, 0)
    return stacked.flatten(0, 1)


def image_sizes(x: Any) -> tuple[int, int, int]:
    """Return the numbers of images, of channels, and of pixels of a channel."""
    return x.shape[0], x.shape[1], x.shape[2] * x.shape[3]


CONVOLUTION = {"input": None, "weight": None, "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
POOLING = {"input": None, "kernel_size": 0, "stride": None, "padding": 0, "dilation": 1}
POOLING |= {"ceil_mode": False, "return_indices": False}
NORMALISATION = {"input": None, "num_groups": 1, "weight": None, "bias": None, "eps": 1e-5}
REPLACED = {  # by the name of torch's function
    "conv2d": convolution,
    "max_pool2d": pooling,
    "_max_pool2d": pooling,
    "adaptive_avg_pool2d": averaging,
    "group_norm": normalisation,
}
