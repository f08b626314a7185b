"""Convolutions, poolings and normalisations of images for all clients of a group at once, as one call for all channels.

The channels of the clients stand beside one another, (B, c·C, height, width), and are last in memory: on a CPU the
kernels of such arrays are several times as fast as those that ``torch.func.vmap`` chooses.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from mpifed.kernels.torch_device import pytorch

Arrange = Callable[..., tuple[Any, ...]]  # of c, the axes of clients, and arguments: the arguments of one call for all


@cache
def convolved() -> Any:
    """A convolution of samples, with weights and biases or None; then follow stride, padding, dilation and groups."""

    def convolve(x: Any, w: Any, bias: Any, *how: Any) -> Any:
        return (pytorch().conv2d(x, w, bias, *how),)

    # Example: 16 clients, each with 32 filters for images of 3 channels. Side by side their images have 48 channels,
    # and one convolution with 16 groups and 512 filters gives each client the channels of its own filters
    def arranged(c: int, at: Any, x: Any, w: Any, bias: Any, *how: Any) -> tuple[Any, ...]:
        biases = None if bias is None else stacked(bias, at[2], c)
        return side_by_side(x, at[0], c), stacked(w, at[1], c), biases, *how[:-1], how[-1] * c

    class Convolved(for_all(convolve, arranged, (1,))):  # type: ignore[misc]
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, _, *ctx.how = inputs
            ctx.save_for_backward(x, w)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_x, _, by_bias = ctx.needs_input_grad[:3]
            dx, dw, db = convolved_back().apply(g, *ctx.saved_tensors, by_x, by_bias, *ctx.how)
            return dx if by_x else None, dw, db if by_bias else None, None, None, None, None

    return Convolved


@cache
def convolved_back() -> Any:
    """Its derivatives by the samples and by the biases, both empty where they are not needed, and by the weights."""

    def derive(g: Any, x: Any, w: Any, by_x: bool, by_bias: bool, *how: Any) -> Any:
        *shape, groups = how
        wanted = [by_x, True, by_bias]
        biases = [len(w)] if by_bias else None
        found = pytorch().ops.aten.convolution_backward(g, x, w, biases, *shape, False, [0, 0], groups, wanted)
        return tuple([part if every else w.new_empty(0) for part, every in zip(found, wanted, strict=True)])

    def arranged(c: int, at: Any, g: Any, x: Any, w: Any, *how: Any) -> tuple[Any, ...]:
        return *images((g, x), at, c), stacked(w, at[2], c), *how[:-1], how[-1] * c

    return for_all(derive, arranged, (1, 0, 0))


@cache
def pooled() -> Any:
    """The largest values of samples, and their positions; then follow sides, stride, padding, dilation, rounding."""

    def pool(x: Any, *how: Any) -> Any:
        return pytorch().ops.aten.max_pool2d_with_indices(x, *how)

    def arranged(c: int, at: Any, x: Any, *how: Any) -> tuple[Any, ...]:
        return side_by_side(x, at[0], c), *how

    class Pooled(for_all(pool, arranged, (1, 1))):  # type: ignore[misc]
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, *ctx.how = inputs
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(x, output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return *pooled_back().apply(g, *ctx.saved_tensors, *ctx.how), None, None, None, None, None

    return Pooled


@cache
def pooled_back() -> Any:
    """Its derivative by the samples."""

    def derive(g: Any, x: Any, places: Any, *how: Any) -> Any:
        return (pytorch().ops.aten.max_pool2d_with_indices_backward(g, x, *how, places),)

    def arranged(c: int, at: Any, g: Any, x: Any, places: Any, *how: Any) -> tuple[Any, ...]:
        return *images((g, x, places), at, c), *how

    return for_all(derive, arranged, (1,))


@cache
def normed() -> Any:
    """Samples normalised in groups of channels, with their means and deviations; then follow groups and ε."""

    def normalise(x: Any, w: Any, bias: Any, *how: Any) -> Any:
        return pytorch().ops.aten.native_group_norm(x, w, bias, *sizes(x), *how)

    def arranged(c: int, at: Any, x: Any, w: Any, bias: Any, *how: Any) -> tuple[Any, ...]:
        groups, eps = how
        return side_by_side(x, at[0], c), stacked(w, at[1], c), stacked(bias, at[2], c), c * groups, eps

    class Normed(for_all(normalise, arranged, (1, 1, 1))):  # type: ignore[misc]
        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, w, _, ctx.groups, _ = inputs
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(x, w, *output[1:])

        @staticmethod
        def backward(ctx: Any, g: Any, *_: Any) -> Any:
            return *normed_back().apply(g, *ctx.saved_tensors, ctx.groups), None, None

    return Normed


@cache
def normed_back() -> Any:
    """Its derivatives by the samples, weights and biases."""

    def derive(g: Any, x: Any, w: Any, *given: Any) -> Any:
        mean, rstd, groups = given
        wanted = [True, True, True]
        return pytorch().ops.aten.native_group_norm_backward(g, x, mean, rstd, w, *sizes(x), groups, wanted)

    def arranged(c: int, at: Any, g: Any, x: Any, w: Any, *given: Any) -> tuple[Any, ...]:
        *moments, groups = given
        moments = [part.movedim(axis, 1).flatten(1) for part, axis in zip(moments, at[3:5], strict=True)]
        return *images((g, x), at, c), stacked(w, at[2], c), *moments, c * groups

    return for_all(derive, arranged, (1, 0, 0))


def for_all(compute: Callable[..., Any], arranged: Arrange, axes: tuple[int, ...]) -> Any:
    """A function of torch for arrays, which returns several; ``torch.func.vmap`` calls it once for all clients.

    ``axes``: of each array that it returns for all clients, the one along which they stand.
    """
    base: Any = pytorch().autograd.Function

    class ForAll(base):  # type: ignore[misc]
        @staticmethod
        def forward(*given: Any) -> Any:
            return compute(*given)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        # torch.func.vmap asks here how all clients are computed at once, in place of looking into the function
        @staticmethod
        def vmap(info: Any, dims: Any, *given: Any) -> Any:
            c = info.batch_size
            found = compute(*arranged(c, dims, *given))
            parts = [
                (part.unflatten(axis, (c, -1)), axis) if part.numel() else (part, None)
                for part, axis in zip(found, axes, strict=True)
            ]
            return tuple(zip(*parts, strict=True))

    return ForAll


def images(arrays: tuple[Any, ...], at: Any, c: int) -> list[Any]:
    """``side_by_side`` of several images."""
    return [side_by_side(part, axis, c) for part, axis in zip(arrays, at, strict=False)]


def side_by_side(values: Any, at: int | None, c: int) -> Any:
    """Images (k, C, h, w) of c clients, which are axis ``at`` (None: the same for all), as (k, c·C, h, w)."""
    whole = values.unsqueeze(1).expand(-1, c, -1, -1, -1) if at is None else values.movedim(at, 1)
    return whole.flatten(1, 2).contiguous(memory_format=pytorch().channels_last)


def stacked(weights: Any, at: int | None, c: int) -> Any:
    """Weights (out, …) of c clients as (c·out, …)."""
    whole = weights.expand(c, *weights.shape) if at is None else weights.movedim(at, 0)
    return whole.flatten(0, 1)


def sizes(x: Any) -> tuple[int, int, int]:
    """Images, channels, and numbers of a channel."""
    return x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
