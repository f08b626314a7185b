"""Each slip in a class of a user's own is one sentence that names the user's file and method, and exit code 2."""

import re

import pytest

from tests.contract.sentences import told, words

pytestmark = pytest.mark.usefixtures("here")

SMALL = ["run", "data.clients=6", "data.features=5", "rounds=2", "kernels=numpy", "-o", "out.h5"]
IDS = r"clients are numbered from 0 to 5$"
G = "^the client method gradient of slips.py"
PAIR = r"it must return \(new state, upload\), one row for each of the c clients$"
METHOD = {
    "join none": r"^join of slips.py returns None: it must return a NamedTuple of arrays",
    "join dict": r"^join of slips.py returns a dict of 1: it must return a NamedTuple",
    "join tuple": r"^join of slips.py returns a tuple of 1: it must return a NamedTuple",
    "join number": r"^join of slips.py returns a state whose field z is the number 0.0",
    "join rows": r"^join of slips.py returns a state whose field z is an array of shape \(\d, 5\), called for c = \d",
    "join complex": r"^join of slips.py returns a state whose field z is an array complex128 of shape",
    "join nan": r"^join of slips.py returns a state whose field z is not a number for client \d",
    "join list": r"^join of slips.py returns a state whose field z is a list of \d",
    "start none": r"^start of slips.py returns None: it must return a NamedTuple of arrays with the model x \(n,\)",
    "start array": r"^start of slips.py returns an array of shape \(5,\): it must return a NamedTuple",
    "start no x": r"^start of slips.py returns a state without a field x: it must return a NamedTuple",
    "start shape": r"^start of slips.py returns a state whose field x is .*\(6,\): the model has shape \(5,\)",
    "start text": r"^start of slips.py returns a state whose field x is an array <U1 .*: fields are arrays of real",
    "start number": r"^start of slips.py returns a state whose field x is the number 0.0: the model has shape \(5,\)",
    "to twice": r"^to= in a call of gradient names client 1 twice$",
    "to outside": rf"^to= in a call of gradient names client 99: {IDS}",
    "to negative": rf"^to= in a call of gradient names client -1: {IDS}",
    "to floats": r"^to= in a call of gradient is .*: clients are whole numbers from 0 to 5, or a mask",
    "to table": r"^to= in a call of gradient is .* of shape \(1, 2\): clients are whole numbers from 0 to 5",
    "to mask": r"^to= in a call of gradient is .* bool of shape \(7,\): a mask has one entry for each of the 6",
    "mask of": rf"^the array that fed.mask gets names client 6: {IDS}",
    "each short": r"^each= in a call of scaled is .*\(2,\): .* a row for each of the 3 clients that are called",
    "each of all": r"^each= in a call of scaled is .*\(7,\): .* a row for each of the 6 clients that are called",
    "each number": r"^each= in a call of scaled is .*: it must be an array with a row for each of the 2 clients",
    "of others": r"^of= names 2 clients, and it must name the 2 whose uploads fed.arrivals said are there",
    "of twice": r"^of= names client 1 twice$",
    "lambda": r"^round of slips.py calls '<lambda>' on clients, and Method has no such method: a client method is a",
    "function": r"^round of slips.py calls 'outside' on clients, and Method has no such method",
    "round none": r"^round of slips.py returns None: it must return a NamedTuple of arrays with the model x \(n,\)$",
    "round array": r"^round of slips.py returns an array of shape \(5,\): it must return a NamedTuple",
    "round other": r"^round of slips.py returns a state without a field x",
    "round shape": r"^round of slips.py returns a state whose field x is an array of shape \(1,\): the model has shape",
    "round complex": r"^round of slips.py returns a state whose field x is an array complex128",
    "sets": r"^round of slips.py fails in line \d+: AttributeError: immutable type: 'Method'; no attribute of a",
    "field": r"^round of slips.py fails in line \d+: AttributeError: 'Server' object has no attribute 'model'$",
    "arguments": rf"{G} fails in line \d+: TypeError: .* missing 1 required",
    "no method": r"^round of slips.py fails in line \d+: AttributeError: 'Method' object has no attribute 'gradeint'",
    "reply none": rf"{G} returns None: {PAIR}",
    "reply alone": rf"{G} returns an array of shape \(\d, 5\): {PAIR}",
    "reply three": rf"{G} returns a tuple of 3: {PAIR}",
    "reply list": rf"{G} returns a list of 2: {PAIR}",
    "reply state": rf"{G} returns an array .* as the new state, and a state is",
    "reply swapped": rf"{G} returns a Server of 1 as the new state, and a state",
    "upload list": rf"{G} returns a list of 1 as its upload, .*: {PAIR}",
    "upload number": rf"{G} returns the number 1.0 as its upload, .*: {PAIR}",
    "upload mean": rf"{G} returns an array .* as its upload, called for c = \d .*{PAIR}",
    "upload complex": rf"{G} returns an array complex128 of shape \(\d, 5\) as its",
    "upload text": rf"{G} returns an array <U1 of shape \(\d,\) as its upload",
    "upload part": rf"{G} returns the number 3.0 as its upload",
    "upload named": rf"{G} returns None as its upload",
    "state shape": rf"{G} returns a state whose field z is .* before it was .*\(\d, 5\)",
    "state none": rf"{G} returns a state whose field z is None",
    "state list": rf"{G} returns a state whose field z is a list",
    "state rows": rf"{G} returns a state whose field z is .*, called for c = \d clients",
    "client sets": rf"{G} fails in line \d+: AttributeError: .*; no attribute of a",
    "client fails": rf"{G} fails in line \d+: AttributeError: 'Local' object has no",
    "writes": r"^the client method gradient writes into an array that it received, .*slips.py, line \d+\)$",
}
OTHERS = {  # option of a study: slip -> sentence
    "algorithm=fedavg selection:Chosen": {
        "list": r"^selector of slips.py returns a list of 3: it must return a mpifed.Selector",
        "size": r"^selector of slips.py returns a selector of size 7: it must be a whole number from 1 to the 6",
        "half": r"^selector of slips.py returns a selector of size 2.5: it must be a whole number",
        "weights": r"^selector of slips.py returns a selector whose weights are .*\(3,\): they have shape \(6,\)",
        "twice": r"^select of slips.py returns clients that cannot be, in round 1: the array names client 1 twice",
        "negative": rf"^select of slips.py returns clients that cannot be, in round 1: .* names client -1: {IDS}",
        "outside": rf"^select of slips.py returns clients .*: the array names client 99: {IDS}",
        "few": r"^select of slips.py selects 2 clients in round 1, and its selector says size = 3$",
        "many": r"^select of slips.py selects 4 clients in round 1, and its selector says size = 3$",
        "none": r"^select of slips.py selects nobody in round 1: it must select 3 clients$",
        "all": r"^select of slips.py selects 6 clients in round 1, and its selector says size = 3$",
        "floats": r"^select of slips.py returns clients .*: the array is .*: clients are whole numbers from 0 to 5",
        "mask": r"^select of slips.py returns clients .*: the array is .*: a mask has one entry",
        "fails": r"^select of slips.py fails in line \d+: TypeError: list indices must be integers",
    },
    "algorithm=fedavg problem:Linear": {
        "loss number": r"^loss of slips.py returns a single number for scores Z of shape .*: it must be an array",
        "loss of clients": r"^loss of slips.py returns an array of shape \(\d,\) for scores Z of shape",
        "slope number": r"^slope of slips.py returns the number 0.3 for scores Z of shape",
        "slope of clients": r"^slope of slips.py returns an array of shape \(\d,\) for scores Z of shape",
        "slope none": r"^slope of slips.py returns None for scores Z of shape",
        "weight": r"^weight of slips.py returns the number 0.1 for clients with d of shape",
    },
    "algorithm=gd problem:Linear": {"": r"it needs lipschitz \(.*; a LinearModel has it where it sets curvature\)"},
    "algorithm=gd problem:Quadratic": {
        "dim": r"^dim of slips.py returns the number 2.5: the number of parameters n is a whole number, at least 1$",
        "initial": r"^initial of slips.py returns an array of shape \(6,\) for the first model: .* of shape \(5,\)$",
        "value": r"^value_grad of slips.py returns a single number for c = \d clients: it must be an array of shape",
        "grad": r"^value_grad of slips.py returns an array of shape \(5,\) for c = \d clients: .* of shape \(\d, 5\)$",
        "alone": r"^value_grad of slips.py returns an array of shape \(\d,\): it must return f_i\(x_i\) \(c,\) and",
        "swapped": r"^value_grad of slips.py returns .*\(\d, 5\) for c = \d clients: .* of shape \(\d,\)$",
        "lipschitz": r"^lipschitz of slips.py returns the number 10.0 for c = \d clients",
    },
    "algorithm=newton problem:Quadratic": {
        "hess": r"^hess of slips.py returns an array of shape \(5, 5\) for c = \d clients: .* of shape \(\d, 5, 5\)$",
        "symmetric": r"^hess of slips.py returns matrices that are not symmetric to the bit: take \(H \+ Hᵀ\)/2$",
    },
    "algorithm=dgd graph:Ring": {
        "loop": r"^edges of slips.py returns an edge from node 1 to itself",
        "outside": r"^edges of slips.py returns an edge with node 6: nodes are numbered from 0 to 5$",
        "floats": r"^edges of slips.py returns an array of shape \(6, 2\): edges are whole numbers of shape \(E, 2\)",
        "none": r"^edges of slips.py returns None: edges are whole numbers of shape \(E, 2\)",
        "rows": r"^edges of slips.py returns weights whose row of node 0 sums to 0.8: rows of W must sum to 1$",
        "two weights": r"^edges of slips.py returns two weights for the edge between 0 and 1: W must be symmetric$",
        "weights": r"^edges of slips.py returns weights that are .*\(5,\): they are finite numbers, one for each edge$",
    },
    "algorithm=fedavg compress.up:Half": {
        "negative": r"^bits of slips.py returns the number -4 for a message of 5 numbers: it must be a whole number",
        "fraction": r"^bits of slips.py returns the number 7.5 for a message of 5 numbers",
        "shape": r"^message of slips.py returns an array of shape \(5,\) for rows of shape",
        "not finite": r"^message of slips.py returns numbers that are not finite for rows that are$",
    },
    "algorithm=ef21 algorithm.compressor:Half": {
        "delta": r"^delta of slips.py returns 0.9, and E‖C\(x\) − x‖² is 0.25·‖x‖² for a random x: it must be at most",
        "large": r"^delta of slips.py returns the number 1.5: δ is a number above 0 and at most 1, or None$",
        "omega": r"^omega of slips.py returns 0.1, and E‖C\(x\) − x‖² is 0.25·‖x‖² for a random x: .* at most ω$",
    },
    "algorithm=fedavg data:Source": {
        "tuple": r"^load of slips.py returns a tuple of 2: it must return a mpifed.Dataset$",
        "empty": r"^load of slips.py returns sizes with 0 samples for client 2",
        "five": r"^load of slips.py returns sizes as .*\(5,\): they are whole numbers, one for each of the 6 clients$",
        "floats": r"^load of slips.py returns sizes as .*: they are whole numbers",
        "y": r"^rows\(0, 6\) of Six returns y as .*\(23,\): it must return X \(24, 5\) and y \(24,\)$",
        "X": r"^rows\(0, 6\) of Six returns X as .*\(24, 4\): it must return X \(24, 5\) and y \(24,\)$",
        "alone": r"^rows\(0, 6\) of Six returns an array of shape \(24, 5\): it must return X",
    },
    "algorithm=fedavg data.clients=9 data:Source": {
        "": r"^load of slips.py returns a data set of 6 clients, and data.clients = 9$"
    },
    "algorithm=fedavg data=digits problem=softmax data.clients=10 data.partition:Deal": {
        "too many": r"^deal of slips.py returns order as .*: it must be 17970 row numbers, as many as sizes say$",
        "twice": r"^deal of slips.py returns a row twice: each row belongs to one client$",
        "outside": r"^deal of slips.py returns row 1797, and there are 1797 rows$",
        "alone": r"^deal of slips.py returns an array .*: it must return order, distinct row numbers, and",
        "empty": r"^deal of slips.py returns sizes with 0 samples for client 0",
        "floats": r"^deal of slips.py returns order as an array of shape",
    },
    "algorithm=fedavg algorithm.step:Rule": {
        "negative": r"^gamma of slips.py returns γ = -1 in iteration 0: it must be finite and not negative$",
        "none": r"^gamma of slips.py returns None: γ is one number, or has shape \(\d, 1\)",
        "shape": r"^gamma of slips.py returns an array of shape \(3,\): γ is one number",
        "not finite": r"^gamma of slips.py returns γ = nan in iteration 0: it must be finite",
    },
    "algorithm=fedavg algorithm.optimizer:Direction": {
        "alone": r"^direction of slips.py returns an array of shape \(\d, 5\): it must return d \(c, n\) and",
        "shape": r"^direction of slips.py returns d as .*\(5,\): it has shape \(\d, 5\), as the gradients$",
    },
    "algorithm=fedopt algorithm.server:ServerStep": {
        "rate": r"^rate of slips.py returns an array of shape \(5,\): η is one finite number$",
        "shape": r"^direction of slips.py returns d as .*\(1,\): it has shape \(5,\)",
        "": r"^direction of slips.py returns an array of shape \(5,\): it must return d \(n,\) and the new memory$",
    },
    "algorithm=feddcd data=gaussian problem=logistic problem.mu=0.1 algorithm.solver:Inner": {
        "": r"^minimise of slips.py returns an array of shape \(5,\): it must be an array \(c, n\), here \(\d, 5\)$"
    },
    "algorithm=fedavg system.speed:Spread": {
        "number": r"^draw of slips.py returns the number 1.0: it must return an array \(6,\), a number",
        "negative": r"^draw of slips.py returns -1 for client 0: it must be finite and not negative$",
        "shape": r"^draw of slips.py returns an array of shape \(3,\)",
        "not finite": r"^draw of slips.py returns nan for client 0",
    },
}
CASES = [("algorithm:Method", slip, sentence) for slip, sentence in METHOD.items()]
CASES += [(where, slip, sentence) for where, slips in OTHERS.items() for slip, sentence in slips.items()]


def command(where, slip):
    """The run of a study in which ``where`` ends with the key and the class of slips.py that it names."""
    sizes = [] if "Source" in where or "Deal" in where else SMALL[1:3]
    return [SMALL[0], *sizes, *SMALL[3:], *words(where, slip, "slips.py")]


@pytest.mark.parametrize(("where", "slip", "sentence"), CASES, ids=[f"{where}: {slip}" for where, slip, _ in CASES])
def test_a_slip_is_one_sentence_that_names_the_file_and_the_method(where, slip, sentence, capsys):
    said = told(command(where, slip), capsys)
    assert re.search(sentence, said), said


def test_there_are_more_than_eighty_slips():
    assert len(CASES) > 80
