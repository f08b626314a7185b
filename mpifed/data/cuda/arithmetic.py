"""What the GPU's kernels compute with: arrays, products rounded by themselves, and e^t made of sums and products.

A compiler may turn a product and a sum into one operation that rounds once, and the libraries of GPUs compute e^t in
ways of their own. With the functions here neither happens: all bits follow from sums, products and quotients, each
rounded as IEEE 754 says, on a device as in numba's simulator on a CPU.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda import libdevice
from numba.cuda.extending import overload, register_jitable
from numba.cuda.np.numpy_support import carray

LONGEST = 1 << 60  # numbers of an array: no kernel asks for its end
LEAST = {np.float32: -87.0, np.float64: -708.0}  # the least t of which e^t is a normal number, or nearly
LN_2 = {  # ln 2 in two parts: products of the first with whole numbers k, as they come up, are exact
    np.float32: (0.693359375, -2.12194440054690583e-4),
    np.float64: (6.93147180369123816e-1, 1.90821492927058770e-10),
}
TERMS = {np.float32: 8, np.float64: 14}  # of the Taylor series of e^u, as |u| <= ln(2)/2


def times(a: Any, b: Any) -> Any:
    """a·b, rounded."""
    return a * b


@overload(times, strict=False)
def _times(a: Any, b: Any) -> Any:
    product = libdevice.fmul_rn if a.bitwidth == 32 else libdevice.dmul_rn
    return lambda a, b: product(a, b)


def view(pointer: Any) -> Any:
    """The array that begins at a pointer; the simulator has the array itself."""
    return pointer


@overload(view, strict=False, inline="always")
def _view(pointer: Any) -> Any:
    return lambda pointer: carray(pointer, (LONGEST,))


def formula(number: Any) -> Callable[[Any], Any]:
    """The function e^t, t <= 0, for numbers of a type: t = k ln 2 + u, and e^t = 2^k e^u."""
    least = number(LEAST[number])
    high = number(LN_2[number][0])
    low = number(LN_2[number][1])
    inverse = number(1 / math.log(2))
    half = number(0.5)
    first, *others = (number(1 / math.factorial(k)) for k in range(TERMS[number] - 1, -1, -1))
    series = tuple(others)

    def power(t: Any) -> Any:
        u = t if t > least else least
        k = np.int32(times(u, inverse) - half)
        u = u - times(number(k), high) - times(number(k), low)
        e = first
        for c in series:
            e = times(e, u) + c
        e = number(math.ldexp(e, int(k)))
        return e if t == t else t

    return power


POWERS = {number: formula(number) for number in LEAST}


def exponential(t: Any) -> Any:
    """e^t for t <= 0, to about a unit of the last place; it stays at its value at LEAST below that."""
    return POWERS[type(t)](t)


@overload(exponential, strict=False)
def _exponential(t: Any) -> Any:
    power = register_jitable(POWERS[np.float32 if t.bitwidth == 32 else np.float64])
    return lambda t: power(t)


@register_jitable
def sigmoid(z: Any, one: Any) -> Any:
    """1/(1 + e^−z), where ``one`` is 1 as such a number; no step overflows at any z."""
    e = exponential(-abs(z))
    return (one if z >= 0 else e) / (one + e)
