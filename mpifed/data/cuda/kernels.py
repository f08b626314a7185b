"""Kernels of linear models for a GPU: one block of threads for each client, which adds in one fixed order.

The order depends on the numbers of features and classes alone. A score is a sum of 2^lanes partial sums, each over
every 2^lanes-th feature, and a component of a gradient one of 2^parts partial sums, each over every 2^parts-th row;
partial sums are added along a binary tree. Rows are taken in chunks, so that those in global memory are read the second
time from a cache. How many threads there are, where numbers are kept and how long a chunk is changes no bit.
"""

from typing import Any

import numpy as np
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import register_jitable

from mpifed.data.cuda.arithmetic import times, view
from mpifed.data.cuda.linear import Client, Samples, Sizes, Vectors, pull, regularised, residuals, scores


def gradients_staged(s: Any, samples: Any, vectors: Any, who: Any) -> None:
    """Scores and gradient of the client of this block, whose samples fit in shared memory."""
    a, v = arrays(samples, vectors)
    room = cuda.shared.array(0, a.A.dtype)
    gradients(s, v, staged(s, a, v.Z, room, whose(s, who)))


def gradients_placed(s: Any, samples: Any, vectors: Any, who: Any) -> None:
    """The same where they do not."""
    a, v = arrays(samples, vectors)
    room = cuda.shared.array(0, a.A.dtype)
    i = np.uint32(cuda.blockIdx.x)
    x = part(v.room, i, s.model)
    g = part(v.out, i, s.model)
    gradients(s, v, placed(s, a, v.Z, (room, x, g), whose(s, who)))


def steps_staged(s: Any, samples: Any, vectors: Any, who: Any) -> None:
    """Gradient steps of the client of this block, whose samples fit in shared memory."""
    a, v = arrays(samples, vectors)
    room = cuda.shared.array(0, a.A.dtype)
    steps(s, v, staged(s, a, v.Z, room, whose(s, who)))


def steps_placed(s: Any, samples: Any, vectors: Any, who: Any) -> None:
    """The same where they do not."""
    a, v = arrays(samples, vectors)
    room = cuda.shared.array(0, a.A.dtype)
    i = np.uint32(cuda.blockIdx.x)
    x = part(v.out, i, s.model)
    g = part(v.room, i, s.model)
    steps(s, v, placed(s, a, v.Z, (room, x, g), whose(s, who)))


@register_jitable
def arrays(samples: Any, vectors: Any) -> Any:
    """What the caller gave, as arrays."""
    a = Samples(view(samples.A), view(samples.b), view(samples.w), view(samples.s))
    v = Vectors(
        view(vectors.x),
        view(vectors.gamma),
        view(vectors.correction),
        view(vectors.anchor),
        view(vectors.pull),
        view(vectors.Z),
        view(vectors.out),
        view(vectors.room),
    )
    return a, v


@register_jitable
def whose(s: Any, who: Any) -> Any:
    """The position among the samples of the client of this block."""
    i = np.uint32(cuda.blockIdx.x)
    return np.uint32(view(who)[i]) if s.picked else i


@register_jitable
def gradients(s: Any, vectors: Any, c: Any) -> None:
    """out: ∇f_i(x_i); Z: scores."""
    i = np.uint32(cuda.blockIdx.x)
    begin(s, vectors, c)
    gradient(s, c)
    k = c.t
    while k < s.model:
        vectors.out[i * s.model + k] = regularised(s, c, k)
        k = np.uint32(k + c.T)


@register_jitable
def steps(s: Any, vectors: Any, c: Any) -> None:
    """out: w after the steps w ← w − γ_j (∇f_i(w) + correction_i + pull_i (w − anchor_i)), from w = x_i."""
    i = np.uint32(cuda.blockIdx.x)
    begin(s, vectors, c)
    j = np.uint32(0)
    while j < s.steps:
        gradient(s, c)
        k = c.t
        while k < s.model:
            g = regularised(s, c, k)
            if s.corrected:
                g += vectors.correction[i * s.own_correction + k]
            if s.pulled:
                g += times(vectors.pull[i * s.own_pull], c.x[k] - vectors.anchor[i * s.own_anchor + k])
            c.x[k] -= times(vectors.gamma[i * s.own_gamma + j], g)
            k = np.uint32(k + c.T)
        cuda.syncthreads()
        j = np.uint32(j + np.uint32(1))
    k = c.t
    while k < s.model:
        vectors.out[i * s.model + k] = c.x[k]
        k = np.uint32(k + c.T)


@register_jitable
def begin(s: Any, vectors: Any, c: Any) -> None:
    """c.x: where the client begins."""
    i = np.uint32(cuda.blockIdx.x)
    k = c.t
    while k < s.model:
        c.x[k] = vectors.x[i * s.own_x + k]
        k = np.uint32(k + c.T)
    cuda.syncthreads()


@register_jitable
def gradient(s: Any, c: Any) -> None:
    """c.g: A_iᵀ r_i at c.x, without the regulariser; component k is at k 2^parts."""
    first = np.uint32(0)
    while first < s.rows or first == np.uint32(0):  # once without rows, for a gradient of 0
        count = np.uint32(min(s.chunk, s.rows - first))
        scores(s, c, first, count)
        fold(c, c.p, count * s.classes, s.lanes)
        residuals(s, c, first, count)
        cuda.syncthreads()
        pull(s, c, first, count)
        first = np.uint32(first + s.chunk)
    fold(c, c.g, s.model, s.parts)


@register_jitable
def fold(c: Any, sums: Any, count: Any, level: Any) -> None:
    """Add up the 2^level partial sums of each of ``count`` numbers, along a tree; each ends at the first of its own."""
    one = np.uint32(1)
    h = level
    while h > np.uint32(0):
        h = np.uint32(h - one)
        half = np.uint32(one << h)
        cuda.syncthreads()
        item = c.t
        while item < count << h:
            place = ((item >> h) << level) + (item & (half - one))
            sums[place] += sums[place + half]
            item = np.uint32(item + c.T)
    cuda.syncthreads()


@register_jitable
def staged(s: Any, samples: Any, Z: Any, room: Any, i: Any) -> Any:
    """The client of this block, at position i of the samples, with all its numbers in shared memory."""
    t = np.uint32(cuda.threadIdx.x)
    T = np.uint32(cuda.blockDim.x)
    own = s.rows * s.stride
    a = room[:own]
    b = room[own : own + s.rows]
    w = room[own + s.rows : own + s.rows + s.rows]
    rest = room[own + s.rows + s.rows :]
    x = rest[: s.model]
    g = rest[s.model : s.model + (s.model << s.parts)]
    p = rest[s.model + (s.model << s.parts) :]
    r = p[(s.chunk * s.classes) << s.lanes :]
    z = part(Z, np.uint32(cuda.blockIdx.x), s.scored)
    c = Client(t, T, a, b, w, samples.s[np.uint32(cuda.blockIdx.x)], s.stride, x, g, p, r, z)
    row = np.uint32(t >> s.span)
    while row < s.rows:
        k = np.uint32(t & s.across)
        while k < s.features:
            a[row * s.stride + k] = samples.A[(i * s.rows + row) * s.features + k]
            k = np.uint32(k + s.across + np.uint32(1))
        row = np.uint32(row + (T >> s.span))
    item = t
    while item < s.rows:
        b[item] = samples.b[i * s.rows + item]
        w[item] = samples.w[i * s.rows + item]
        item = np.uint32(item + T)
    return c


@register_jitable
def placed(s: Any, samples: Any, Z: Any, kept: Any, i: Any) -> Any:
    """The same with its samples in global memory; so are x and g where shared memory is too small."""
    room, x, g = kept
    sums = (s.chunk * s.classes) << s.lanes
    p = room[:sums]
    r = room[sums : sums + s.chunk * s.classes]
    rest = room[sums + s.chunk * s.classes :]
    if s.near:
        x = rest[: s.model]
        g = rest[s.model :]
    a = part(samples.A, i, s.rows * s.features)
    b = part(samples.b, i, s.rows)
    w = part(samples.w, i, s.rows)
    t = np.uint32(cuda.threadIdx.x)
    T = np.uint32(cuda.blockDim.x)
    z = part(Z, np.uint32(cuda.blockIdx.x), s.scored)
    return Client(t, T, a, b, w, samples.s[np.uint32(cuda.blockIdx.x)], s.features, x, g, p, r, z)


@register_jitable(inline="always")  # functions that are not inlined cannot return a part of an array
def part(array: Any, i: Any, length: Any) -> Any:
    """The i-th of the rows of this length of a flat array."""
    return array[i * length : (i + np.uint32(1)) * length]


def signature(name: str) -> Any:
    """The types of the kernels for numbers of a type."""
    pointer = types.CPointer(getattr(types, name))
    sizes = types.NamedUniTuple(types.uint32, len(Sizes._fields), Sizes)
    given = [types.NamedUniTuple(pointer, len(kind._fields), kind) for kind in (Samples, Vectors)]
    return types.void(sizes, *given, types.CPointer(types.int64))
