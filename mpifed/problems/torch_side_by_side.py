"""Convolutions, poolings and normalisations of images for all clients of a group at once, as one call for all channels.

The channels of the clients stand beside one another, (B, c·C, height, width), and are last in memory: on a CPU the
kernels of such arrays are several times as fast as those that ``torch.func.vmap`` chooses.
"""

from functools import cache
from typing import Any

from mpifed.problems.torch_device import pytorch


@cache
def convolved() -> Any:
    """A convolution of samples, with weights and biases or None; then follow stride, padding, dilation and groups."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class Convolved(base):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, w: Any, bias: Any, *how: Any) -> Any:
            return torch.conv2d(x, w, bias, *how)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, _, *ctx.how = inputs
            ctx.save_for_backward(x, w)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_x, _, by_bias = ctx.needs_input_grad[:3]
            dx, dw, db = convolved_back().apply(g, *ctx.saved_tensors, by_x, by_bias, *ctx.how)
            return dx if by_x else None, dw, db if by_bias else None, None, None, None, None

        @staticmethod
        def vmap(info: Any, dims: Any, x: Any, w: Any, bias: Any, *how: Any) -> Any:
            c = info.batch_size
            biases = None if bias is None else stacked(bias, dims[2], c)
            found = Convolved.forward(
                side_by_side(x, dims[0], c), stacked(w, dims[1], c), biases, *how[:-1], how[-1] * c
            )
            return found.unflatten(1, (c, -1)), 1

    return Convolved


@cache
def convolved_back() -> Any:
    """Its derivatives by the samples and by the biases, both empty where they are not needed, and by the weights."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class ConvolvedBack(base):  # type: ignore[misc]
        @staticmethod
        def forward(g: Any, x: Any, w: Any, by_x: bool, by_bias: bool, *how: Any) -> Any:
            *shape, groups = how
            wanted = [by_x, True, by_bias]
            sizes = [len(w)] if by_bias else None
            found = torch.ops.aten.convolution_backward(g, x, w, sizes, *shape, False, [0, 0], groups, wanted)
            return tuple([part if every else w.new_empty(0) for part, every in zip(found, wanted, strict=True)])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, dims: Any, g: Any, x: Any, w: Any, *how: Any) -> Any:
            c = info.batch_size
            g, x = (side_by_side(part, at, c) for part, at in zip((g, x), dims[:2], strict=True))
            found = ConvolvedBack.forward(g, x, stacked(w, dims[2], c), *how[:-1], how[-1] * c)
            return apart(found, (1, 0, 0), c)

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
def normed() -> Any:
    """Samples normalised in groups of channels, with their means and deviations; then follow groups and ε."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class Normed(base):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any, w: Any, bias: Any, *how: Any) -> Any:
            return torch.ops.aten.native_group_norm(x, w, bias, *sizes(x), *how)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, _, ctx.groups, _ = inputs
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(x, *output[1:], w)

        @staticmethod
        def backward(ctx: Any, g: Any, *_: Any) -> Any:
            return *normed_back().apply(g, *ctx.saved_tensors, ctx.groups), None, None

        @staticmethod
        def vmap(info: Any, dims: Any, x: Any, w: Any, bias: Any, *how: Any) -> Any:
            c = info.batch_size
            groups, eps = how
            x = side_by_side(x, dims[0], c)
            found = Normed.forward(x, stacked(w, dims[1], c), stacked(bias, dims[2], c), c * groups, eps)
            return apart(found, (1, 1, 1), c)

    return Normed


@cache
def normed_back() -> Any:
    """Its derivatives by the samples, weights and biases."""
    torch = pytorch()
    base: Any = torch.autograd.Function

    class NormedBack(base):  # type: ignore[misc]
        @staticmethod
        def forward(g: Any, x: Any, mean: Any, rstd: Any, w: Any, groups: int) -> Any:
            wanted = [True, True, True]
            return torch.ops.aten.native_group_norm_backward(g, x, mean, rstd, w, *sizes(x), groups, wanted)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, dims: Any, *given: Any) -> Any:
            c = info.batch_size
            *arrays, w, groups = given
            g, x = (side_by_side(part, at, c) for part, at in zip(arrays[:2], dims[:2], strict=True))
            mean, rstd = (part.movedim(at, 1).flatten(1) for part, at in zip(arrays[2:], dims[2:4], strict=True))
            return apart(NormedBack.forward(g, x, mean, rstd, stacked(w, dims[4], c), c * groups), (1, 0, 0), c)

    return NormedBack


def side_by_side(values: Any, at: int | None, c: int) -> Any:
    """Images (k, C, h, w) of c clients, which are axis ``at`` (None: the same for all), as (k, c·C, h, w)."""
    whole = values.unsqueeze(1).expand(-1, c, -1, -1, -1) if at is None else values.movedim(at, 1)
    return whole.flatten(1, 2).contiguous(memory_format=pytorch().channels_last)


def stacked(weights: Any, at: int | None, c: int) -> Any:
    """Weights (out, …) of c clients as (c·out, …)."""
    whole = weights.expand(c, *weights.shape) if at is None else weights.movedim(at, 0)
    return whole.flatten(0, 1)


def apart(found: Any, at: tuple[int, ...], c: int) -> Any:
    """Arrays of c clients with these axes divided into clients and the rest, and the axes of clients (empty: None)."""
    parts = [
        (part.unflatten(axis, (c, -1)), axis) if part.numel() else (part, None)
        for part, axis in zip(found, at, strict=True)
    ]
    return tuple(zip(*parts, strict=True))


def sizes(x: Any) -> tuple[int, int, int]:
    """Images, channels, and numbers of a channel."""
    return x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
