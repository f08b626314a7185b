"""What one thread of a GPU's kernel does for a linear model: its share of scores, residuals and gradient of a client.

Indices are numbers of 32 bits without sign: numba does not check whether these count from the end, and a GPU adds them
in one instruction. Where they could grow too large, numba makes products of 64 bits.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.cuda.extending import register_jitable

from mpifed.data.cuda.arithmetic import exponential, sigmoid, times

LINEAR = 0  # what is made of scores z and labels b: z − b …
LOGISTIC = 1  # … 1/(1 + e^−z) − b …
SOFTMAX = 2  # … or softmax(z) − [k = b]
RIDGE = 0  # regularisers: s‖x‖²/2 …
BOUNDED = 1  # … or s/2 Σ x²/(1 + x²)


class Sizes(NamedTuple):
    """Numbers that are the same for all clients, without sign."""

    rows: Any  # D of a client, with the padding
    features: Any
    classes: Any  # scores of a row
    cut: Any  # classes · features: the components of a model that are regularised
    model: Any  # components of a model
    lanes: Any  # exponent of 2
    parts: Any  # exponent of 2
    chunk: Any  # rows, a multiple of 2^parts
    stride: Any  # from a row to the next where samples are in shared memory
    span: Any  # 2^span threads copy a row there
    across: Any  # 2^span − 1
    near: Any  # whether points and gradients are in shared memory
    residual: Any
    penalty: Any
    steps: Any
    own_x: Any  # from a client's numbers to the next one's: 0 where all clients have the same
    own_gamma: Any
    own_correction: Any
    own_anchor: Any
    own_pull: Any
    corrected: Any  # whether there is a correction
    pulled: Any
    scored: Any  # scores of a client that are written
    picked: Any  # whether clients are those at certain positions among the samples


class Samples(NamedTuple):
    """Features, labels and weights of rows of all clients, and factors of the regulariser of those computed, flat."""

    A: Any
    b: Any
    w: Any
    s: Any


class Vectors(NamedTuple):
    """What a launch computes with, flat; what it does not need is not read."""

    x: Any  # where clients begin
    gamma: Any
    correction: Any
    anchor: Any
    pull: Any
    Z: Any  # scores, written where they are wanted
    out: Any  # gradients, or models after the steps
    room: Any  # gradients of steps, or points of gradients, where shared memory is too small for them


class Client(NamedTuple):
    """What a block of threads works on, wherever it is kept."""

    t: Any  # number of the thread
    T: Any  # threads of the block
    a: Any  # rows
    b: Any
    w: Any
    factor: Any  # of the regulariser
    stride: Any  # from a row to the next
    x: Any
    g: Any  # 2^parts partial sums of each component of the gradient
    p: Any  # 2^lanes partial sums of each score of a chunk
    r: Any  # residuals of a chunk
    z: Any  # scores for the caller, or nothing


@register_jitable
def scores(s: Any, c: Any, first: Any, count: Any) -> None:
    """c.p: partial sums of ⟨a, x_k⟩ for ``count`` rows a from ``first`` on and all classes k."""
    one = np.uint32(1)
    apart = np.uint32(one << s.lanes)
    zero = c.a.dtype.type(0)
    item = c.t
    while item < (count * s.classes) << s.lanes:
        row = np.uint32(item >> s.lanes)
        x = np.uint32(item & (apart - one))
        a = x
        if s.classes > one:
            x += (row % s.classes) * s.features
            row = np.uint32(row // s.classes)
        terms = np.uint32((s.features - a + apart - one) >> s.lanes)
        a += (first + row) * c.stride
        if apart == one:  # said twice, so that the compiler knows the distance
            c.p[item] = dot(zero, (c.a, a, one), (c.x, x, one), terms)
        else:
            c.p[item] = dot(zero, (c.a, a, apart), (c.x, x, apart), terms)
        item = np.uint32(item + c.T)


@register_jitable
def dot(total: Any, left: Any, right: Any, terms: Any) -> Any:
    """total + Σ_j u_j v_j in order, the first term first, where (array, index, step) says what u and v are."""
    u, i, di = left
    v, k, dk = right
    while terms > np.uint32(0):
        total += times(u[i], v[k])
        i += di
        k += dk
        terms = np.uint32(terms - np.uint32(1))
    return total


@register_jitable
def residuals(s: Any, c: Any, first: Any, count: Any) -> None:
    """c.r: ∂ℓ/∂z times the weights of the rows of a chunk, for all classes; c.z: their scores."""
    one = c.x.dtype.type(1)
    row = c.t
    while row < count:
        if s.residual == np.uint32(SOFTMAX):
            spread(s, c, row, first)
        else:
            z = c.p[row << s.lanes]
            mean = z
            if s.residual == np.uint32(LOGISTIC):
                mean = sigmoid(z, one)
            c.r[row] = times(mean - c.b[first + row], c.w[first + row])
            if s.scored:
                c.z[first + row] = z
        row = np.uint32(row + c.T)


@register_jitable
def spread(s: Any, c: Any, row: Any, first: Any) -> None:
    """The same for a row of several classes: softmax(z) − [k = b]."""
    at = row * s.classes
    out = (first + row) * s.classes
    top = c.x.dtype.type(-np.inf)
    k = np.uint32(0)
    while k < s.classes:
        z = c.p[(at + k) << s.lanes]
        if s.model > s.cut:
            z += c.x[s.cut + k]
        c.r[at + k] = z
        top = top if top > z else z
        if s.scored:
            c.z[out + k] = z
        k = np.uint32(k + np.uint32(1))
    total = c.x.dtype.type(0)
    k = np.uint32(0)
    while k < s.classes:
        e = exponential(c.r[at + k] - top)
        c.r[at + k] = e
        total += e
        k = np.uint32(k + np.uint32(1))
    label = np.uint32(c.b[first + row])
    k = np.uint32(0)
    while k < s.classes:
        share = c.r[at + k] / total
        if k == label:
            share -= c.x.dtype.type(1)
        c.r[at + k] = times(share, c.w[first + row])
        k = np.uint32(k + np.uint32(1))


@register_jitable
def pull(s: Any, c: Any, first: Any, count: Any) -> None:
    """c.g: partial sums of A_iᵀ r over the rows of a chunk, added to those of the chunks before it."""
    one = np.uint32(1)
    apart = np.uint32(one << s.parts)
    item = c.t
    while item < s.model << s.parts:
        total = c.a.dtype.type(0)
        if first > np.uint32(0):
            total = c.g[item]
        row = np.uint32(item & (apart - one))
        k = np.uint32(item >> s.parts)
        if k < s.cut:
            r = row * s.classes
            if s.classes > one:
                r += k // s.features
                k = np.uint32(k % s.features)
            if row < count:
                terms = np.uint32((count - row + apart - one) >> s.parts)
                a = (first + row) * c.stride + k
                total = dot(total, (c.a, a, c.stride << s.parts), (c.r, r, s.classes << s.parts), terms)
        else:
            while row < count:
                total += c.r[row * s.classes + k - s.cut]
                row = np.uint32(row + apart)
        c.g[item] = total
        item = np.uint32(item + c.T)


@register_jitable
def regularised(s: Any, c: Any, k: Any) -> Any:
    """Component k of the gradient with the regulariser; 0 times infinity is not 0, so that no factor adds nothing."""
    g = c.g[k << s.parts]
    x = c.x[k]
    if k < s.cut and c.factor != 0:
        if s.penalty == np.uint32(BOUNDED):
            below = c.x.dtype.type(1) + times(x, x)
            x = x / times(below, below)
        g += times(c.factor, x)
    return g
