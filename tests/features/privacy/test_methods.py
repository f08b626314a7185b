"""All methods under [privacy]: each is refused with a reason, or runs as without it where nothing is clipped."""

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import UserError
from mpifed.features.privacy.transform import ClippedSums
from tests.helpers.algorithm_cases import CASES, GRAPH_SETTINGS, GRAPHED, PROBLEMS, SERVED, SETTINGS

ROUNDS, CLIP = 3, 0.01
SIZES = {"clients": 7, "features": 5}
DATA = {
    "least-squares": {"name": "linreg-noniid", "least": 6, "most": 20} | SIZES,
    "quadratic": {"name": "quadratic", "mu": 0.2, "L": 1.0} | SIZES,
}
ABLE = {"apfl", "ditto", "fedavg", "fedbuff", "feddyn", "fedopt", "fedprox", "fedrep", "local-gd", "scaffold"}
FIRST = {name: (name, SETTINGS.get(name, {})) for name in SERVED}
FIRST |= {name: (name, GRAPH_SETTINGS.get(name, {})) for name in GRAPHED}
# options of methods that can with others
UNABLE = {"aggregate": "all", "server": {"name": "fedexp", "eps": 0.1}}


def is_able(name, options):
    return name in ABLE and not any(options.get(key) == value for key, value in UNABLE.items())


def study(name, options, **more):
    problem = PROBLEMS.get(name, "least-squares")
    settings = {"problem": problem, "data": DATA[problem], "algorithm": {"name": name} | options, "rounds": ROUNDS}
    return settings | ({"graph": "ring"} if name in GRAPHED else {"selection": {"count": 3}}) | more


def clipped(name, options, clip):
    return mpifed.run(study(name, options, privacy={"clip": clip, "noise_multiplier": 0.0}))


def some(cases):
    return pytest.mark.parametrize(("name", "options"), cases, ids=[f"{name}-{k}" for k, (name, _) in enumerate(cases)])


RUN = [case for case in CASES if is_able(*case)]
REFUSED = [case for case in FIRST.values() if not is_able(*case)]
REFUSED += [case for case in CASES if case[0] in ABLE and not is_able(*case)]


def test_every_method_is_tried_and_the_sentence_names_those_that_run():
    assert {name for name, _ in RUN + REFUSED} == {*Algorithm.choices}
    with pytest.raises(UserError) as error:
        clipped("gd", {}, CLIP)
    # with its default step local-gd asks for constants
    assert {*str(error.value).partition("options of ")[2].split(", ")} == ABLE - {"local-gd"}


@some(REFUSED)
def test_other_methods_are_refused_with_a_reason(name, options):
    with pytest.raises(UserError) as error:
        clipped(name, options, CLIP)
    assert str(error.value).startswith(f"privacy cannot be used with {name}")
    assert ", because " in str(error.value) or "before round one, which no noise covers" in str(error.value)


@some(RUN)
def test_a_method_that_uploads_changes_runs_as_without_and_short_ones_have_a_short_mean(name, options, monkeypatch):
    plain = mpifed.run(study(name, options))
    np.testing.assert_allclose(clipped(name, options, 1e9).x, plain.x, rtol=1e-12)
    lengths = []
    decode = ClippedSums.decode

    def measure(self, request, reply):
        decode(self, request, reply)
        if self.name in request.transforms:
            x = self.find_origin(request)
            lengths.append(np.linalg.norm(reply.rows.ravel() - (0 if x is None else x)))

    monkeypatch.setattr(ClippedSums, "decode", measure)
    short = clipped(name, options, CLIP)
    assert len(lengths) == ROUNDS
    assert 0 < max(lengths) <= CLIP * (1 + 1e-9)
    assert (short.x != plain.x).any()
