"""Messages as bits: what a sender writes for each compressor, and what a receiver makes of it.

Written from the docstrings alone, so that ``bits`` can be compared with a length and ``compress`` with what arrives.
"""

import math

import numpy as np

from mpifed.core.streams import stream

WORD = {4: "u4", 8: "u8"}


class Bits:
    """A string of bits, written and read from the front."""

    def __init__(self):
        self.text, self.at = "", 0

    def put(self, value, width):
        assert 0 <= int(value) < 1 << width if width else int(value) == 0
        self.text += format(int(value), f"0{width}b") if width else ""

    def take(self, width):
        self.at += width
        return int(self.text[self.at - width : self.at], 2) if width else 0

    def put_numbers(self, values):
        for word in np.ascontiguousarray(values).view(WORD[values.itemsize]).tolist():
            self.put(word, 8 * values.itemsize)

    def take_numbers(self, count, dtype):
        words = [self.take(8 * dtype.itemsize) for _ in range(count)]
        return np.array(words, WORD[dtype.itemsize]).view(dtype)


def width(count):
    """Bits of a number 0 … count − 1."""
    return math.ceil(math.log2(count))


def exact(sent):
    text = Bits()
    text.put_numbers(sent)
    return text, text.take_numbers(len(sent), sent.dtype)


def sparse(sent, heads, width, places):
    """``heads``, whole numbers of so many bits, and then the numbers in the ``places`` that follow from them."""
    text = Bits()
    for head in heads:
        text.put(head, width)
    text.put_numbers(sent[places(heads)])
    received = np.zeros_like(sent)
    where = places([text.take(width) for _ in heads])
    received[where] = text.take_numbers(len(where), sent.dtype)
    return text, received


def through_sparse(name, x, sent, k, rng):
    """``rng`` is the client's generator as it was before."""
    N = len(x)
    if k == N:
        return exact(sent)
    if name == "topk":
        chosen = sorted(sorted(range(N), key=lambda j: (-abs(x[j]), j))[:k])
        return sparse(sent, chosen, width(N), lambda heads: heads)
    if name == "randseqk":
        return sparse(sent, [int(rng.integers(N))], width(N), lambda heads: [(heads[0] + j) % N for j in range(k)])

    def drawn(heads):
        return np.sort(stream(heads[0], "compression").choice(N, k, replace=False, shuffle=False))

    return sparse(sent, [int(rng.integers(1 << 64, dtype=np.uint64))], 64, drawn)


def through_natural(sent):
    """A sign and an exponent a number; exponent 0 is the number 0."""
    text, exponent, bias = Bits(), {4: 8, 8: 11}[sent.itemsize], {4: 127, 8: 1023}[sent.itemsize]
    for value in sent.tolist():
        text.put(math.copysign(1, value) < 0, 1)
        text.put(0 if value == 0 else math.frexp(value)[1] - 1 + bias, exponent)
    received = []
    for _ in sent:
        sign, code = text.take(1), text.take(exponent)
        received.append((-1) ** sign * (math.ldexp(1.0, code - bias) if code else 0.0))
    return text, np.array(received, sent.dtype)


def through_dither(sent, s, norm):
    text, unit = Bits(), (norm if norm > 0 else norm.dtype.type(1)) / s
    text.put_numbers(np.array([norm]))
    for value in sent:
        text.put(np.signbit(value), 1)
        text.put(np.rint(abs(value) / unit), width(s + 1))
    (norm,) = text.take_numbers(1, sent.dtype)
    unit, received = (norm if norm > 0 else norm.dtype.type(1)) / s, []
    for _ in sent:
        sign, level = text.take(1), text.take(width(s + 1))
        received.append(np.copysign(sent.dtype.type(level) * unit, -1 if sign else 1))
    return text, np.array(received, sent.dtype)


def through_uniform(sent, b, r):
    """The largest number, and 2^b levels from −r to r."""
    text, highest = Bits(), 2**b - 1
    unit = (2 * r if r > 0 else r.dtype.type(1)) / highest
    text.put_numbers(np.array([r]))
    for value in sent:
        text.put(np.rint((value + r) / unit), b)
    (r,) = text.take_numbers(1, sent.dtype)
    received = [sent.dtype.type(text.take(b)) * unit - r for _ in sent]
    return text, np.array(received, sent.dtype)


def through_rank(H, r):
    """√|λ| v and a sign for the r leading eigenvalues of H (n, n)."""
    n, text = len(H), Bits()
    if r >= n:
        return exact(H[np.triu_indices(n)])
    values, vectors = np.linalg.eigh(H)
    for j in sorted(range(n), key=lambda j: -abs(values[j]))[:r]:
        text.put(values[j] < 0, 1)
        text.put_numbers(np.sqrt(abs(values[j])) * vectors[:, j])
    received = np.zeros((n, n), H.dtype)
    for _ in range(r):
        sign = -1 if text.take(1) else 1
        u = text.take_numbers(n, H.dtype)
        received += sign * np.outer(u, u)
    return text, received[np.triu_indices(n)]
