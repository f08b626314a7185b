"""Client methods do not know where their arrays live: they compute the same with tensors on a device as with numpy."""

from functools import partial

import numpy as np
import pytest

from mpifed.data.blocks import Block
from mpifed.federation.host import Host
from mpifed.federation.local import Local
from mpifed.federation.traits import needs
from tests.helpers.algorithm_cases import CASES, GRAPH_CASES, start
from tests.helpers.algorithm_runs import build

torch = pytest.importorskip("torch")
strict = pytest.importorskip("array_api_strict")
from mpifed.federation.device_host import DeviceHost  # noqa: E402

pytestmark = pytest.mark.torch

SECOND = {"hess", "hessian"}  # what devices do not have
ROUNDS = 3
EVERY = [(build(*case), None) for case in CASES]
EVERY += [(build(name, options), graph) for name, options, graph in GRAPH_CASES]
ABLE = [case for case in EVERY if not SECOND & {*needs(case[0])}]
IDS = [f"{algorithm.label()}-{k}" for k, (algorithm, _) in enumerate(ABLE)]
cases = pytest.mark.parametrize("case", ABLE, ids=IDS)


def on_device(cohort=8):
    """Hosts whose arrays are tensors on the CPU."""
    return lambda setup, data, lo, hi: DeviceHost(setup, data, lo, hi, torch.device("cpu"), cohort)


def near(found, right, rtol):
    """Whether numbers agree relative to the largest of them; infinite ones must be the same."""
    finite = np.isfinite(right)
    scale = np.abs(right[finite]).max(initial=0.0)
    return np.array_equal(found[~finite], right[~finite]) and np.allclose(found[finite], right[finite], 0, rtol * scale)


@cases
def test_a_method_gives_the_same_models_states_and_records_on_a_device(case):
    algorithm, graph = case
    here, there = (start(algorithm, graph=graph, **options) for options in ({}, {"host": on_device()}))
    assert near(there.rounds(ROUNDS), here.rounds(ROUNDS), 1e-12)
    for name, right in here.states()._asdict().items():
        found = getattr(there.states(), name)
        assert found.dtype == right.dtype
        assert near(found, right, 1e-11), name
    for name, right in here.row().items():
        assert there.row()[name] == pytest.approx(right, rel=1e-9), name


class StrictBlock(Block):
    """A block of arrays that have the array-API standard and nothing else."""

    xp = strict

    def __init__(self, block):
        vars(self).update(vars(block))
        self.block = block
        self.A, self.b, self.w = (strict.asarray(part) for part in (block.A, block.b, block.w))
        self.d = strict.astype(strict.asarray(block.d), strict.float64)

    def __len__(self):
        return len(self.block)

    def take(self, rows):
        return StrictBlock(self.block.take(rows))

    def batch(self, picks, w):
        return StrictBlock(self.block.batch(np.asarray(picks), np.asarray(w)))

    def once(self, key, compute):
        return strict.asarray(self.block.once(key, compute))

    def note(self, key, compute):
        found = self.block.note(key, compute)
        return None if found is None else strict.asarray(found)

    def real(self, numbers):
        return strict.astype(numbers, self.b.dtype)

    def matvec(self, X):
        return strict.matmul(self.A, self.rows(X)[:, :, None])[:, :, 0]

    def vecmat(self, R):
        return strict.matmul(self.A.mT, R[:, :, None])[:, :, 0]

    def multiply(self, K, V):
        return strict.matmul(K, V[:, :, None])[:, :, 0]

    def rows(self, X):
        return strict.broadcast_to(X, (len(self), self.n))


class Strict:
    """A method, or what is evaluated, whose client methods get arrays of the standard."""

    def __init__(self, method):
        self.method = method

    def __getattr__(self, name):
        found = getattr(self.method, name)
        return partial(self.called, found) if callable(found) else found

    def called(self, method, *args):
        if not (args and isinstance(args[0], Local)):
            return method(*args)
        f, *rest = args
        f = Local(StrictBlock(f.block), f._study, f.ids, f._key)
        return returned(method(f, *map(given, rest)))


def given(value):
    """An argument in arrays of the standard; numbers of numpy as Python's."""
    if isinstance(value, np.ndarray):
        return strict.asarray(value)
    if isinstance(value, tuple):
        return type(value)(*map(given, value))
    return value.item() if isinstance(value, np.generic) else value


def returned(value):
    """What a method returned, in numpy; it must be made of arrays of the standard alone."""
    if isinstance(value, dict):
        return {name: returned(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return type(value)(*map(returned, value)) if hasattr(value, "_fields") else tuple(map(returned, value))
    assert not isinstance(value, np.ndarray | np.generic)
    return value if value is None else np.asarray(value)


class StrictHost(Host):
    """Clients in memory whose methods compute with arrays of the standard."""

    def __init__(self, *args):
        super().__init__(*args)
        self.use(Strict(self.algorithm))
        self.evaluation = Strict(self.evaluation)


@pytest.fixture
def rows_by_position(monkeypatch):
    """Arrays of the standard that can also be indexed by the positions of clients, as all libraries have it."""
    kind = type(strict.zeros(1))
    plain = kind.__getitem__, kind.__setitem__

    def positions(key):
        whole = isinstance(key, kind) and key.dtype in (strict.int64, strict.int32)
        return np.asarray(key) if whole or isinstance(key, np.ndarray) else None

    def get(self, key):
        rows = positions(key)
        return plain[0](self, key) if rows is None else strict.asarray(np.asarray(self)[rows])

    def put(self, key, value):
        rows = positions(key)
        if rows is None:
            plain[1](self, key, value)
        else:
            self._array[rows] = np.asarray(value)

    monkeypatch.setattr(kind, "__getitem__", get)
    monkeypatch.setattr(kind, "__setitem__", put)


@cases
def test_client_methods_use_the_array_api_standard_alone(case, rows_by_position):
    algorithm, graph = case
    here, there = (start(algorithm, graph=graph, host=host) for host in (Host, StrictHost))
    assert near(there.rounds(ROUNDS), here.rounds(ROUNDS), 1e-12)
    there.row()
