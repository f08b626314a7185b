"""Which functions of torch are computed for all clients of a group side by side: those of ``torch_side_by_side``."""

from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np

from mpifed.kernels.torch_device import pytorch
from mpifed.networks.torch_layers import normalising
from mpifed.networks.torch_side_by_side import convolved, normed, pooled


@cache
def mode() -> Any:
    """The context in which modules call ``convolution`` and ``pooling``."""
    torch = pytorch()
    base: Any = torch.overrides.TorchFunctionMode

    class Mode(base):  # type: ignore[misc]
        # a mode and no patched module: it holds for the calls of this thread inside of the context, whoever makes them,
        # and a network of the user may call torch.nn.functional itself
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            own = REPLACED.get(function.__name__)
            found = own(*args, **(kwargs or {})) if own else None
            return function(*args, **(kwargs or {})) if found is None else found

    return Mode


def suits(net: Any) -> bool:
    """Whether a network is computed so: on a CPU, in full precision, and without batch or instance normalisation.

    For those torch.func.vmap needs channels first, and to move them takes longer than is gained.
    """
    return not normalising(net.module) and net.device.type == "cpu" and net.options.autocast is None


def last(wanted: bool) -> Any:
    """In this context modules call the functions of this file, where ``wanted``."""
    return mode()() if wanted else nullcontext()


def convolution(*args: Any, **named: Any) -> Any:
    """torch.nn.functional.conv2d of batches of images in single precision; None for others."""
    x, w, bias, stride, padding, dilation, groups = bound(CONVOLUTION, args, named)
    # "same" and "valid" are words of torch that the derivative below does not know
    if not usual(x) or isinstance(padding, str):
        return None
    return convolved().apply(x, w, bias, *pairs(stride, padding, dilation), groups)[0]


def pooling(*args: Any, **named: Any) -> Any:
    """torch.nn.functional.max_pool2d of batches of images in single precision; None for others."""
    x, sides, stride, padding, dilation, rounded_up, positions = bound(POOLING, args, named)
    if not usual(x) or positions:
        return None
    return pooled().apply(x, *pairs(sides, sides if stride is None else stride, padding, dilation), rounded_up)[0]


def normalisation(*args: Any, **named: Any) -> Any:
    """torch.nn.functional.group_norm of batches of images in single precision; None for others."""
    x, groups, w, bias, eps, *_ = bound(NORMALISATION, args, named)
    if not usual(x) or w is None or bias is None:
        return None
    return normed().apply(x, w, bias, groups, eps)[0]


def averaging(x: Any, sides: Any) -> Any:
    """torch.nn.functional.adaptive_avg_pool2d of images in single precision to a number each; None for others."""
    return x.mean((-2, -1), keepdim=True) if usual(x) and sides in (1, (1, 1), [1, 1]) else None


def bound(defaults: dict[str, Any], args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The arguments of a call in the order of ``defaults``."""
    return list({**defaults, **dict(zip(defaults, args, strict=False)), **named}.values())


def pairs(*sides: Any) -> list[list[int]]:
    """Height and width each, of a number that is both."""
    return [np.broadcast_to(one, 2).tolist() for one in sides]


def usual(values: Any) -> bool:
    """Whether these are batches of images (k, channels, height, width) in single precision."""
    return values.ndim == 4 and values.dtype == pytorch().float32


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
