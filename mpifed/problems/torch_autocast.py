"""Calls of a network in half precision, where torch.autocast allows it."""

from collections.abc import Callable
from typing import Any

from mpifed.core.errors import UserError
from mpifed.problems.torch_device import pytorch


def forward(name: str | None, device: Any) -> Callable[..., Any]:
    """torch.func.functional_call, under torch.autocast to the type ``name`` where one is given.

    Scores come back in single precision, and so do gradients, because parameters have it. Tensors on another device
    than ``device``, with which a module is tried, are computed in single precision. UserError for float16 on a CPU.
    """
    torch = pytorch()
    plain: Callable[..., Any] = torch.func.functional_call
    if name is None:
        return plain
    if name == "float16" and device.type == "cpu":
        raise UserError(
            'problem.autocast = "float16" is wrong on a CPU: it must be "bfloat16" there, or problem.device = "cuda"'
        )

    def call(module: Any, P: dict[str, Any], inputs: tuple[Any, ...]) -> Any:
        half = inputs[0].device.type == device.type
        # without its cache of parameters, which would outlive the transformations of torch.func
        with torch.autocast(device.type, getattr(torch, name), enabled=half, cache_enabled=False):
            return plain(module, P, inputs).float()

    return call
