"""Kernels compiled by numba: whether that is possible here, the cache of machine code, and the products with them."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import reason
from mpifed.core.symmetric import unpack
from mpifed.core.typing import Array
from mpifed.kernels.plan import PAD
from mpifed.kernels.products import BlockSamples, DenseProducts
from mpifed.kernels.sparse_products import SparseProducts, to_canonical

MODULES = {"one_pass": "compiled_pass", "pairs": "compiled_grams", "grams": "compiled_grams"}  # kernel -> module
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}

NONE = 0  # the mean μ(z) in one_pass: none …
IDENTITY = 1  # … z itself …
LOGISTIC = 2  # … or 1/(1 + e^−z)

Kernel = Callable[..., Any]

loaded_kernels: dict[tuple[str, np.dtype[Any]], Kernel] = {}  # the kernels of this process, by name and dtype
SMALL = 1 << 18  # bytes of a client's samples up to which BLAS is slower; fixed, because the last bits depend on it


def has_numba() -> bool:
    """Return whether numba is installed, without importing it."""
    return importlib.util.find_spec("numba") is not None


def compile_failure() -> str | None:
    """Return the reason why numba cannot compile here, or None; imports numba."""
    try:
        import numba
    except Exception as error:  # a numba that does not fit this numpy raises errors of many types
        return reason(error).splitlines()[0] if str(error) else type(error).__name__
    return "NUMBA_DISABLE_JIT is set" if numba.config.DISABLE_JIT else None


def numba_version() -> str:
    """Return the version of numba."""
    return importlib.metadata.version("numba")


def get_kernel(dtype: np.dtype[Any], which: str = "one_pass") -> Kernel:
    """Return a compiled kernel for a dtype: loaded from the cache, or compiled and put there."""
    # The key is the dtype itself: each local step of each block asks, and numpy takes 4 µs to make a dtype's name.
    if (which, dtype) not in loaded_kernels:
        loaded_kernels[which, dtype] = compile_kernel(dtype.name, cache_folder(dtype.name, which), which)
    return loaded_kernels[which, dtype]


def compile_kernel(name: str, cache: Path | None, which: str) -> Kernel:
    """Load or compile a kernel for the dtype ``name`` in the folder ``place``; None: for this process only."""
    import numba

    module = importlib.import_module(f"mpifed.kernels.{MODULES[which]}")
    function = getattr(module, which)
    signatures = getattr(module, f"{which}_types")(name)
    before = numba.config.CACHE_DIR
    with warnings.catch_warnings(action="ignore"):
        if cache is not None:
            try:
                numba.config.CACHE_DIR = str(cache)
                return numba.njit(signatures, cache=True, **OPTIONS)(function)
            except Exception:  # a full disk or a damaged file: the cache only saves time and must not end a run
                pass
            finally:
                numba.config.CACHE_DIR = before
        return numba.njit(signatures, **OPTIONS)(function)


def cache_folder(name: str, which: str = "one_pass") -> Path | None:
    """Return the folder of a kernel's machine code for a dtype, or None if it cannot be written.

    Each folder is for one source, one numba, one processor model and one dtype, so that processes that compile at the
    same time write the same files. It is in NUMBA_CACHE_DIR or in the user's cache.
    """
    import numba
    from llvmlite import binding

    facts = [numba.__version__, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    facts += [str(numba.config.CPU_NAME), str(numba.config.CPU_FEATURES)]
    # Kernels of both modules are built of the loops in ``compiled_pass``.
    facts += [
        Path(__file__).with_name(f"{module}.py").read_text("utf-8") for module in (MODULES[which], "compiled_pass")
    ]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    path = cache_root() / f"{name}-{digest}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return None
    return path


def cache_root() -> Path:
    """Return the folder of all compiled kernels: in NUMBA_CACHE_DIR, in XDG_CACHE_HOME or in ~/.cache."""
    if numba_cache := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numba_cache) / "mpifed"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache if os.path.isabs(cache) else os.devnull) / "mpifed" / "kernels"


def compile_note(dtype: np.dtype[Any], which: str = "one_pass") -> str | None:
    """Return the note for users before a kernel for a dtype is compiled; None if it need not be."""
    if (which, dtype) in loaded_kernels or is_cached(dtype.name, which):
        return None
    path = cache_folder(dtype.name, which)
    where = f"kept in {path}" if path else f"each run does it, for {cache_root()} cannot be written"
    return f"the kernels are compiled for this processor, which takes a second or two; {where}"


def is_cached(name: str, which: str = "one_pass") -> bool:
    """Return whether a kernel's machine code for a dtype is in the cache."""
    path = cache_folder(name, which)
    return path is not None and any(path.rglob("*.nbi"))


class CompiledProducts(DenseProducts):
    """Products with A (c, D, n) in one pass over the samples; points have the type of the features."""

    def batch(self, block: BlockSamples, picks: Array, w: Array) -> tuple[Any, Array, Array, Array | None]:
        # The kernel takes four rows at a time, so rows of weight 0 fill a mini-batch up.
        if short := -picks.shape[1] % PAD:
            picks, w = (np.concatenate([part, np.zeros((len(part), short), part.dtype)], 1) for part in (picks, w))
        return super().batch(block, picks, w)

    def matvec(self, block: BlockSamples, X: Array) -> Array:
        return one_pass(block, X, (block.b, block.w), None, NONE)[0]

    def one_pass(
        self, block: BlockSamples, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        return one_pass(block, X, (block.b, block.w), ridge, LOGISTIC if logistic else IDENTITY)

    def gram_product(self, block: BlockSamples, W: Array, V: Array) -> Array:
        # With labels 0 and weights W the slopes of least squares are w ⟨a, v⟩.
        no_labels = block.note("no labels", lambda block: np.zeros_like(block.b))
        return one_pass(block, V, (no_labels, W), None, IDENTITY)[1]

    def gram(self, block: BlockSamples, W: Array) -> Array:
        return unpack(self.packed_gram(block, W), block.n) if is_small(block) else super().gram(block, W)

    def packed_gram(self, block: BlockSamples, W: Array) -> Array:
        if not is_small(block):
            return super().packed_gram(block, W)
        return get_kernel(block.b.dtype, "grams")(block.A, np.ascontiguousarray(W, block.b.dtype))


class CompiledSparseProducts(SparseProducts):
    """Products with CSR samples: Gram matrices by a compiled kernel, scores and gradients by scipy, which is faster."""

    def gram(self, block: BlockSamples, W: Array) -> Array:
        return unpack(self.packed_gram(block, W), block.n)

    def packed_gram(self, block: BlockSamples, W: Array) -> Array:
        A = block.note("rows in order", lambda block: to_canonical(block.A))
        W = np.ascontiguousarray(W, A.dtype)
        return get_kernel(A.dtype, "pairs")(A.data, A.indices, A.indptr, W, block.n)


def is_small(block: BlockSamples) -> bool:
    """Return whether the samples of a client are so few that BLAS is slower."""
    return bool(block.b.shape[1] * block.n * block.b.itemsize <= SMALL)


def one_pass(
    block: BlockSamples, X: Array, qp: tuple[Array, Array], ridge: Array | None, mean: int
) -> tuple[Array, Array]:
    """Compute scores (c, D) and A_iᵀ((μ(z) − q) p) + ridge_i x_i (c, n) by kernels.one_pass, with ``qp`` = (q, p)."""
    if ridge is None:
        ridge = block.note("no ridge", lambda block: np.zeros((len(block), 1), block.b.dtype))
    points = np.ascontiguousarray(X if X.ndim == 2 else X[None], block.b.dtype)
    return get_kernel(block.b.dtype)(block.A, points, *qp, ridge, mean)
