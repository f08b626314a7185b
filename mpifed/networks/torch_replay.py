"""Passes over groups that are repeated: traced once, then replayed operation by operation, without the work of vmap."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from operator import getitem
from typing import Any

# Example. A layer relu(z) with z = a Wᵀ + b, whose slopes by W and b are two parts of the gradient (c, n). What make_fx
# traces ends about like this, where r1 are the slopes that come from the layer above:
#
#   r2 = threshold_backward(r1, z, 0)                     slopes of ReLU, into a new array
#   t  = transpose(r2, 1, 2); G = bmm(t, a)               slopes by W, (c, out, in)
#   v  = view(G, [c, out·in]); s = sum(r2, [1])           slopes by b, (c, out)
#   g  = cat([v, s], 1)                                   all copied once more, into (c, n)
#
# ``shorten`` takes out views and pairs of transpositions that change nothing. ``overwrite`` makes the first line
# threshold_backward(…, grad_input=r1), for nobody reads r1 afterwards. ``in_place`` begins with room = empty([c, n]),
# gives the product a view of room to write into, bmm.out(t, a, out=room[:, :out·in] as (c, out, in)), copies the small
# s behind it, and has room in the place of g. No line computes another number: the bits are those of the function, and
# ``Replay`` compares them before it uses a graph.


def improve(made: Any, aten: Any) -> None:
    """Change the graph of a torch.fx.GraphModule whose results are values, gradients (c, n) or None, and scores."""
    made.graph.eliminate_dead_code()
    # in this order: views that are left out no longer keep an array from being overwritten; and ``in_place`` adds
    # writes whose results nobody reads, which the removal of dead code in ``shorten`` might take for dead
    shorten(made.graph, aten)
    overwrite(made.graph, aten)
    in_place(made.graph, aten)
    made.recompile()


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
    # before all operations, for the first product may be the first of them
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
    # with a second reader the array itself is needed, and not only its part of the gradient
    turned = False
    while len(part.users) == 1 and part.target in (aten.view.default, aten._unsafe_view.default, aten.transpose.int):
        turned ^= part.target is aten.transpose.int
        part = part.args[0]
    ends = part.target is aten.bmm.default and len(part.users) == 1 and not part.kwargs
    return (part, turned) if ends else (None, False)


def overwrite(graph: Any, aten: Any) -> None:
    """Let sums, products and slopes of ReLU take the place of an array that nothing reads afterwards."""
    places = {
        aten.add.Tensor: aten.add_.Tensor,
        aten.mul.Tensor: aten.mul_.Tensor,
        aten.relu.default: aten.relu_.default,
        aten.threshold_backward.default: aten.threshold_backward.grad_input,
    }
    order = {node: k for k, node in enumerate(graph.nodes)}
    last = {array(before): order[node] for node in graph.nodes for before in node.all_input_nodes}
    for node in filter(lambda node: node.target in places, graph.nodes):
        # sums and products may write into their second argument too; a sum with a factor alpha is not symmetric
        swapped = node.target in (aten.add.Tensor, aten.mul.Tensor) and not node.kwargs
        for args in (node.args, (*node.args[1::-1],))[: 1 + swapped]:
            if free(node, args, order[node], last):
                last[array(args[0])] = last.get(node, order[node])
                node.target, node.args = places[node.target], args
                if node.target is aten.threshold_backward.grad_input:
                    node.kwargs = {"grad_input": args[0]}
                break


def free(node: Any, args: tuple[Any, ...], place: int, last: dict[Any, int]) -> bool:
    """Whether the first of the arguments is an array like that of the node, which the node alone still reads."""
    first, *others = args
    if not hasattr(first, "meta") or first.meta["val"].stride() != node.meta["val"].stride():
        return False
    made = array(first)
    alike = (first.meta["val"].shape, first.meta["val"].dtype) == (node.meta["val"].shape, node.meta["val"].dtype)
    # an array that both arguments are views of would be read while it is written, in another order
    shared = any(array(other) is made for other in others if hasattr(other, "meta"))
    return alike and not shared and made.op == "call_function" and last[made] == place


def array(node: Any) -> Any:
    """The operation that made the array of which this node is a view."""
    while node.op == "call_function" and node.all_input_nodes:
        before = node.all_input_nodes[0]
        views = before if node.target is getitem else node
        schema = getattr(views.target, "_schema", None)  # which other functions than PyTorch's have not
        if not any(part.alias_info for part in (schema.returns if schema else ())):
            break
        node = before
    return node


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
        # clients; all other sizes are those of the form, of which there is a Replay each
        count = len(arrays[0])
        if count in self.traced:
            return tuple(self.traced[count](*arrays))
        self.counts[count] = self.counts.get(count, 0) + 1
        found = self.function(*arrays)
        if self.counts[count] >= TRACED_AFTER:
            self.trace(count, arrays, found)
        return found

    def trace(self, count: int, arrays: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        """Keep the operations of the function, where they are the same for all arguments and give what it gave."""
        # first the function itself: where anything goes wrong below, it stays, and nobody tries again
        self.traced[count] = self.function
        try:
            from torch.fx.experimental.proxy_tensor import make_fx

            made = make_fx(self.function)(*arrays)
            improve(made, self.torch.ops.aten)
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
            # TorchScript finds overloads by itself, and takes no device as an argument
            if hasattr(node.target, "overloadpacket"):
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
    return values.detach().cpu().contiguous().numpy().tobytes()
