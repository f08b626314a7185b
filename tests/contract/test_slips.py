"""Each slip in a class of a user's own is one sentence that names the user's file and method, and exit code 2.

There is one slip for each kind of sentence.
"""

import re
from pathlib import Path

import pytest

from mpifed.cli.main import main
from tests.contract.conftest import some
from tests.helpers.commands import mpifed

pytestmark = pytest.mark.usefixtures("here")

IDS = r"clients are numbered from 0 to 5$"
PAIR = r"it must return \(new state, upload\), one row for each of the c clients$"
WRONG = r'^algorithm = "FILE:\w+" is wrong: \w+ of FILE:'
SLIPS = {  # options of a study and the class: slip -> sentence; FILE is slips.py and G a client method of it
    "algorithm:Method": {
        "join rows": r"^init_client of FILE returns a state whose field z is an array .*\(\d, 5\), called for c = ",
        "join nan": r"^init_client of FILE returns a state whose field z is not a number for client \d$",
        "start none": r"^init_server of FILE returns None, with which a run cannot go on: .* no attribute 'x'$",
        "start no x": r"^init_server of FILE returns a Bare of 1, with which a run cannot go on: .* no attribute 'x'$",
        "start shape": r"^init_server of FILE returns a state whose field x is .*\(6,\): the model has shape \(5,\)$",
        "to set": r"^to= in a call of gradient is a set: clients are whole numbers from 0 to 5, or a mask of 6",
        "to mask": r"^to= in a call of gradient is an array bool .*\(7,\): a mask has one entry for each of the 6",
        "to outside": rf"^to= in a call of gradient names client 99: {IDS}",
        "to twice": r"^to= in a call of gradient names client 1 twice$",
        "to none": r"^fed\.mean gets nothing: the client method must upload an array or a tuple of",
        "each short": r"^each= in a call of scaled is .*\(2,\): .* a row for each of the 3 clients that are called",
        "of others": r"^of= names 2 clients, and it must name the 2 whose uploads fed.arrivals said are there",
        "arg text": r"^a call of given has a str as an argument: what travels to clients are arrays",
        "lambda": r"^round of FILE calls '<lambda>' on clients, and Method has no such method: a client method is a",
        "method none": r"^uploads are asked for without a client method: fed\.send and fed\.arrivals must",
        "field": r"^round of FILE fails in line \d+: AttributeError: .*'model'",
        "sets": r"^round of FILE fails in line \d+: AttributeError: immutable type: 'Method'; no attribute of a",
        "mix": r"^round of FILE .* no attribute 'mix'; "
        r"a method on a graph is derived from mpifed.extend.GraphAlgorithm$",
        "empty": r"^round of FILE fails in line \d+: RuntimeError$",
        "breaks": r"^round of FILE fails in line \d+: ValueError: Größe µ ist falsch\\x07$",
        "exits": r"^G gradient of FILE fails in line \d+: SystemExit: bye$",
        "bad text": r"^round of FILE fails in line \d+: Mute: its message cannot be read: ValueError$",
        "reply three": rf"^G gradient of FILE returns a tuple of 3: {PAIR}",
        "reply state": rf"^G gradient of FILE returns an array .* as the new state, and a state is a Client: {PAIR}",
        "state shape": r"^G gradient of FILE returns a state whose field z is .* before it was .*\(\d, 5\)",
        "upload list": rf"^G gradient of FILE returns a list of 1 as its upload, called for c = \d clients: {PAIR}",
        "by block": r"^G gradient of FILE uploads .*\(c, 5\) and \(c, 5\).*: the form of an upload stays$",
        "writes": r"^G gradient writes into an array that it received, .*FILE, line \d+\)$",
    },
    "algorithm:Recording": {
        "none": r"^record of FILE returns None: it must return a dictionary$",
        "plain": r"^record of FILE returns a dict of 1, with which a run cannot go on: .* no attribute 'values'$",
        "rows": r"^record of FILE returns an array of shape \(2,\) as 'snr', called for c = \d clients: it has",
        "key": r"^record of FILE returns a number named 1: a name is a text without /$",
        "taken": r"^record of FILE returns a number named 'objective', and mpifed records that itself: take another",
        "by block": r"^record of FILE:Recording returns objective, objective_samples, gradient, snr0",
    },
    "algorithm:Reporting": {
        "none": r"^report of FILE returns None: it must return a dictionary$",
        "text": r"^report of FILE returns a str as the column 'a': it must be a number$",
    },
    "algorithm:Personal": {
        "": r"^personal_models of FILE returns an array .*\(\d, 4\): it must return an array \(c, n\), here \(\d, 5\)$"
    },
    "system.speed=1e4 system.bandwidth_up=1e4 algorithm:Counting": {
        "no work": r"^system\.passes is missing: FILE:Counting cannot tell beforehand how often its",
        "sample_gradients": r"^sample_gradients of FILE returns the number 3\.0 for d of shape \(1,\): it must be ",
        "message_size": r"^message_size of FILE returns the number 3\.0: it must return a tuple$",
    },
    "algorithm:Counting": {
        "advice": r"^advice of FILE returns the number 3\.0: it must return a text, or None$",
        "privacy": r"^privacy of FILE returns the number 3\.0: it must return a Privacy, or None$",
    },
    "algorithm.certify=true algorithm:Counting": {
        "certificate": r"^certificate of FILE returns the number 3\.0: it must return a Certificate$"
    },
    "selection=biased algorithm:Scoring": {"alone": rf"^score of FILE returns an array of shape \(1,\): {PAIR}"},
    "algorithm:Requires": {"": rf"{WRONG} requires = \('lipschitz',\) is wrong: it must be a tuple such as"},
    "algorithm:RequiresOption": {"": rf"{WRONG} requires names the option 'gama', and there is none of that name"},
    "algorithm:TakesText": {"": r"TakesText of FILE: participation = 'all' is wrong: it must be a Participation"},
    "algorithm:UploadKind": {
        "": rf"{WRONG} upload has the content 'modle', and it must be one of model, change, gradient"
    },
    "algorithm:RecordText": {"": rf"{WRONG} record of RecordText is a str: it must be a method"},
    "algorithm:PostFails": {"": r"^__post_init__ of FILE fails in line \d+: KeyError: 'gamma'$"},
    "algorithm:PostRefuses": {"": r"^algorithm: gamma is not right"},
    "algorithm:BadDefault": {"": rf"{WRONG} the default of gamma, 'a', is wrong: "},
    "graph=ring algorithm:Nodes": {
        "mean": r"^FILE:Nodes calls step through a server in round 1, and with a table \[graph\]",
        "array": r"^G step gets an array as an argument, and nodes have no server",
        "field": r"^'y' cannot travel between nodes: it must be a field of the clients' state of",
        "upload": r"^G step returns an upload, and nodes have no server to send it",
    },
    "algorithm:Nodes": {"": r"^graph is missing: FILE:Nodes has no server, so it needs a graph, such as"},
    "algorithm=fedavg selection:Chosen": {
        "list": r"^selector of FILE returns a list of 3: it must return a Selector$",
        "size": r"^selector of FILE returns a selector of size 7: it must be a whole number from 1 to the 6 clients$",
        "weights": r"^selector of FILE returns a selector whose weights are .*\(3,\): they have shape \(6,\)$",
        "few": r"^select of FILE selects 2 clients in round 1, and its selector says size = 3$",
        "none": r"^select of FILE selects nobody in round 1: it must select 3 clients$",
    },
    "algorithm=fedavg problem:Linear": {
        "loss": r"^loss of FILE returns an array of shape \(\d,\) for scores Z of shape .*: it must be an array of",
        "weight": r"^weight of FILE returns the number 0.1 for clients with d of shape",
    },
    "algorithm=gd problem:Linear": {"": r"it needs lipschitz \(.*; a LinearModel has it where it sets curvature\)"},
    "algorithm=gd problem:Quadratic": {
        "dim": r"^dim of FILE returns the number 2.5: it must return a whole number$",
        "initial": r"^initial of FILE returns an array of shape \(6,\) for the first model: .* of shape \(5,\)$",
        "grad": r"^value_grad of FILE returns an array of shape \(5,\) for c = \d clients: .* of shape \(\d, 5\)$",
        "alone": r"^value_grad of FILE returns an array .*: it must return f_i\(x_i\) \(c,\) and ∇f_i\(x_i\) \(c, n\)$",
    },
    "algorithm=newton problem:Quadratic": {
        "symmetric": r"^hess of FILE returns matrices that are not symmetric to the bit: take \(H \+ Hᵀ\)/2$"
    },
    "algorithm=dgd graph:Ring": {
        "loop": r"^edges of FILE returns an edge from node 1 to itself: W_ii needs none, it is 1 − Σ_j W_ij$",
        "outside": r"^edges of FILE returns an edge with node 6: nodes are numbered from 0 to 5$",
        "floats": r"^edges of FILE returns an array of shape \(6, 2\): edges are whole numbers of shape \(E, 2\), two",
        "rows": r"^edges of FILE returns weights whose row of node 0 sums to 0.8: rows of W must sum to 1$",
        "two weights": r"^edges of FILE returns two weights for the edge between 0 and 1: W must be symmetric$",
        "weights": r"^edges of FILE returns weights that are .*\(5,\): they are finite numbers, one for each edge$",
    },
    "algorithm=fedavg compress.up:Half": {
        "bits": r"^bits of FILE returns the number 7.5: it must return a whole number$",
        "shape": r"^message of FILE returns an array of shape \(5,\) for rows of shape .*: C\(x\) has the shape of x$",
        "not finite": r"^message of FILE returns an array of shape .*: it must be an array of finite numbers$",
    },
    "algorithm=ef21 algorithm.compressor:Half": {
        "large": r"^delta of FILE returns the number 1.5: δ is a number above 0 and at most 1, or None$",
        "below": r"^omega of FILE returns the number -1: ω is a number, at least 0, or None$",
    },
    "algorithm=fedavg data:Source": {
        "tuple": r"^load of FILE returns a (tuple of 2: it must return a Dataset|data set without m)$",
        "no n": r"^load of FILE returns a data set without n$",
        "empty": r"^load of FILE returns sizes with 0 samples for client 2: at least 1 is needed$",
        "five": r"^load of FILE returns sizes as .*\(5,\): they are whole numbers, one for each of the 6 clients$",
        "y": r"^rows\(0, 6\) of Six returns y as .*\(23,\): it must return X \(24, 5\) and y \(24,\)$",
        "alone": r"^rows\(0, 6\) of Six returns an array of shape \(24, 5\): it must return X",
    },
    "algorithm=fedavg data.clients=9 data:Source": {
        "": r"^load of FILE returns a data set of 6 clients, and data.clients = 9$"
    },
    "algorithm=fedavg data=digits problem=softmax data.clients=10 data.partition:Deal": {
        "too many": r"^deal of FILE returns order as .*: it must be 17970 row numbers, as many as sizes say$",
        "twice": r"^deal of FILE returns a row twice: each row belongs to one client$",
        "outside": r"^deal of FILE returns row 1797, and there are 1797 rows$",
        "alone": r"^deal of FILE returns an array .*: it must return order, distinct row numbers, and sizes \(m,\)$",
    },
    "algorithm=fedavg algorithm.step:Rule": {
        "negative": r"^gamma of FILE returns γ = -1 in iteration 0: it must be finite and not negative$",
        "shape": r"^gamma of FILE returns an array of shape \(3,\): γ is one number, or has shape \(\d, 1\), one",
    },
    "algorithm=fedavg algorithm.optimizer:Direction": {
        "alone": r"^direction of FILE returns an array of shape \(\d, 5\): it must return a tuple$",
        "shape": r"^direction of FILE returns d as .*\(5,\): it has shape \(\d, 5\), as the gradients$",
    },
    "algorithm=fedopt algorithm.server:ServerStep": {
        "rate": r"^rate of FILE returns an array of shape \(5,\): η is one finite number$",
        "": r"^direction of FILE returns an array of shape \(5,\): it must return a tuple$",
    },
    "algorithm=feddcd data=gaussian problem=logistic problem.mu=0.1 algorithm.solver:Inner": {
        "": r"^minimise of FILE returns an array of shape \(5,\): it must be an array \(c, n\), here \(\d, 5\)$"
    },
    "algorithm=fedavg system.speed:Spread": {
        "shape": r"^draw of FILE returns an array of shape \(3,\): it must return an array \(6,\), a number for each",
        "negative": r"^draw of FILE returns -1 for client 0: it must be finite and not negative$",
        "infinite": r"^draw of FILE returns inf for client 5: it must be finite and not negative$",
    },
}
LATER = [("algorithm:Method", "start text"), ("graph=ring algorithm:Nodes", "no x")]  # what fails after it is returned
WORK = {  # what looks odd and works
    "algorithm:Method": ("join calls", "to range", "arg none", "thread", "rest grows", "x list", "start int"),
    "algorithm:Recording": ("odd",),
    "algorithm:Reporting": ("odd",),
    "selection=biased algorithm:Scoring": ("right",),
    "algorithm:StaticRound": ("",),
    "algorithm.μ=2 algorithm:Größe": ("",),
    "graph=ring algorithm:Nodes": ("falling", "none"),
}
SELF = "class A(Algorithm):\n def __init__(self): pass"
FILES = {  # a file that cannot be imported, or a class that cannot be made: its text -> the end of the sentence
    SELF: "with a type, as in gamma: float = 0.1, and __post_init__ checks them",
    "raise ValueError('one\\ntwo')": "cannot be imported: ValueError: one (file.py, line 2)",
    "raise ValueError": "cannot be imported: ValueError (file.py, line 2)",
    "raise SystemExit(3)": "cannot be imported: SystemExit: 3 (file.py, line 2)",
    "class B: pass": "file.py has no class A; it defines B",
}
ON_RANKS = {  # what only some ranks see
    "algorithm:Method=by rank": "replies to gradient have other names or shapes for some clients than for others",
    "algorithm:Method=exits": "the client method gradient of slips.py fails in line",
}


def command(where, slip):
    """The run of a study with these settings, of which the last, key:Class, names a class of slips.py with its slip."""
    *settings, last = where.split()
    key, _, name = last.partition(":")
    sizes = [] if name in ("Source", "Deal") else ["data.clients=6", "data.features=5"]
    own = [f"{key}=slips.py:{name}", *([f"{key}.slip={slip}"] if slip else [])]
    return ["run", *sizes, "rounds=2", "kernels=numpy", "-q", "-o", "out.h5", *settings, *own]


@pytest.mark.parametrize(("where", "slip"), some([(where, slip) for where, slips in SLIPS.items() for slip in slips]))
def test_a_slip_is_one_sentence_that_names_the_file_and_the_method(where, slip, capsys):
    assert main(command(where, slip)) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("mpifed: ")]
    assert len(said) == 1
    sentence = SLIPS[where][slip].replace("FILE", "slips.py").replace("^G ", "^the client method ")
    assert re.search(sentence, said[0].removeprefix("mpifed: ")), said


@pytest.mark.parametrize(("where", "slip"), LATER)
def test_another_mistake_begins_with_the_method_that_returned_last(where, slip, capsys):
    assert main(command(where, slip)) == 1
    said = capsys.readouterr().err
    sentence = r"^mpifed: init_server of slips\.py \(line \d+\) returned a Server of 2, and then rank 0"
    assert re.search(sentence, said, re.M)
    assert "examines a class of your own\n  File" in said


@pytest.mark.parametrize(("where", "slip"), some([(where, slip) for where, slips in WORK.items() for slip in slips]))
def test_what_looks_odd_and_can_be_meant_works(where, slip):
    assert main(command(where, slip)) == 0


@pytest.mark.parametrize(("text", "sentence"), FILES.items(), ids=range(len(FILES)))
def test_a_file_that_cannot_be_imported_is_one_sentence(text, sentence, capsys):
    Path("file.py").write_text(f"from mpifed.extend import Algorithm\n{text}\n")
    assert main(["run", "algorithm=file.py:A"]) == 2
    assert capsys.readouterr().err.strip().endswith(sentence)


@pytest.mark.parametrize(("where", "sentence"), some(ON_RANKS.items()))
def test_on_three_ranks_a_slip_is_one_sentence_and_nothing_waits(where, sentence, tmp_path):
    where, _, slip = where.partition("=")
    done = mpifed(*command(where, slip), "data=gaussian", ranks=3, cwd=tmp_path)
    assert done.code == 2
    assert done.err.count("mpifed: ") == 1
    assert sentence in done.err
