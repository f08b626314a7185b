"""Blocks of CSR samples of which the compiled kernel makes matrices of second derivatives."""

import numpy as np

from mpifed.core.symmetric import unpack
from mpifed.core.typing import Array
from mpifed.data.compiled.compiling import kernel
from mpifed.data.sparse_block import SparseBlock, canonical


class CompiledSparseBlock(SparseBlock):
    """A block whose nonzeros the compiled kernel reads; scores and gradients are scipy's, which are faster."""

    def gram(self, W: Array) -> Array:
        return unpack(self.packed_gram(W), self.n)

    def packed_gram(self, W: Array) -> Array:
        A = self.note("rows in order", lambda block: canonical(block.A))
        W = np.ascontiguousarray(W, A.dtype)
        return kernel(A.dtype, "pairs")(A.data, A.indices, A.indptr, W, self.n)
