"""What is inferred from the samples of all clients, and which key of [data] states it instead.

A guarantee of privacy is for the data after that, which a run says where something is inferred.
"""

from typing import NamedTuple


class Inferred(NamedTuple):
    """``told``: what follows from the samples of all clients, in words; ``key`` of [data] states it instead, if any."""

    told: str
    key: str = ""


CLASSES = Inferred("the classes of the labels are those that occur in the samples of all clients", "classes")
COLUMNS = Inferred("the number of features is the largest index that occurs in the samples of all clients", "columns")
BASE = Inferred("indices count from 0 if an index 0 occurs in the samples of all clients", "zero_based")
KINDS = Inferred("which columns hold texts is found from the cells of all clients")
HEADER = Inferred("that the first line is a header, or none, is found from two lines, which may be samples", "header")
MARK = Inferred("the mark between cells is found from the first line, which is a sample")
