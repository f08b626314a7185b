"""A rehearsal of groups of clients: has a client the same bits in each of them, and what time does it take there?

It compares a group of all its clients on random samples with the same clients in another order, at other addresses in
memory, some with fewer samples; and with smaller groups. It depends on the network and on shapes alone, so that all
ranks find the same. For local steps it also takes the CPU time of a client in a group and alone. Clients are computed
alone where that takes less and has the same bits: ranks that choose otherwise still find the same.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import error_line
from mpifed.core.streams import stream
from mpifed.networks.torch_network import ClientSamples, Network

COMPARED = 200_000  # gradient entries to compare, because rounding hides a difference in most of them
TURNS = 3  # passes that are timed
SHIFT = 1  # entries by which arrays are moved in memory
GROUPED = "a rehearsal found the same bits for a client in every group"


class PassForm(NamedTuple):
    """A kind of pass over samples: its shapes, and what it computes."""

    rows: int  # samples of each client
    gradient: bool
    train: bool
    dtype: Any
    ridge: bool = False  # whether it includes the regulariser


class PassSeconds(NamedTuple):
    """Median CPU seconds of a client in a full group and alone, and whether it has the same bits."""

    grouped: float
    alone: float
    same: bool


class GroupRehearsal:
    """Tests, for passes of each form, which groups give each client the same bits; run when a form is first used.

    ``one_pass`` maps a form and the arrays of a group to the results of its clients, ``size`` is that of groups.
    ``fall_back`` switches failing passes of a form to a simpler way, and returns whether there was one.
    """

    def __init__(
        self, net: Network, one_pass: Callable[..., tuple[Any, ...]], size: int, fall_back: Callable[[PassForm], bool]
    ) -> None:
        self.net = net
        self.one_pass = one_pass
        self.size = size
        self.fall_back = fall_back
        self.draws = min(max(COMPARED // (size * max(1, len(net.start))), 1), 4)
        self.reasons: dict[PassForm, str] = {}
        self.fitting: dict[tuple[PassForm, int], bool] = {}
        self.seconds: dict[PassForm, PassSeconds] = {}

    def why(self, form: PassForm) -> str:
        """Return why passes of this form cannot be computed in groups; empty if they can."""
        if form not in self.reasons:
            self.reasons[form] = self._find_reason(form)
        return self.reasons[form]

    def prefers_alone(self, form: PassForm) -> bool:
        """Return whether clients take less CPU time alone, with the same bits, in local steps on a CPU."""
        # kernels on a GPU take no CPU time
        if not (form.train and form.gradient and self.net.device.type == "cpu"):
            return False
        if form not in self.seconds:
            self.seconds[form] = self._measure(form)
        seconds = self.seconds[form]
        return seconds.alone < seconds.grouped and seconds.same

    def _measure(self, form: PassForm) -> PassSeconds:
        """Return the median CPU seconds of a client in both ways, and whether it has the same bits."""
        arrays = self.arrays(form, 0)
        grouped, alone, same = [], [], True
        for client in range(TURNS):
            seconds, (f, _, *parts) = clock_call(self.one_pass, form, *arrays)
            grouped.append(seconds / self.size)
            x, A, b, w, seed = (part[client].numpy() for part in arrays)
            samples = ClientSamples(A.reshape(form.rows, -1), b, w)
            seconds, (value, gradient, _) = clock_call(self.net.run, x, samples, True, int(seed))
            alone.append(seconds)
            mine = np.concatenate([f[client].numpy(), *(part[client].numpy() for part in parts)], axis=None)
            same = same and mine.tobytes() == np.concatenate([[value], gradient]).astype(x.dtype).tobytes()
        return PassSeconds(float(np.median(grouped)), float(np.median(alone)), same)

    def describe(self, form: PassForm) -> str:
        """Return what was found and both times, as ``mpifed show`` says it."""
        found = "it takes less CPU time" if self.prefers_alone(form) else GROUPED
        if form not in self.seconds:
            return found
        seconds = self.seconds[form]
        grouped, alone = (f"{1e3 * part:.2g}" for part in (seconds.grouped, seconds.alone))
        more = ", with other last bits" if seconds.alone < seconds.grouped and not seconds.same else ""
        return f"{found}; a gradient of {form.rows} samples takes {grouped} ms in a group, and {alone} ms alone{more}"

    def fits(self, form: PassForm, count: int) -> bool:
        """Return whether a group of ``count`` clients gives the same bits as a full one."""
        if count == self.size:
            return True
        key = form, count
        if key not in self.fitting:
            self.fitting[key] = all(self._ignores_count(form, count, draw) for draw in range(self.draws))
        return self.fitting[key]

    def _ignores_count(self, form: PassForm, count: int, draw: int) -> bool:
        """Return whether all clients of a full group have the same bits in groups of ``count``."""
        arrays = self.arrays(form, draw)
        full = self.one_pass(form, *arrays)
        # the last part begins earlier, so that each has ``count`` clients: some clients are compared twice
        starts = [min(first, self.size - count) for first in range(0, self.size, count)]
        parts = [slice(first, first + count) for first in starts]
        return all(same_bits(self.one_pass(form, *cut_rows(arrays, part)), cut_rows(full, part)) for part in parts)

    def _find_reason(self, form: PassForm) -> str:
        """Return what goes wrong with a full group; empty if nothing does."""
        # first with the fast functions, then without them, as long as ``fall_back`` finds something to leave out
        wrong = "the last bits of a client depend on its place in a group"
        try:
            if all(self._ignores_position(form, draw) for draw in range(self.draws)):
                return ""
        except Exception as error:  # the user's code may raise anything
            wrong = f"torch.func.vmap cannot compute the network: {error_line(error)}"
        return self._find_reason(form) if self.fall_back(form) else wrong

    def _ignores_position(self, form: PassForm, draw: int) -> bool:
        """Return whether clients have the same bits at other positions, beside clients with fewer samples."""
        torch = self.net.torch
        # an odd step: kernels work on pairs and fours of clients, so every client changes its position in them
        compared = slice(0, self.size // 2)
        shift = self.size // 2 + 1
        arrays = self.arrays(form, draw)
        results = self.one_pass(form, *arrays)
        arrays[3][self.size // 2 :, form.rows // 2 :] = 0  # weights of clients that are not compared
        moved = self.one_pass(form, *(shift_in_memory(torch.roll(part, shift, 0)) for part in arrays))
        moved_back = tuple(torch.roll(part, -shift, 0) for part in moved)
        return same_bits(cut_rows(results, compared), cut_rows(moved_back, compared))

    def arrays(self, form: PassForm, draw: int) -> list[Any]:
        """Draw random parameters, samples, targets, weights and seeds of a group."""
        net = self.net
        torch, count = net.torch, self.size
        # the same numbers on every rank, because all must choose the same groups
        rng = stream(draw, "rehearsal")
        floats = [
            net.start + 0.05 * rng.standard_normal((count, len(net.start))),
            rng.standard_normal((count, form.rows, *net.options.shape)) * (not net.options.integers),
            rng.standard_normal((count, form.rows)),
            rng.uniform(0.01, 1, (count, form.rows)),
        ]
        if net.options.loss.targets == "classes":
            classes = net.output[1] if len(net.output) == 2 else 1
            floats[2] = rng.integers(0, max(2, classes), (count, form.rows)).astype(float)
        arrays = [torch.from_numpy(part).to(net.device, form.dtype) for part in floats]
        return [*arrays, torch.from_numpy(rng.integers(0, 2**62, count)).to(net.device)]


def cut_rows(arrays: Sequence[Any], rows: slice) -> tuple[Any, ...]:
    """Return the rows of each array."""
    return tuple(part[rows] for part in arrays)


def clock_call(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its result."""
    begun = time.process_time()
    result = function(*args)
    return time.process_time() - begun, result


def shift_in_memory(values: Any) -> Any:
    """Return a copy of the values at another address in memory."""
    # by one entry, so that no cache line or register begins where it did before
    room = values.new_empty(values.numel() + SHIFT)
    return room[SHIFT:].view(values.shape).copy_(values)


def same_bits(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Return whether tensors are equal to the last bit, NaN and the sign of zero included."""
    return all(bits_of(a) == bits_of(b) for a, b in zip(first, second, strict=True))


def bits_of(values: Any) -> bytes:
    """Return the bytes of a tensor."""
    return bytes(values.cpu().contiguous().numpy().tobytes())
