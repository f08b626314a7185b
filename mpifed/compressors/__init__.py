"""Compressors by their classes: ``mpifed.compressors.TopK(k=8)``."""

from typing import TYPE_CHECKING

from mpifed.core.members import members

if TYPE_CHECKING:
    from mpifed.compressors.base import Identity as Identity
    from mpifed.compressors.rank import Rank as Rank
    from mpifed.compressors.rounding import Dither as Dither
    from mpifed.compressors.rounding import Natural as Natural
    from mpifed.compressors.sparse import RandK as RandK
    from mpifed.compressors.sparse import RandSeqK as RandSeqK
    from mpifed.compressors.sparse import TopK as TopK
else:
    __getattr__, __dir__ = members("mpifed.compressors", "mpifed.compressors.base:Compressor")
