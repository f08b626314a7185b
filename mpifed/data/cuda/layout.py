"""How the kernels of a GPU divide the work on a client among threads, and where they keep its numbers."""

from typing import NamedTuple

SHARED = 48 << 10  # bytes of shared memory that every device gives to a block of threads without being asked
CACHED = 64 << 10  # bytes of rows in global memory that are read a second time, from a cache
SUMS = 2048  # partial sums of scores at a time
SHORT = 32  # terms of a sum from which on it is divided
FEW = 16  # components of a gradient from which on there are threads enough
DEEP = 5  # levels of a tree of partial sums at most
WARP = 32
THREADS = 512  # of a block at most: each may use 128 registers


class Shape(NamedTuple):
    """A client: rows with the padding, features, classes (1: a linear model), and components of the model."""

    rows: int
    features: int
    classes: int
    model: int


class Layout(NamedTuple):
    """The first two decide the order of additions, and thus bits; the others do not."""

    lanes: int  # a score has 2^lanes partial sums
    parts: int  # a component of the gradient has 2^parts
    chunk: int  # rows at a time
    staged: bool  # whether the samples are in shared memory
    near: bool  # whether points and gradients are
    shared: int  # numbers in shared memory
    threads: int
    span: int  # 2^span of them copy a row to shared memory


def layout(shape: Shape, itemsize: int) -> Layout:
    """The layout for clients of this shape, with numbers of so many bytes."""
    lanes, parts = order(shape)
    most = SHARED // itemsize
    wide = shape.classes * ((1 << lanes) + 1)  # numbers that a row of a chunk takes
    vectors = shape.model + (shape.model << parts)
    samples = shape.rows * (stride(shape.features) + 2)
    chunk = whole(min(SUMS // wide, shape.rows + (1 << parts) - 1), parts)
    staged = samples + vectors + chunk * wide <= most
    if not staged:
        chunk = whole(min(chunk, CACHED // (shape.features * itemsize)), parts)
    near = bool(parts) or vectors + chunk * wide <= most  # global memory has no room for partial sums
    shared = chunk * wide + near * vectors + staged * samples
    if shared > most:
        raise ValueError(f"{shape.classes} classes are too many for the shared memory of a GPU")
    busy = max((chunk * shape.classes) << lanes, shape.model << parts)
    threads = min(max(1 << busy.bit_length() - 1, WARP), THREADS)
    span = min(least(shape.features, 1), threads.bit_length() - 1)
    return Layout(lanes, parts, chunk, staged, near, shared, threads, span)


def fits(shape: Shape, itemsize: int) -> bool:
    """Whether the kernels can compute clients of this shape."""
    try:
        layout(shape, itemsize)
    except ValueError:
        return False
    return indexed(shape)


def indexed(shape: Shape) -> bool:
    """Whether indices of 32 bits count all partial sums and all numbers of a client."""
    return max(shape.rows * stride(shape.features), shape.rows * shape.classes, shape.model) < 1 << 32 - DEEP


def order(shape: Shape) -> tuple[int, int]:
    """The exponents of 2 of the partial sums of a score, and of a component of the gradient."""
    lanes = least(shape.features, SHORT)
    while lanes and shape.classes << lanes > SUMS:
        lanes -= 1
    parts = 0
    while parts < DEEP and shape.model << parts < FEW:
        parts += 1
    return lanes, parts


def least(terms: int, each: int) -> int:
    """The smallest exponent of 2, at most DEEP, so that so many partial sums have at most so many terms each."""
    return min((-(-terms // each) - 1).bit_length(), DEEP)


def whole(rows: int, parts: int) -> int:
    """So many rows or fewer, but a multiple of 2^parts."""
    return max(rows >> parts, 1) << parts


def stride(features: int) -> int:
    """From a row in shared memory to the next: odd, so that the first numbers of rows are in different banks."""
    return features | 1
