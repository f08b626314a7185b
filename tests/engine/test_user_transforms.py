"""A transform and a callback of a user: bits that are counted, memories that are resumed, columns that are stored."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import mpifed
from mpifed.core.toml import flatten
from mpifed.federation.transform import ClientBatch
from tests.helpers.commands import mpifed as mpifed_command

CLIENTS, N = 6, 4
STUDY = {
    "data": {"name": "gaussian", "clients": CLIENTS, "samples": 8, "features": N},
    "problem": "least-squares",
    "algorithm": {"name": "fedavg", "k0": 2},
    "kernels": "numpy",
    "rounds": 6,
}
EXAMPLES = Path(__file__).parents[2] / "docs/extending-reference.md"
MEMORY = """
import numpy as np

import mpifed


class Rest(mpifed.extend.Transform):
    \"\"\"Uploads rounded to a tenth; clients add what was lost to the next one, the server counts.\"\"\"

    def encode_array(self, batch, name, rows):
        target = rows + self.client_state.at(batch, name, rows)
        sent = np.round(target, 1)
        self.client_state.put(batch, name, target - sent)
        return sent

    def decode(self, request, reply):
        if self.name in request.transforms:
            seen = self.server_state.get("seen", np.zeros(1)) + 1
            self.server_state["seen"] = seen
            reply.rows = reply.rows + seen / 64  # what the next round gets depends on this memory too


class Rounded(mpifed.extend.Plugin):
    def transforms(self, setup, fed):
        return [Rest()]


class Drift(mpifed.extend.Plugin, mpifed.extend.Callback):
    def on_evaluate(self, fed, x):
        return {"length": float(np.sqrt(x @ x)), "clients": {"share": np.arange(fed.m) / fed.m}}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("memory.py").write_text(MEMORY, "utf-8")
    powers = re.search(r"<!-- file: powers.py -->\n```python\n(.*?)```", EXAMPLES.read_text("utf-8"), re.S)
    Path("powers.py").write_text(powers[1], "utf-8")
    return tmp_path


def run(*plugins, **settings):
    return mpifed.run(STUDY, settings, plugins=[*plugins], progress=False, path=settings.pop("path", None))


class Clients:
    """One client, with the stream of a draw."""

    def __init__(self, draw):
        self.draw = draw

    def streams(self, seed, name):
        return [mpifed.extend.stream(seed, name, self.draw)]


def send_powers(x, draws):
    """The transform of the page, and what it makes of an upload x (1, N) in so many draws: (draws, N)."""
    scope = {}
    exec(compile(Path("powers.py").read_text("utf-8"), "powers.py", "exec"), scope)
    transform = scope["NaturalCompression"](0, x.dtype)
    batches = [ClientBatch(Clients(k), slice(0, 1), None) for k in range(draws)]
    return transform, np.concatenate([transform.encode_array(batch, "x", x) for batch in batches])


def test_natural_compression_is_unbiased_and_its_bits_are_in_the_ledger(files):
    result = run("powers.py:Powers")
    rounds = result.rounds
    assert (rounds["bits_up"][1:] == 12 * N * rounds["uploads"][1:]).all()
    assert (rounds["bits_down"][1:] == 64 * N * rounds["downloads"][1:]).all()
    x = np.array([[0.7, -3.1, 0.0, 1e-3, 8.0]])
    _, sent = send_powers(x, 4000)
    assert np.isin(np.unique(np.abs(sent[:, 0])), [0.5, 1.0]).all()
    spread = np.abs(x) / np.sqrt(8)  # the standard deviation is at most that: ω = 1/8
    assert (np.abs(sent.mean(axis=0) - x[0]) <= 5 * spread[0] / math.sqrt(len(sent))).all()


@pytest.mark.parametrize(("dtype", "width"), [("float64", 12), ("float32", 9)])
def test_codes_as_long_as_the_ledger_says_hold_every_number_that_is_sent(dtype, width, files):
    """A codec of signs and exponents, also for zeros, for the least normal numbers and for the largest powers."""
    info = np.finfo(dtype)
    x = np.array([[0.7, -3.1, 0.0, -0.0, 1e-3, info.tiny, -info.tiny / 2, -info.max / 3]], dtype)
    transform, sent = send_powers(x, 3)
    assert sent.dtype == dtype
    assert transform.bits([(x.size,), (2, 1)]) == width * (x.size + 2)
    least = 2 - info.minexp - 1  # so that the code of the least normal number is 1, and that of 0 is 0
    exponents = np.where(sent == 0, 0, np.frexp(sent)[1] + least - 1)
    assert (exponents >= 0).all()
    text = "".join(f"{s:d}{e:0{width - 1}b}" for s, e in zip(np.signbit(sent).ravel(), exponents.ravel(), strict=True))
    assert len(text) == width * sent.size
    codes = [text[k : k + width] for k in range(0, len(text), width)]
    read = [math.copysign(math.ldexp(0.5, int(c[1:], 2) - least + 1) * (int(c[1:], 2) > 0), -int(c[0])) for c in codes]
    assert np.array(read, dtype).tobytes() == sent.tobytes()


def test_what_a_transform_keeps_is_resumed_to_the_bit(files):
    whole = run("memory.py:Rounded")
    plain = mpifed.run(STUDY, progress=False)
    assert whole.x.tobytes() != plain.x.tobytes()
    run("memory.py:Rounded", path="half.h5", rounds=3)
    assert mpifed.resume("half.h5", rounds=6, progress=False).x.tobytes() == whole.x.tobytes()


def test_the_bits_are_the_same_on_three_ranks(files):
    whole = run("powers.py:Powers", "memory.py:Rounded")
    words = [f"{key}={value}" for key, value in flatten(STUDY).items()]
    done = mpifed_command(
        "run", 'plugins=["powers.py:Powers", "memory.py:Rounded"]', *words, "-q", "-o", "ranks.h5", ranks=3
    )
    assert (done.code, done.err) == (0, "")
    ranks = mpifed.load("ranks.h5")
    assert ranks.x.tobytes() == whole.x.tobytes()
    assert (ranks.rounds["bits_up"] == whole.rounds["bits_up"]).all()


def test_what_a_callback_returns_is_stored(files):
    result = run("memory.py:Drift", path="drift.h5")
    assert result.rounds["length"][-1] == math.sqrt(result.x @ result.x)
    assert len(result.rounds["length"]) == 7
    assert result.by_client["share"].tolist() == [[i / CLIENTS for i in range(CLIENTS)]] * 7
