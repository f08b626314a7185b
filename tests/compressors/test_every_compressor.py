"""Every compressor: its error is as small as it says, its mean is right, and its bits are those of a real message."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpifed import UserError
from mpifed.compressors.sparse import TopK, find_largest
from mpifed.extend import Compressor, stream
from tests.compressors import codec

MANY = 600  # draws of an expectation


def build(name, **options) -> Compressor:
    return Compressor.build({"name": name, **options}, "algorithm.compressor")


OPTIONS = {
    "identity": [{}],
    "topk": [{"k": 1}, {"k": 3}, {"k": "0.5n"}, {"k": 10**6}],
    "randk": [{"k": 1}, {"k": 3}, {"k": "0.5n"}, {"k": 10**6}],
    "randseqk": [{"k": 1}, {"k": 3}, {"k": "0.5n"}, {"k": 10**6}],
    "natural": [{}],
    "uniform": [{"b": 1}, {"b": 3}],
    "dither": [{"s": 1}, {"s": 4}, {"s": 1, "norm": "largest"}, {"s": 3, "norm": "largest"}],
    "rank": [{"r": 1}, {"r": 2}, {"r": 100}],
}
ALL = [pytest.param(name, options, id=f"{name}-{options}") for name, some in OPTIONS.items() for options in some]
VECTORS = [case for case in ALL if case.values[0] != "rank"]
NUMBERS = st.one_of(
    st.just(0.0),
    st.integers(-3, 3).map(float),  # ties
    st.floats(-1e6, 1e6, width=32, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-6),
)


def rows_of(lengths):
    return st.sampled_from(lengths).flatmap(
        lambda N: st.lists(st.lists(NUMBERS, min_size=N, max_size=N), min_size=1, max_size=3).map(np.array)
    )


def rngs(count, seed=0):
    return lambda: [stream(seed, "compression", i) for i in range(count)]


def draws():
    """One generator for many rows: their draws are independent, and it is made once."""
    return [stream(0, "compression")] * MANY


def square(rows, symmetric):
    """‖x‖² of each row; of a packed matrix that of Frobenius, written out."""
    return (unpacked(rows) ** 2).sum(axis=(-2, -1)) if symmetric else (rows**2).sum(axis=-1)


def unpacked(rows):
    n = int((math.sqrt(8 * rows.shape[-1] + 1) - 1) / 2)
    H = np.zeros((*rows.shape[:-1], n, n), rows.dtype)
    i, j = np.triu_indices(n)
    H[..., i, j] = H[..., j, i] = rows
    return H


def all_places(compressor, N, symmetric):
    """Every choice of places that a sparse compressor can make, all of the same probability."""
    k = compressor.count(N, symmetric)
    if compressor.label() == "randk":
        return [list(places) for places in itertools.combinations(range(N), k)]
    return [sorted((start + j) % N for j in range(k)) for start in range(N)] if k < N else [list(range(N))]


def test_the_tests_know_every_compressor():
    assert OPTIONS.keys() == Compressor.choices.keys()


CONTRACTIVE = [case for case in ALL if build(case.values[0], **case.values[1]).delta(6, True) is not None]


@pytest.mark.parametrize(("name", "options"), [case for case in CONTRACTIVE if case.values[0] != "natural"])
@settings(deadline=None, max_examples=16)
@given(rows=rows_of((1, 3, 6, 10)), symmetric=st.booleans())
def test_a_contractive_compressor_contracts(name, options, rows, symmetric):
    """Where C draws nothing, on every message; natural, which draws, in the test of the mean below."""
    symmetric = symmetric or name == "rank"
    C = build(name, **options)
    error = square(C.compress(rows, rngs(len(rows)), symmetric) - rows, symmetric)
    assert (error <= (1 - C.delta(rows.shape[1], symmetric)) * square(rows, symmetric) * (1 + 1e-12) + 1e-18).all()


@pytest.mark.parametrize("name", ["randk", "randseqk"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("k", [1, 2, "0.7n", 6])
def test_over_all_choices_of_places_the_mean_is_the_message_and_the_error_is_omega(name, symmetric, k):
    C, N = build(name, k=k), 6
    x = np.array([1.0, -2.0, 0.5, 0.0, 3.0, -0.25])
    sent = np.zeros((0, N))
    for places in all_places(C, N, symmetric):
        one = np.zeros(N)
        one[places] = x[places] * C.factor(N, symmetric)
        sent = np.vstack([sent, one])
    assert sent.mean(axis=0) == pytest.approx(x, abs=1e-14)
    assert square(sent - x, symmetric).mean() == pytest.approx(C.omega(N, symmetric) * square(x, symmetric), abs=1e-12)
    found = C.compress(np.tile(x, (300, 1)), rngs(300), symmetric)
    assert {tuple(row) for row in found} == {tuple(row) for row in sent}  # every choice comes up, and no other


@pytest.mark.parametrize(("name", "options"), VECTORS)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_an_unbiased_compressor_has_the_right_mean_and_an_error_of_at_most_omega(name, options, symmetric, dtype):
    C = build(name, **options)
    omega = C.omega(6, symmetric)
    if omega is None:
        assert name == "topk"
        return
    for x in [[1.0, -2.0, 0.5, 0.0, 3.0, -0.75], [1.0] * 6, [1.3, 0, 0, 0, 0, 0], [0.1, 0.1, 1, 0.1, 1.5, 0.1]]:
        rows = np.tile(np.array(x, dtype), (MANY, 1))
        error = (C.compress(rows, draws, symmetric) - rows).astype(float)
        away = square(error, symmetric)
        total = float(square(rows[:1].astype(float), symmetric)[0])
        assert away.mean() <= omega * total * (1 + 1e-6) + 5 * away.std() / math.sqrt(MANY)
        scale = np.sqrt((error**2).mean(axis=0) / MANY)
        assert (np.abs(error.mean(axis=0)) <= 5 * scale + 1e-6).all()


@pytest.mark.parametrize(("norm", "s"), [("euclidean", 1), ("euclidean", 4), ("largest", 1), ("largest", 2)])
def test_the_omega_of_dithering_is_the_worst_case_and_not_more(norm, s):
    """The variance Σ (u − l/s)((l + 1)/s − u) of the levels, over many vectors; at the worst of them it is ω."""
    C, N = build("dither", s=s, norm=norm), 20
    omega = C.omega(N)

    def ratio(x):
        u = np.abs(x) / (np.linalg.norm(x) if norm == "euclidean" else np.abs(x).max())
        low = np.floor(u * s + 1e-12) / s
        return float(((u - low) * (low + 1 / s - u)).sum() / (u**2).sum())

    rng = np.random.default_rng(0)
    assert max(ratio(rng.standard_normal(N) * rng.random(N) ** rng.integers(9)) for _ in range(2000)) <= omega + 1e-12
    if norm == "largest":
        ratios = [ratio(np.array([1.0] + [u] * (N - 1))) for u in np.linspace(1e-3, 1, 4000)]
        assert max(ratios) == pytest.approx(omega, rel=1e-4)
    elif math.sqrt(N) >= 2 * s:
        assert ratio(np.ones(N)) == pytest.approx(omega)


@pytest.mark.parametrize(("name", "options"), ALL)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(deadline=None, max_examples=8)
@given(rows=rows_of((1, 3, 6, 10)), symmetric=st.booleans(), seed=st.integers(0, 100))
def test_a_message_has_exactly_its_bits_and_the_receiver_has_the_same_array(
    name, options, dtype, rows, symmetric, seed
):
    symmetric = symmetric or name == "rank"
    rows = rows.astype(dtype)
    C, N = build(name, **options), rows.shape[1]
    sent = C.compress(rows, rngs(len(rows), seed), symmetric)
    assert sent.dtype == dtype
    for x, one, rng in zip(rows, sent, rngs(len(rows), seed)(), strict=True):
        if name in ("topk", "randk", "randseqk"):
            text, received = codec.through_sparse(name, x, one, C.count(N, symmetric), rng)
        elif name == "dither":
            text, received = codec.through_dither(one, C.s, C.norms(np.abs(x)[None], symmetric)[0])
        elif name == "uniform":
            text, received = codec.through_uniform(one, C.b, np.abs(x).max())
        elif name == "rank":
            text, received = codec.through_rank(unpacked(x), C.r)
        else:
            text, received = {"identity": codec.exact, "natural": codec.through_natural}[name](one)
        assert len(text.text) == text.at == C.bits(N, rows.itemsize, symmetric)
        if name == "rank":  # sums of products may differ in the last bits
            most = float(np.abs(x).max()) * (1e-5 if dtype == np.float32 else 1e-13)
            assert received == pytest.approx(one, rel=0, abs=most)
        else:
            assert np.array_equal(received, one)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_a_message_depends_on_its_own_row_alone_zeros_stay_zeros_and_what_is_not_finite_ends_the_run(name, options):
    """The rows of a block together are the rows one by one, so no result depends on the blocks or on the ranks."""
    C, symmetric = build(name, **options), name == "rank"
    rows = stream(3, "data").standard_normal((7, 15))
    together = C.compress(rows, rngs(7), symmetric)
    for i in range(7):
        one = C.compress(rows[i : i + 1], lambda i=i: [stream(0, "compression", i)], symmetric)
        assert np.array_equal(together[i : i + 1], one)
    assert not C.compress(np.zeros((2, 10)), rngs(2), symmetric).any()
    rows = np.ones((3, 15))
    rows[1, 4], rows[2, 0] = np.nan, np.inf
    sent = C.compress(rows, rngs(3), symmetric)
    assert np.isfinite(sent).all(axis=1).tolist() == [True, False, False]


@pytest.mark.parametrize(("name", "options"), ALL)
def test_a_scaled_compressor_is_contractive(name, options):
    """a C with (a, δ) = contraction(N): E‖aC(x) − x‖² <= (1 − δ)‖x‖², over many draws."""
    C, symmetric = build(name, **options), name == "rank"
    a, delta = C.contraction(10, symmetric)
    rows = np.tile(stream(1, "data").standard_normal(10), (MANY, 1))
    away = square(a * C.compress(rows, draws, symmetric) - rows, symmetric)
    total = float(square(rows[:1], symmetric)[0])
    assert away.mean() <= (1 - delta) * total * (1 + 1e-9) + 5 * away.std() / math.sqrt(MANY)
    assert 0 < delta <= 1


@pytest.mark.parametrize("name", ["topk", "randk", "randseqk"])
def test_k_is_a_number_or_a_multiple_of_n(name):
    assert build(name, k=8).count(100) == 8
    assert build(name, k="0.1n").count(25) == 3  # rounded up
    assert build(name, k="8n").count(5050, symmetric=True) == 800  # the order of the matrix is 100
    assert build(name, k="8n").count(5050) == build(name, k="9" * 400 + "n").count(5050) == 5050  # at most all
    assert build(name, k=".5n").count(4) == 2


@pytest.mark.parametrize("k", [0, -1, "n8", "8", "0n", "-1n", "8 n", "", 0.1, True, [1]])
def test_other_k_are_refused(k):
    text = ": k = .* is wrong: it must be" if type(k) in (int, str) else ".k = .* is wrong"
    with pytest.raises(UserError, match=f"algorithm.compressor{text}"):
        build("topk", k=k)


def test_rank_is_for_matrices_only_and_a_packed_matrix_has_a_triangle_of_numbers():
    with pytest.raises(UserError, match="for symmetric matrices"):
        build("rank").compress(np.ones((2, 6)), list)
    with pytest.raises(UserError, match="5 numbers are no packed symmetric matrix"):
        build("rank").bits(5, 8, symmetric=True)


@settings(deadline=None)
@given(
    rows=st.integers(1, 30).flatmap(
        lambda N: st.lists(st.lists(st.integers(0, 4), min_size=N, max_size=N), min_size=1, max_size=5)
    ),
    share=st.floats(0.01, 1),
)
def test_of_equal_numbers_the_first_are_taken(rows, share):
    sizes = np.array(rows, float)
    k = max(1, int(share * sizes.shape[1]))
    expected = [sorted(np.argsort(-row, kind="stable")[:k]) for row in sizes]
    assert find_largest(sizes, k).tolist() == expected


def test_messages_of_any_length_are_cut_into_pieces_without_a_trace_stay_and_numbers_that_are_none_have_places():
    rows = np.random.default_rng(0).integers(-50, 50, (9, 20000)).astype(float)
    expected = [sorted(np.argsort(-np.abs(row), kind="stable")[:17]) for row in rows]
    assert TopK(k=17).places(rows, list).tolist() == expected
    for k in (1, 3):
        assert find_largest(np.array([[np.nan, 1.0, 2.0, np.nan]]), k).shape == (1, k)
    rows = np.arange(12.0).reshape(2, 6)
    before = rows.copy()
    sent = TopK(k=2).compress(rows, list)
    assert sent.tolist() == [[0, 0, 0, 0, 4, 5], [0, 0, 0, 0, 10, 11]]
    assert np.array_equal(rows, before)
