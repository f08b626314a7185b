from mpifed.compressors.compressor import Identity as Identity
from mpifed.compressors.rank import Rank as Rank
from mpifed.compressors.rounding import Dither as Dither
from mpifed.compressors.rounding import Natural as Natural
from mpifed.compressors.rounding import UniformQuantization as UniformQuantization
from mpifed.compressors.sparse import RandK as RandK
from mpifed.compressors.sparse import RandSeqK as RandSeqK
from mpifed.compressors.sparse import TopK as TopK
