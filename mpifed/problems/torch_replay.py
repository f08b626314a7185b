"""Passes over groups that are repeated: traced once, then replayed operation by operation, without the work of vmap."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from mpifed.problems import torch_graph

TRACED_AFTER = 20  # passes over arrays of one form, which will then be many more: to trace takes what some forty save
TRIED = 3  # passes of what is traced: TorchScript looks at the first of them


class Replay:
    """A function of tensors that is traced for each shape of its arguments, where what is traced has the same bits."""

    def __init__(self, function: Callable[..., tuple[Any, ...]], torch: Any) -> None:
        self.function = function
        self.torch = torch
        self.counts: dict[int, int] = {}
        self.traced: dict[int, Any] = {}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        count = len(arrays[0])  # clients; all other sizes are those of the form
        if count in self.traced:
            return tuple(self.traced[count](*arrays))
        self.counts[count] = self.counts.get(count, 0) + 1
        found = self.function(*arrays)
        if self.counts[count] >= TRACED_AFTER:
            self.trace(count, arrays, found)
        return found

    def trace(self, count: int, arrays: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        """Keep the operations of the function, where they are the same for all arguments and give what it gave."""
        self.traced[count] = self.function
        try:
            from torch.fx.experimental.proxy_tensor import make_fx

            made = make_fx(self.function)(*arrays)
            torch_graph.improve(made, self.torch.ops.aten)
            self.keep(count, made, arrays, found)
            if arrays[0].device.type == "cpu":
                self.keep(count, self.compact(made), arrays, found)
        except Exception:  # what cannot be traced is called as it is
            return

    def keep(self, count: int, replayed: Any, arrays: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        """Use what is replayed for so many clients, where it gives what was found."""
        if all(same_bits(replayed(*arrays), found) for _ in range(TRIED)):
            self.traced[count] = replayed

    def compact(self, made: Any) -> Any:
        """The same operations as TorchScript, on a CPU: without the work of Python for each of them."""
        packed = self.torch.fx.GraphModule(made, deepcopy(made.graph))
        for node in packed.graph.nodes:
            if isinstance(node.target, self.torch._ops.OpOverload):
                node.target = node.target.overloadpacket
                node.kwargs = {name: value for name, value in node.kwargs.items() if name != "device"}
        packed.recompile()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it will be replaced, some day
            return self.torch.jit.script(packed)


def same_bits(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether tensors are equal to the last bit, NaN and the sign of zero included."""
    return all(
        (a is None and b is None) or (a is not None and b is not None and bits(a) == bits(b))
        for a, b in zip(first, second, strict=True)
    )


def bits(values: Any) -> bytes:
    """The bytes of a tensor."""
    found: bytes = values.detach().cpu().contiguous().numpy().tobytes()
    return found
