"""Facts that a run infers from the samples of all clients, and the keys of [data] that state them instead.

A guarantee of privacy is for the data after inference; the notes of a run say what was inferred.
"""

from typing import NamedTuple


class Inference(NamedTuple):
    """A fact inferred from all samples, in words, and the key of [data] that states it instead, if there is one."""

    statement: str
    key: str = ""


CLASSES = Inference("the classes of the labels are those that occur in the samples of all clients", "classes")
COLUMNS = Inference("the number of features is the largest index that occurs in the samples of all clients", "columns")
BASE = Inference("indices count from 0 if an index 0 occurs in the samples of all clients", "zero_based")
KINDS = Inference("which columns hold texts is found from the cells of all clients")
HEADER = Inference("that the first line is a header, or none, is found from two lines, which may be samples", "header")
MARK = Inference("the mark between cells is found from the first line, which is a sample")
