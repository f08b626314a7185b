"""Passes over groups that are repeated: traced once, then replayed operation by operation, without the work of vmap."""

import warnings
from collections.abc import Callable
from typing import Any

TRACED_AFTER = 60  # passes over arrays of one form; to trace takes the time of hundreds of small ones
TRIED = 3  # passes of what is traced: TorchScript looks at the first of them
AGAIN_AFTER = 10  # passes with another number of clients, where one is traced: such a form is used often


class Replay:
    """A function of tensors that is traced for each shape of its arguments, where what is traced has the same bits."""

    def __init__(self, function: Callable[..., tuple[Any, ...]], torch: Any) -> None:
        self.function = function
        self.torch = torch
        self.counts: dict[Any, int] = {}
        self.traced: dict[Any, Any] = {}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        count = len(arrays[0])  # clients; all other sizes are those of the form
        if count in self.traced:
            return tuple(self.traced[count](*arrays))
        self.counts[count] = self.counts.get(count, 0) + 1
        found = self.function(*arrays)
        if self.counts[count] >= (AGAIN_AFTER if self.traced else TRACED_AFTER):
            self.trace(count, arrays, found)
        return found

    def trace(self, count: int, arrays: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        """Keep the operations of the function, where they are the same for all arguments and give what it gave."""
        self.traced[count] = self.function
        try:
            from torch.fx.experimental.proxy_tensor import make_fx

            made = make_fx(self.function)(*arrays)
            made.graph.eliminate_dead_code()
            shorten(made.graph, self.torch.ops.aten)
            in_place(made.graph, self.torch.ops.aten)
            made.recompile()
            for replayed in (made, self.compact(made, arrays)):
                if all(same_bits(replayed(*arrays), found) for _ in range(TRIED)):
                    self.traced[count] = replayed
        except Exception:  # what cannot be traced is called as it is
            return

    def compact(self, made: Any, arrays: tuple[Any, ...]) -> Any:
        """The same operations without the work of Python for each, on a CPU and where TorchScript knows them all."""
        if arrays[0].device.type != "cpu":
            return made
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it will be replaced, some day
                return self.torch.jit.trace(made, arrays, check_trace=False)
        except Exception:
            return made


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


def shorten(graph: Any, aten: Any) -> None:
    """Take out the views that change nothing, and pairs of transpositions."""
    views = (aten.view.default, aten._unsafe_view.default, aten.expand.default, aten.permute.default)
    for node in graph.nodes:
        before: Any = node.args[0] if node.args else None
        if node.target in views and node.meta["val"].shape == before.meta["val"].shape:
            if node.target is not aten.permute.default or list(node.args[1]) == sorted(node.args[1]):
                node.replace_all_uses_with(before)
        elif node.target is aten.transpose.int and (before.target, *before.args[1:]) == (node.target, *node.args[1:]):
            node.replace_all_uses_with(before.args[0])
    graph.eliminate_dead_code()


def in_place(graph: Any, aten: Any) -> None:
    """Let products write their part of the gradient where it belongs, in place of a copy of all parts at the end."""
    gradient = next(iter(graph.output_node().args[0][1:2]), None)
    if gradient is None or gradient.target is not aten.cat.default:
        return
    parts, width = gradient.args[0], gradient.meta["val"].shape[1]
    first = parts[0].meta["val"]
    with graph.inserting_before(min(graph.nodes, key=lambda node: node.op == "placeholder")):
        room = graph.call_function(
            aten.empty.memory_format, ([len(first), width],), {"dtype": first.dtype, "device": first.device}
        )
    begin = 0
    for part in parts:
        end = begin + part.meta["val"].shape[1]
        product, turned = source(part, aten)
        with graph.inserting_before(gradient if product is None else product):
            place = graph.call_function(aten.slice.Tensor, (room, 1, begin, end))
            if product is None:
                graph.call_function(aten.copy_.default, (place, part))
            else:
                shape = list(product.meta["val"].shape)
                flat = [shape[0], shape[2], shape[1]] if turned else shape
                place = graph.call_function(aten.view.default, (place, flat))
                if turned:
                    place = graph.call_function(aten.transpose.int, (place, 1, 2))
                product.target = aten.bmm.out
                product.kwargs = {"out": place}
        begin = end
    gradient.replace_all_uses_with(room)
    graph.erase_node(gradient)
    graph.lint()


def source(part: Any, aten: Any) -> tuple[Any, bool]:
    """The product of which a part of the gradient is a view, and whether it is transposed; None where there is none."""
    turned = False
    while len(part.users) == 1 and part.target in (aten.view.default, aten._unsafe_view.default, aten.transpose.int):
        turned ^= part.target is aten.transpose.int
        part = part.args[0]
    ends = part.target is aten.bmm.default and len(part.users) == 1 and not part.kwargs
    return (part, turned) if ends else (None, False)
