"""A rehearsal of networks on random samples: does a client have the same bits in groups of every kind?

A group of all its clients is compared with the same clients in another order, at other places in memory, some with
fewer samples; and with smaller groups. A number of clients is used only where that has shown no difference. What is
rehearsed depends on the network and on shapes alone, so that all ranks find the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpifed.core.streams import stream
from mpifed.kernels.torch_device import first_line
from mpifed.networks.torch_network import Network

COMPARED = 200_000  # numbers of gradients: rounding hides a difference in most of them
SHIFT = 1  # numbers by which arrays are moved in memory


class Form(NamedTuple):
    """What a pass over samples computes."""

    rows: int  # of samples of each client
    gradient: bool
    train: bool
    dtype: Any
    ridge: bool = False  # whether the regulariser is in it


class Rehearsal:
    """Which groups give each client the same bits, for passes of each form; found when a form is first used.

    ``one_pass`` maps a form and the arrays of a group to what is found of its clients, ``size`` is that of groups.
    ``simpler`` says whether passes of a form that are not as they should be can be tried again in another way.
    """

    def __init__(
        self, net: Network, one_pass: Callable[..., tuple[Any, ...]], size: int, simpler: Callable[[Form], bool]
    ) -> None:
        self.net = net
        self.one_pass = one_pass
        self.size = size
        self.simpler = simpler
        self.draws = min(max(COMPARED // (size * max(1, len(net.start))), 1), 4)
        self.reasons: dict[Form, str] = {}
        self.fitting: dict[tuple[Form, int], bool] = {}

    def why(self, form: Form) -> str:
        """Why passes of this form cannot be computed in groups; empty where they can."""
        if form not in self.reasons:
            self.reasons[form] = self._tried(form)
        return self.reasons[form]

    def fits(self, form: Form, count: int) -> bool:
        """Whether a group of so many clients gives the same bits as one of all."""
        if count == self.size:
            return True
        key = form, count
        if key not in self.fitting:
            self.fitting[key] = all(self._split(form, count, draw) for draw in range(self.draws))
        return self.fitting[key]

    def _split(self, form: Form, count: int, draw: int) -> bool:
        """Whether all clients of a group have the same bits in groups of so many."""
        arrays = self.arrays(form, draw)
        whole = self.one_pass(form, *arrays)
        # the last part begins earlier, so that each has just so many: every client is compared, some of them twice
        starts = [min(first, self.size - count) for first in range(0, self.size, count)]
        parts = [slice(first, first + count) for first in starts]
        return all(same_bits(self.one_pass(form, *cut(arrays, part)), cut(whole, part)) for part in parts)

    def _tried(self, form: Form) -> str:
        """What goes wrong with a whole group; empty where nothing does."""
        # with the fast functions first and then without them, as often as ``simpler`` finds something to leave out
        wrong = "the last bits of a client depend on its place in a group"
        try:
            if all(self._moved(form, draw) for draw in range(self.draws)):
                return ""
        except Exception as error:  # the user's code may raise anything
            wrong = f"torch.func.vmap cannot compute the network: {first_line(error)}"
        return self._tried(form) if self.simpler(form) else wrong

    def _moved(self, form: Form, draw: int) -> bool:
        """Whether a client has the same bits at another place, among clients of which some have fewer samples."""
        torch = self.net.torch
        # an odd step: kernels work on pairs and fours of clients, and every client comes into another place of them
        compared = slice(0, self.size // 2)
        places = self.size // 2 + 1
        arrays = self.arrays(form, draw)
        found = self.one_pass(form, *arrays)
        arrays[3][self.size // 2 :, form.rows // 2 :] = 0  # weights of clients that are not compared
        moved = self.one_pass(form, *(shifted(torch.roll(part, places, 0)) for part in arrays))
        back = tuple(None if part is None else torch.roll(part, -places, 0) for part in moved)
        return same_bits(cut(found, compared), cut(back, compared))

    def arrays(self, form: Form, draw: int) -> list[Any]:
        """Random parameters, samples, targets, weights and seeds of a group."""
        net = self.net
        torch, count = net.torch, self.size
        # the same numbers on every rank, for all have to come to the same groups
        rng = stream(draw, "rehearsal")
        floats = [
            net.start + 0.05 * rng.standard_normal((count, len(net.start))),
            rng.standard_normal((count, form.rows, *net.options.shape)) * (not net.options.integers),
            rng.standard_normal((count, form.rows)),
            rng.uniform(0.01, 1, (count, form.rows)),
        ]
        if net.options.loss.targets == "classes":
            most = net.output[1] if len(net.output) == 2 else 1
            floats[2] = rng.integers(0, max(2, most), (count, form.rows)).astype(float)
        arrays = [torch.from_numpy(part).to(net.device, form.dtype) for part in floats]
        return [*arrays, torch.from_numpy(rng.integers(0, 2**62, count)).to(net.device)]


def cut(found: Sequence[Any], rows: slice) -> tuple[Any, ...]:
    return tuple(None if part is None else part[rows] for part in found)


def shifted(values: Any) -> Any:
    """The same numbers at another place, in a row with others."""
    # by one number, so that no line of the cache or register begins where it did before
    room = values.new_empty(values.numel() + SHIFT)
    return room[SHIFT:].view(values.shape).copy_(values)


def same_bits(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether tensors are equal to the last bit, NaN and the sign of zero included."""
    return all(bits(a) == bits(b) for a, b in zip(first, second, strict=True))


def bits(values: Any) -> bytes | None:
    return None if values is None else values.detach().cpu().contiguous().numpy().tobytes()
