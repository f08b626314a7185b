"""Convolutions and poolings of images for all clients of a group at once, as one call with the channels of all of them.

The channels of the clients stand beside one another, (B, c·C, height, width), and are last in memory: on a CPU the
kernels of such arrays are several times as fast as those that ``torch.func.vmap`` chooses.
"""

from contextlib import nullcontext
from functools import cache
from typing import Any

from mpifed.problems.torch_device import pytorch


@cache
def convolved() -> Any:
    """A convolution of samples and weights; then follow stride, padding, dilation and groups."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class Convolved(base):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, w: Any, *how: Any) -> Any:
            return torch.conv2d(x, w, None, *how)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, *ctx.how = inputs
            ctx.save_for_backward(x, w)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_x = ctx.needs_input_grad[0]
            dx, dw = convolved_back().apply(g, *ctx.saved_tensors, by_x, *ctx.how)
            return dx if by_x else None, dw, None, None, None, None

        @staticmethod
        def vmap(info: Any, dims: Any, x: Any, w: Any, *how: Any) -> Any:
            c = info.batch_size
            found = Convolved.forward(side_by_side(x, dims[0], c), stacked(w, dims[1], c), *how[:-1], how[-1] * c)
            return found.unflatten(1, (c, -1)), 1

    return Convolved


@cache
def convolved_back() -> Any:
    """Its derivatives by the samples, empty where they are not needed, and by the weights."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class ConvolvedBack(base):  # type: ignore[misc]
        @staticmethod
        def forward(g: Any, x: Any, w: Any, by_x: bool, *how: Any) -> Any:
            *shape, groups = how
            wanted = [by_x, True, False]
            dx, dw, _ = torch.ops.aten.convolution_backward(g, x, w, None, *shape, False, [0, 0], groups, wanted)
            return dx if by_x else w.new_empty(0), dw

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, dims: Any, g: Any, x: Any, w: Any, by_x: bool, *how: Any) -> Any:
            c = info.batch_size
            g, x = side_by_side(g, dims[0], c), side_by_side(x, dims[1], c)
            dx, dw = ConvolvedBack.forward(g, x, stacked(w, dims[2], c), by_x, *how[:-1], how[-1] * c)
            dw = dw.unflatten(0, (c, -1))
            return ((dx.unflatten(1, (c, -1)), dw), (1, 0)) if by_x else ((dx, dw), (None, 0))

    return ConvolvedBack


@cache
def pooled() -> Any:
    """The largest values of samples, and their positions; then follow sides, stride, padding, dilation, rounding."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class Pooled(base):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, *how: Any) -> Any:
            return torch.ops.aten.max_pool2d_with_indices(x, *how)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, *ctx.how = inputs
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(x, output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return pooled_back().apply(g, *ctx.saved_tensors, *ctx.how), None, None, None, None, None

        @staticmethod
        def vmap(info: Any, dims: Any, x: Any, *how: Any) -> Any:
            c = info.batch_size
            found = Pooled.forward(side_by_side(x, dims[0], c), *how)
            return tuple([part.unflatten(1, (c, -1)) for part in found]), (1, 1)

    return Pooled


@cache
def pooled_back() -> Any:
    """Its derivative by the samples."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class PooledBack(base):  # type: ignore[misc]
        @staticmethod
        def forward(g: Any, x: Any, places: Any, *how: Any) -> Any:
            return torch.ops.aten.max_pool2d_with_indices_backward(g, x, *how, places)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, dims: Any, g: Any, x: Any, places: Any, *how: Any) -> Any:
            c = info.batch_size
            g, x, places = (side_by_side(part, at, c) for part, at in zip((g, x, places), dims[:3], strict=True))
            return PooledBack.forward(g, x, places, *how).unflatten(1, (c, -1)), 1

    return PooledBack


@cache
def mode() -> Any:
    """The context in which modules call ``convolution`` and ``pooling``."""
    torch = pytorch()
    base: Any = torch.overrides.TorchFunctionMode

    class Mode(base):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            own = REPLACED.get(function.__name__)
            found = own(*args, **(kwargs or {})) if own else None
            return function(*args, **(kwargs or {})) if found is None else found

    return Mode


def suits(net: Any) -> bool:
    """Whether a network is computed so: on a CPU, in full precision, and without layers that normalise images.

    For those torch.func.vmap needs channels first, and to move them takes longer than is gained.
    """
    torch = pytorch()
    norms = (torch.nn.GroupNorm, torch.nn.modules.batchnorm._NormBase)
    normed = any(isinstance(part, norms) for part in net.module.modules())
    return net.device.type == "cpu" and net.options.autocast is None and not normed


def last(wanted: bool) -> Any:
    """In this context modules call the functions of this file, where ``wanted``."""
    return mode()() if wanted else nullcontext()


def convolution(*args: Any, **named: Any) -> Any:
    """torch.nn.functional.conv2d of batches of images in single precision; None for others."""
    x, w, bias, stride, padding, dilation, groups = bound(CONVOLUTION, args, named)
    if not usual(x) or isinstance(padding, str):
        return None
    found = convolved().apply(x, w, *map(pair, (stride, padding, dilation)), groups)
    return found if bias is None else found + bias[:, None, None]


def pooling(*args: Any, **named: Any) -> Any:
    """torch.nn.functional.max_pool2d of batches of images in single precision; None for others."""
    x, sides, stride, padding, dilation, rounded_up, positions = bound(POOLING, args, named)
    if not usual(x) or positions:
        return None
    sizes = map(pair, (sides, sides if stride is None else stride, padding, dilation))
    return pooled().apply(x, *sizes, rounded_up)[0]


def bound(defaults: dict[str, Any], args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The arguments of a call in the order of ``defaults``."""
    return list({**defaults, **dict(zip(defaults, args, strict=False)), **named}.values())


def usual(values: Any) -> bool:
    """Whether these are batches of images (k, channels, height, width) in single precision."""
    return values.ndim == 4 and values.dtype == pytorch().float32


def pair(sides: Any) -> list[int]:
    """Height and width."""
    return [sides, sides] if isinstance(sides, int) else [int(side) for side in sides]


def side_by_side(values: Any, at: int | None, c: int) -> Any:
    """Images (k, C, h, w) of c clients, which are axis ``at`` (None: the same for all), as (k, c·C, h, w)."""
    whole = values.unsqueeze(1).expand(-1, c, -1, -1, -1) if at is None else values.movedim(at, 1)
    return whole.flatten(1, 2).contiguous(memory_format=pytorch().channels_last)


def stacked(weights: Any, at: int | None, c: int) -> Any:
    """Weights (out, …) of c clients as (c·out, …)."""
    whole = weights.expand(c, *weights.shape) if at is None else weights.movedim(at, 0)
    return whole.flatten(0, 1)


CONVOLUTION = {"input": None, "weight": None, "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
POOLING = {"input": None, "kernel_size": 0, "stride": None, "padding": 0, "dilation": 1}
POOLING |= {"ceil_mode": False, "return_indices": False}
REPLACED = {"conv2d": convolution, "max_pool2d": pooling, "_max_pool2d": pooling}  # by name of torch's function
