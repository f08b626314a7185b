"""Seldom made slips in methods of a user's own: each is one sentence that names file and method, and exit code 2."""

import re
from pathlib import Path

import pytest

from mpifed.cli.main import main
from tests.contract.sentences import told, words
from tests.helpers.commands import mpifed

pytestmark = pytest.mark.usefixtures("here")

SMALL = ["run", "data.clients=6", "data.features=5", "rounds=3", "kernels=numpy", "-q", "-o", "out.h5"]
SLIPS = {  # options of a study and the class: slip -> the beginning of the sentence; FILE is more_slips.py
    "algorithm:Method": {
        "join masked": r"^join of FILE returns a state whose field z is a MaskedArray of shape \(\d, 5\),",
        "join objects": r"^join of FILE returns a state whose field z is an array object of shape \(1,",
        "join nested": r"^join of FILE returns a state whose field z is a tuple of 2, called for c = \d",
        "join 0-d": r"^join of FILE returns a state whose field z is a single number, called for c =",
        "join generator": r"^join of FILE returns a generator: it must return a NamedTuple of arrays, one",
        "join class": r"^join of FILE returns a type: it must return a NamedTuple of arrays, one row",
        "to set": r"^to= in a call of gradient is a set: clients are whole numbers from 0 to 5, or",
        "to text": r"^to= in a call of gradient is a str: clients are whole numbers from 0 to 5, or",
        "to names": r"^to= in a call of gradient is an array <U1 of shape \(2,\): clients are whole",
        "to number": r"^to= in a call of gradient is the number 3: clients are whole numbers from 0",
        "to dict": r"^to= in a call of gradient is a dict of 1: clients are whole numbers from 0 to",
        "to generator": r"^to= in a call of gradient is a generator: clients are whole numbers from 0 to",
        "to ragged": r"^to= in a call of gradient is a list of 2: clients are whole numbers from 0 to",
        "to none": r"^fed\.mean gets nothing: the client method must upload an array or a tuple of",
        "to objects": r"^to= in a call of gradient is an array object of shape \(3,\): clients are whole",
        "to masked": r"^to= in a call of gradient is a MaskedArray int64 of shape \(3,\): clients are",
        "each ragged": r"^each= in a call of scaled is a list of 2: it must be an array with a row for",
        "each texts": r"^each= in a call of scaled is a list of 2: it must be an array with a row for",
        "each none": r"^each= in a call of scaled is a list of 2: it must be an array with a row for",
        "each objects": r"^each= in a call of scaled is an array object of shape \(2,\): it must be an",
        "each set": r"^each= in a call of scaled is a set: it must be an array with a row for each",
        "each complex": r"^each= in a call of scaled is an array complex128 of shape \(2,\): it must be an",
        "arg text": r"^a call of given has a str as an argument: what travels to clients are arrays",
        "arg list": r"^a call of given has a list of 2 as an argument: what travels to clients are",
        "arg dict": r"^a call of given has a dict of 1 as an argument: what travels to clients are",
        "arg function": r"^a call of given has a builtin_function_or_method as an argument: what travels",
        "arg state": r"^a call of given has a Server of 2 as an argument: what travels to clients are",
        "arg objects": r"^a call of given has an array object of shape \(2,\) as an argument: what",
        "arg complex": r"^a call of given has an array complex128 of shape \(5,\) as an argument: what",
        "arg large": r"^a call of given has the number",
        "arg named": r"^the client method gradient of FILE fails in line \d+: TypeError:",
        "last unknown": r"^round of FILE fails in line \d+: AttributeError: 'Client' object has no",
        "last number": r"^round of FILE fails in line \d+: TypeError: attribute name must be string,",
        "select nothing": r"^round of FILE fails in line \d+: TypeError: Federation\.select\(\) missing 1",
        "method text": r"^round of FILE fails in line \d+: AttributeError: 'str' object has no",
        "method called": r"^round of FILE fails in line \d+: TypeError: Method\.gradient\(\) missing 2",
        "method none": r"^uploads are asked for without a client method: fed\.send and fed\.arrivals must",
        "no method": r"^uploads are asked for without a client method: fed\.send and fed\.arrivals must",
        "sum none": r"^fed\.mean gets nothing: the client method must upload an array or a tuple of",
        "round generator": r"^round of FILE returns a generator: it must return a NamedTuple of arrays with",
        "recursion": r"^round of FILE fails in line \d+: RecursionError: maximum recursion depth",
        "empty": r"^round of FILE fails in line \d+: RuntimeError",
        "breaks": r"^round of FILE fails in line \d+: ValueError: one",
        "breaks first": r"^round of FILE fails in line \d+: ValueError: one",
        "umlaut": r"^round of FILE fails in line \d+: ValueError: Größe µ ist falsch\\x07",
        "exits": r"^round of FILE fails in line \d+: SystemExit: 3",
        "unwritten": r"^round of FILE fails in line \d+: NotImplementedError",
        "stops": r"^round of FILE fails in line \d+: StopIteration",
        "asserts": r"^round of FILE fails in line \d+: AssertionError",
        "bad text": r"^round of FILE fails in line \d+: Mute: its message cannot be read: ValueError",
        "system": r"^round of FILE fails in line \d+: FileNotFoundError: \[Errno 2\] no such: 'file'",
        "f later": r"^round of FILE returns a state whose field x is an array of shape \(\d, 5\): the",
        "grows": r"^round of FILE returns a state whose field x is an array of shape \(6,\): the",
        "mix": r"^round of FILE fails in line \d+: AttributeError: 'Federation' object has no",
        "solve bad": r"^round of FILE fails in line \d+: TypeError: Calls\.solve\(\) missing 1 required",
        "solve lambda": r"^round of FILE fails in line \d+: TypeError: Calls\.solve\(\) missing 1 required",
        "mask text": r"^the array that fed\.mask gets is a str: clients are whole numbers from 0 to 5,",
        "masked": r"^the client method gradient of FILE returns a MaskedArray of shape \(\d, 5\) as",
        "objects": r"^the client method gradient of FILE returns an array object of shape \(\d, 5\) as",
        "generator": r"^the client method gradient of FILE returns a generator as its upload, called",
        "0-d": r"^the client method gradient of FILE returns a single number as its upload,",
        "named": r"^fed\.mean gets a dict: the client method must upload an array or a tuple of",
        "number names": r"^fed\.mean gets a dict: the client method must upload an array or a tuple of",
        "nested": r"^the client method gradient of FILE returns a tuple of 2 as its upload, called",
        "nested names": r"^the client method gradient of FILE returns a dict of 1 as its upload, called",
        "wider": r"^the client method gradient of FILE uploads \(c, 10\), and before it uploaded",
        "by block": r"^the client method gradient of FILE uploads \(c, 5\), and before it uploaded \(c,",
        "none by block": r"^the client method gradient of FILE uploads \(c, 5\), and before it uploaded",
        "part by block": r"^the client method gradient of FILE uploads \(c, 5\), and before it uploaded \(c,",
        "by rank": r"^the client method gradient of FILE uploads \(c, 10\), and before it uploaded",
        "none by rank": r"^the client method gradient of FILE uploads nothing, and before it uploaded",
        "none by rank first": r"^the client method gradient of FILE uploads \(c, 5\), and before it uploaded",
        "empty tuple": r"^fed\.mean gets nothing: the client method must upload an array or a tuple of",
        "empty dict": r"^fed\.mean gets nothing: the client method must upload an array or a tuple of",
        "state masked": r"^the client method gradient of FILE returns a state whose field z is a",
        "state objects": r"^the client method gradient of FILE returns a state whose field z is an array",
        "state class": r"^the client method gradient of FILE returns a type as the new state, and a",
        "state plain": r"^the client method gradient of FILE returns a tuple of 1 as the new state, and",
        "client recursion": r"^the client method gradient of FILE fails in line \d+: RecursionError: maximum",
        "client fed": r"^the client method gradient of FILE fails in line \d+: RecursionError: maximum",
        "client exits": r"^the client method gradient of FILE fails in line \d+: SystemExit: bye",
        "client empty": r"^the client method gradient of FILE fails in line \d+: KeyError",
        "client breaks": r"^the client method gradient of FILE fails in line \d+: ValueError: one",
        "client unwritten": r"^the client method gradient of FILE fails in line \d+: NotImplementedError",
        "client stops": r"^the client method gradient of FILE fails in line \d+: StopIteration",
        "x (c, n) wrong": r"^the client method gradient of FILE returns an array of shape \(2, 5\) as its",
        "x short": r"^the client method gradient of FILE fails in line \d+: ValueError: matvec:",
        "x objects": r"^the client method gradient of FILE returns an array object of shape \(\d, 5\) as",
        "x none": r"^the client method gradient of FILE fails in line \d+: ValueError: matvec:",
        "writes state": r"^the client method gradient writes into an array that it received, which other",
        "start tuple": r"^start of FILE returns a state whose field rest is a tuple of 2: fields are",
        "start near": r"^start of FILE returns a state whose field rest is a Near of 2: fields are",
        "start dict": r"^start of FILE returns a state whose field rest is a dict of 1: fields are",
        "start None": r"^start of FILE returns a state whose field rest is None: fields are arrays of",
        "start ragged": r"^start of FILE returns a state whose field rest is a list of 2: fields are",
        "start list x": r"^start of FILE returns a state whose field x is a list of 5: fields are arrays",
        "start masked": r"^start of FILE returns a state whose field x is a MaskedArray of shape \(5,\):",
        "start objects": r"^start of FILE returns a state whose field x is an array object of shape \(5,\):",
        "start text": r"^start of FILE returns a state whose field rest is a str: fields are arrays of",
    },
    "algorithm:Recording": {
        "none": r'^record of FILE returns None: it must return a dict such as \{"snr": Max\(v\)\}, v',
        "array": r"^record of FILE returns an array of shape \(1,\): it must return a dict such as",
        "plain": r"^record of FILE returns an array of shape \(1,\) as 'snr': it must be a Sum or a",
        "pair": r'^record of FILE returns a list of 1: it must return a dict such as \{"snr":',
        "number": r"^record of FILE returns the number 1\.0 as 'snr', called for c = \d clients: it",
        "rows": r"^record of FILE returns an array of shape \(2,\) as 'snr', called for c = \d",
        "table": r"^record of FILE returns an array of shape \(\d, 2\) as 'snr', called for c = \d",
        "complex": r"^record of FILE returns an array complex128 of shape \(1,\) as 'snr', called for",
        "text": r"^record of FILE returns an array <U1 of shape \(1,\) as 'snr', called for c = \d",
        "list": r"^record of FILE returns a list of 1 as 'snr', called for c = \d clients: it has",
        "key": r"^record of FILE returns a number named 1: a name is a text without /",
        "empty key": r"^record of FILE returns a number named '': a name is a text without /",
        "taken": r"^record of FILE returns a number named 'objective', and mpifed records that",
        "gradient": r"^record of FILE returns a number named 'gradient', and mpifed records that",
        "by block": r"^record of FILE:Recording returns objective, objective_samples, gradient, snr0",
        "by rank": r"^record of FILE:Recording returns objective, objective_samples, gradient,",
        "class": r"^record of FILE returns a type as 'snr': it must be a Sum or a Max of an array",
        "slash": r"^record of FILE returns a number named 'a/b': a name is a text without /",
    },
    "algorithm:Reporting": {
        "fails": r"^report of FILE fails in line \d+: KeyError: 'b'",
        "none": r"^report of FILE returns None: it must return a dict, a number for each column",
        "number": r"^report of FILE returns the number 1\.0: it must return a dict, a number for",
        "array": r"^report of FILE returns an array of shape \(3,\) as the column 'a': it must be a",
        "text": r"^report of FILE returns a str as the column 'a': it must be a number",
        "complex": r"^report of FILE returns the number 1j as the column 'a': it must be a number",
        "key": r"^report of FILE returns a column named 1: a name is a text without /",
        "taken": r"^report of FILE returns a column named 'objective', and mpifed records that",
        "round": r"^report of FILE returns a column named 'round', and mpifed records that",
        "empty key": r"^report of FILE returns a column named '': a name is a text without /",
        "slash": r"^report of FILE returns a column named 'a/b': a name is a text without /",
        "dot": r"^report of FILE returns a column named '\.': a name is a text without /",
        "one": r"^report of FILE returns an array of shape \(1,\) as the column 'a': it must be a",
    },
    "algorithm:Personal": {
        "none": r"^personalised of FILE returns None: it must return an array \(c, n\), here \(\d, 5\)",
        "shape": r"^personalised of FILE returns an array of shape \(\d, 4\): it must return an",
        "one": r"^personalised of FILE returns an array of shape \(5,\): it must return an array",
        "list": r"^personalised of FILE returns a list of 1: it must return an array \(c, n\),",
        "pair": r"^personalised of FILE returns a tuple of 2: it must return an array \(c, n\),",
    },
    "system.speed=1e4 system.bandwidth_up=1e4 algorithm.what=work algorithm:Counting": {
        "none": r"^system\.passes is missing: FILE:Counting cannot tell beforehand how often its",
        "number": r"^work of FILE returns the number 3\.0 for d of shape \(1,\): it must be an array",
        "text": r"^work of FILE returns a str for d of shape \(1,\): it must be an array of this",
        "list": r"^work of FILE returns a list of 6 for d of shape \(1,\): it must be an array of",
    },
    "system.speed=1e4 system.bandwidth_up=1e4 algorithm.what=traffic algorithm:Counting": {
        "none": r"^traffic of FILE returns None: it must return two numbers, those that travel",
        "number": r"^traffic of FILE returns the number 3\.0: it must return two numbers, those",
        "text": r"^traffic of FILE returns a str: it must return two numbers, those that travel",
        "triple": r"^traffic of FILE returns a tuple of 3: it must return two numbers, those that",
    },
    "algorithm.what=advice algorithm:Counting": {
        "number": r"^advice of FILE returns the number 3\.0: it must return a text, or None",
        "list": r"^advice of FILE returns a list of 6: it must return a text, or None",
        "dict": r"^advice of FILE returns a dict of 1: it must return a text, or None",
        "fails": r"^advice of FILE fails in line \d+: KeyError: 'advice'",
    },
    "algorithm.certify=true algorithm.what=certificate algorithm:Counting": {
        "none": r"^certificate of FILE returns None: it must return a mpifed\.Certificate",
        "text": r"^certificate of FILE returns a str: it must return a mpifed\.Certificate",
        "dict": r"^certificate of FILE returns a dict of 1: it must return a mpifed\.Certificate",
        "fails": r"^certificate of FILE fails in line \d+: KeyError: 'certificate'",
    },
    "algorithm.what=privacy algorithm:Counting": {
        "text": r"^privacy of FILE returns a str: it must return a Privacy, or None",
        "number": r"^privacy of FILE returns the number 3\.0: it must return a Privacy, or None",
        "dict": r"^privacy of FILE returns a dict of 1: it must return a Privacy, or None",
        "fails": r"^privacy of FILE fails in line \d+: KeyError: 'privacy'",
    },
    "algorithm.what=verify algorithm:Counting": {
        "fails": r"^verify of FILE fails in line \d+: KeyError: 'verify'",
    },
    "algorithm.what=redrawn algorithm:Counting": {
        "none": r"^redrawn of FILE returns None: it must return the server's state, a Server",
        "number": r"^redrawn of FILE returns the number 3\.0: it must return the server's state, a",
        "fails": r"^redrawn of FILE fails in line \d+: KeyError: 'redrawn'",
        "text": r"^redrawn of FILE returns a str: it must return the server's state, a Server",
    },
    "compress.up=natural algorithm.what=received algorithm:Counting": {
        "none": r"^received of FILE returns None as the new state, and a state is a Client: it",
        "number": r"^received of FILE returns the number 3\.0 as the new state, and a state is a",
        "list": r"^received of FILE returns a list of 6 as the new state, and a state is a",
        "fails": r"^received of FILE fails in line \d+: KeyError: 'received'",
    },
    "selection=biased algorithm:Scoring": {
        "none": r"^score of FILE returns None: it must return \(new state, upload\), one row for",
        "alone": r"^score of FILE returns an array of shape \(1,\): it must return \(new state,",
        "rows": r"^round of FILE fails in line \d+: ValueError: object too deep for desired array",
        "number": r"^score of FILE returns the number 1\.0 as its upload, called for c = \d clients:",
        "state": r"^score of FILE returns an array of shape \(1,\) as the new state, and a state is",
    },
    "algorithm:Requires": {
        "": r'^algorithm = "FILE:Requires" is wrong: Requires of FILE: requires =',
    },
    "algorithm:RequiresText": {
        "": r'^algorithm = "FILE:RequiresText" is wrong: RequiresText of FILE: requires =',
    },
    "algorithm:RequiresOption": {
        "": r'^algorithm = "FILE:RequiresOption" is wrong: RequiresOption of FILE: requires',
    },
    "algorithm:TakesText": {
        "": r"^algorithm = .FILE:TakesText. is wrong: TakesText of FILE: takes = 'all' is",
    },
    "algorithm:MeanText": {
        "": r"^algorithm = .FILE:MeanText. is wrong: MeanText of FILE: mean = 'unbiased' is",
    },
    "algorithm:MeanClass": {
        "": r'^algorithm = "FILE:MeanClass" is wrong: MeanClass of FILE: mean = <enum',
    },
    "algorithm:UploadText": {
        "": r"^algorithm = .FILE:UploadText. is wrong: UploadText of FILE: upload = 'model'",
    },
    "algorithm:UploadKind": {
        "": r'^algorithm = "FILE:UploadKind" is wrong: UploadKind of FILE: upload has the',
    },
    "algorithm:UploadKept": {
        "": r"^join of FILE returns a state without the field y, which upload =",
    },
    "algorithm:UploadKnown": {
        "": r"^join of FILE returns a state without the field y, which upload =",
    },
    "algorithm:UploadVectors": {
        "": r'^algorithm = "FILE:UploadVectors" is wrong: UploadVectors of FILE: upload has',
    },
    "algorithm:AsyncText": {
        "": r'^algorithm = "FILE:AsyncText" is wrong: AsyncText of FILE: asynchronous =',
    },
    "algorithm:RecordTable": {
        "": r'^algorithm = "FILE:RecordTable" is wrong: RecordTable of FILE: record of',
    },
    "algorithm:WorkNumber": {
        "": r'^algorithm = "FILE:WorkNumber" is wrong: WorkNumber of FILE: work of',
    },
    "algorithm:Static": {
        "": r"^the client method gradient of FILE fails in line \d+: TypeError:",
    },
    "algorithm:Valued": {
        "": r"^round of FILE calls '<lambda>' on clients, and Valued has no such method: a",
    },
    "algorithm:Coroutine": {
        "": r"^the client method gradient of FILE returns a coroutine: it must return \(new",
    },
    "algorithm:YieldRound": {
        "": r"^round of FILE returns a generator: it must return a NamedTuple of arrays with",
    },
    "algorithm:YieldGradient": {
        "": r"^the client method gradient of FILE returns a generator: it must return \(new",
    },
    "algorithm:FewArguments": {
        "": r"^round of FILE fails in line \d+: TypeError: FewArguments\.round\(\) takes 2",
    },
    "algorithm:RoundAttribute": {
        "": r'^algorithm = "FILE:RoundAttribute" is wrong: RoundAttribute of FILE: round of',
    },
    "algorithm:PostFails": {
        "": r"^__post_init__ of FILE fails in line \d+: KeyError: 'gamma'",
    },
    "algorithm:PostRefuses": {
        "": r"^algorithm: gamma is not right",
    },
    "algorithm:PostSets": {
        "": r"^__post_init__ of FILE fails in line \d+: AttributeError: immutable type:",
    },
    "algorithm:BadDefault": {
        "": r'^algorithm = "FILE:BadDefault" is wrong: BadDefault of FILE: the default of',
    },
    "compress.up=natural algorithm:UploadKind": {
        "": r'^algorithm = "FILE:UploadKind" is wrong: UploadKind of FILE: upload has the',
    },
    "compress.up=natural algorithm:UploadKept": {
        "": r"^join of FILE returns a state without the field y, which upload =",
    },
    "compress.up=natural algorithm:UploadKnown": {
        "": r"^join of FILE returns a state without the field y, which upload =",
    },
    "graph=ring algorithm:Nodes": {
        "mean": r"^FILE:Nodes calls step through a server in round 1, and with a table \[graph\]",
        "array": r"^the client method step gets an array as an argument, and nodes have no server",
        "field": r"^'y' cannot travel between nodes: it must be a field of the clients' state of",
        "fields": r"^'y' cannot travel between nodes: it must be a field of the clients' state of",
        "field number": r"^round of FILE fails in line \d+: TypeError: 'int' object is not iterable",
        "no field": r"^round of FILE fails in line \d+: TypeError: 'method' object is not iterable",
        "narrow": r"^the client method step of FILE fails in line \d+: ValueError: operands could",
        "lambda": r"^round of FILE calls '<lambda>' on clients, and Nodes has no such method: a",
        "to twice": r"^to= in a call of alone names client 1 twice",
        "to outside": r"^to= in a call of alone names client 9: clients are numbered from 0 to 5",
        "of outside": r"^of= names client 9: clients are numbered from 0 to 5",
        "gather none": r"^round of FILE fails in line \d+: ValueError: setting an array element with a",
        "gather pair": r"^the client method step of FILE fails in line \d+: ValueError: setting an array",
        "arguments": r"^the client method alone of FILE fails in line \d+: TypeError: Nodes\.alone\(\)",
        "text": r"^a call of plus has a str as an argument: what travels to clients are arrays",
        "round none": r"^round of FILE returns None: it must return a NamedTuple of arrays with the",
        "no x": r"^join of FILE returns a state without a field x, in which the nodes have their",
        "rest": r"^join of FILE returns a state whose field rest is an array object of shape",
        "start none": r"^start of FILE returns None: it must return a NamedTuple of arrays with the",
        "upload": r"^the client method step returns an upload, and nodes have no server to send it",
        "alone": r"^the client method step of FILE returns a Server of 2: it must return \(new",
        "shape": r"^the client method step of FILE returns a state whose field x is an array of",
        "reply none": r"^the client method step of FILE returns None: it must return \(new state,",
    },
    "algorithm:Nodes": {
        "": r"^graph is missing: FILE:Nodes has no server, so it needs a graph, such as",
    },
}
WORK = {  # what looks odd and works
    "algorithm:Method": (
        "join calls",
        "to range",
        "to flags",
        "arg none",
        "thread",
        "rest grows",
        "x list",
        "start int",
    ),
    "algorithm:Recording": ("ints", "umlaut"),
    "algorithm:Reporting": ("rounds", "value none", "umlaut", "0-d", "bool", "odd"),
    "selection=biased algorithm:Scoring": ("negative", "right"),
    "algorithm:StaticRound": ("",),
    "algorithm:SetOption": ("",),
    "algorithm:Recursive": ("",),
    "algorithm.μ=2 algorithm:Größe": ("",),
    "graph=ring algorithm:Nodes": ("to falling", "of falling", "none"),
}
SELF = "class A(Algorithm):\n def __init__(self): pass"
FILES = {  # a file that cannot be imported, or a class that cannot be made: its text -> the end of the sentence
    SELF: "with a type, as in gamma: float = 0.1, and __post_init__ checks them",
    "raise ValueError('one\\ntwo')": "cannot be imported: ValueError: one (file.py, line 2)",
    "raise ValueError": "cannot be imported: ValueError (file.py, line 2)",
    "def f(): f()\nf()": "RecursionError: maximum recursion depth exceeded (file.py, line 2)",
    "raise SystemExit(3)": "cannot be imported: SystemExit: 3 (file.py, line 2)",
    "class B: pass": "file.py has no class A; it defines B",
    "x = 1\0": "SyntaxError: source code string cannot contain null bytes",
}
ON_RANKS = {  # what only some ranks see
    "algorithm:Method=by rank": "replies to gradient have other names or shapes for some clients than for others",
    "algorithm:Method=none by rank": "replies to gradient have other names or shapes for some clients than for others",
    "algorithm:Method=arg text": "a call of given has a str as an argument",
    "algorithm:Method=client exits": "the client method gradient of more_slips.py fails in line",
    "algorithm:Recording=by rank": "replies to evaluate have other names or shapes for some clients than for others",
}
CASES = [(where, slip, sentence) for where, slips in SLIPS.items() for slip, sentence in slips.items()]


def command(where, slip):
    """The run of a study with these options, of which the last names a class of more_slips.py."""
    return [*SMALL, *words(where, slip, "more_slips.py")]


@pytest.mark.parametrize(("where", "slip", "sentence"), CASES, ids=[f"{where}: {slip}" for where, slip, _ in CASES])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_slip_is_one_sentence_that_names_the_file_and_the_method(where, slip, sentence, capsys):
    said = told(command(where, slip), capsys)
    assert re.search(sentence.replace("FILE", "more_slips.py"), said), said


@pytest.mark.parametrize(("where", "slip"), [(where, slip) for where, slips in WORK.items() for slip in slips])
def test_what_looks_odd_and_can_be_meant_works(where, slip):
    assert main(command(where, slip)) == 0


@pytest.mark.parametrize(("text", "sentence"), FILES.items(), ids=range(len(FILES)))
def test_a_file_that_cannot_be_imported_is_one_sentence(text, sentence, capsys):
    Path("file.py").write_text(f"from mpifed import Algorithm\n{text}\n")
    assert main(["run", "algorithm=file.py:A"]) == 2
    assert capsys.readouterr().err.strip().endswith(sentence)


@pytest.mark.parametrize(("where", "sentence"), ON_RANKS.items())
def test_on_three_ranks_a_slip_is_one_sentence_and_nothing_waits(where, sentence, tmp_path):
    where, _, slip = where.partition("=")
    done = mpifed(*command(where, slip), "data=gaussian", ranks=3, cwd=tmp_path)
    assert done.code == 2
    assert done.err.count("mpifed: ") == 1
    assert sentence in done.err


def test_random_numbers_of_the_server_go_on_within_a_round(capsys):
    """Two uses of fed.rng in a round gave the same numbers."""
    assert main(["run", "data.clients=6", "rounds=2", "-q", "-o", "r.h5", "algorithm=more_slips.py:Draws"]) == 0
