"""Promises are closed by default: what says nothing is refused with them, and every part of the house speaks."""

import typing
from pathlib import Path

import msgspec
import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Privacy
from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.fedepm_graph import FedEPMGraph
from mpifed.algorithms.flame_dp import FlameDP
from mpifed.algorithms.gd import GD
from mpifed.checking.families import KINDS
from mpifed.compressors.sparse import TopK
from mpifed.core.component import Component, fields_of, walk_type
from mpifed.core.errors import UserError
from mpifed.core.promises import NOTHING_SUPPORTED, Supports, declared_promises
from mpifed.data.dataset import Data
from mpifed.data.partition import Iid
from mpifed.data.sources.gaussian import Gaussian
from mpifed.engine import listed
from mpifed.engine.asynchrony.feature import ComputedAhead
from mpifed.engine.listed import list_features, make_features
from mpifed.engine.promises.feature import REFUSALS, explain_refusals
from mpifed.engine.promises.parts import KEYS, SPEAKS, list_parts, transform_part
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.run import start
from mpifed.features.client_weights import WeightedAverages
from mpifed.features.feature import Plugin
from mpifed.federation.participation.selection import Selector, UniformSelection
from mpifed.federation.transform import Transform
from mpifed.problems.logistic import Logistic
from tests.helpers.mortal import Mortal

WORDS = {Supports.PRIVACY: "privacy", Supports.SURVIVAL: "survives", Supports.DEVICES: "computes on a device"}


class Claimed(GD):
    """A method with a guarantee, of whatever kind, that keeps all promises."""

    clients: bool = False
    sums: bool = False
    supports = Supports.EVERYTHING

    def privacy(self):
        return Privacy(True, "so it says", clients=self.clients, sums=self.sums)


class Derived(Claimed):
    """A method that changes one that keeps all promises, and says nothing."""


class Told(Gaussian):
    """Data that keep all promises, with an option that says nothing and one that does."""

    blur: float = 0.0
    scale: float = 1.0
    supports = Supports.EVERYTHING
    options = mpifed.extend.supporting("scale")


for base, what in (
    *((Gaussian, "Data"), (Logistic, "Problem"), (UniformSelection, "Selection")),
    *((TopK, "Compressor"), (Iid, "Partition")),
):  # parts that change one that keeps all promises, and say nothing
    globals()[f"Silent{what}"] = type(base)(f"Silent{what}", (base,), {"__module__": __name__})


class SilentFeature(Plugin):
    pass


class SilentTransform(Transform):
    pass


class Installing(Plugin):
    """A plug-in that keeps all promises and brings a transform that says nothing."""

    supports = Supports.EVERYTHING

    def transforms(self, setup, fed):
        return [SilentTransform()]


class InstallingAtHosts(Plugin):
    """The same where clients live."""

    supports = Supports.EVERYTHING

    def transforms(self, setup, fed):
        return [SilentTransform()] if fed is None else []


BASE = {
    "data": {"name": "gaussian", "clients": 5},
    "problem": "logistic",
    "selection": "all",
    "algorithm": f"{__name__}:Claimed",
    "rounds": 1,
}
SILENT = {
    'algorithm = "tests.contract.test_promises:Derived"': {"algorithm": f"{__name__}:Derived"},
    'data = "tests.contract.test_promises:SilentData"': {"data": {"name": f"{__name__}:SilentData", "clients": 5}},
    "data.blur = 2.0": {"data": {"name": f"{__name__}:Told", "clients": 5, "blur": 2.0}},
    'problem = "tests.contract.test_promises:SilentProblem"': {"problem": f"{__name__}:SilentProblem"},
    'selection = "tests.contract.test_promises:SilentSelection"': {"selection": f"{__name__}:SilentSelection"},
    'compress.up = "tests.contract.test_promises:SilentCompressor"': {
        "compress": {"up": {"name": f"{__name__}:SilentCompressor", "k": 2}}
    },
    'data.partition = "tests.contract.test_promises:SilentPartition"': {
        "data": {"name": "digits", "clients": 5, "partition": f"{__name__}:SilentPartition"},
        "problem": "softmax",
    },
    "the plug-in SilentFeature": {},
}


@pytest.fixture
def feature(monkeypatch):
    """Give every study a feature before all others, and so before the one that looks at what stages keep."""

    def add(cls):
        monkeypatch.setattr(listed, "FEATURES", {f"{__name__}:{cls.__name__}": lambda c: True} | listed.FEATURES)

    return add


def broken(settings, promise):
    config = experiment(BASE | settings)
    return list(explain_refusals(promise, list_parts(config, make_features(config)), config))


@pytest.mark.parametrize("part", SILENT)
def test_a_part_that_says_nothing_is_refused_with_every_promise_by_its_name_and_the_cure(part, feature, tmp_path):
    """In a run whose method guarantees privacy, before round one."""
    if not SILENT[part]:
        feature(SilentFeature)
    for promise in REFUSALS:
        told, *_ = broken(SILENT[part], promise)
        assert part in told
        assert WORDS[promise] in told
        assert "where it does, write " in told
    with pytest.raises(UserError, match="it does not say that it keeps the privacy"):
        mpifed.run(BASE | SILENT[part], path=tmp_path / "out.h5", progress=None)
    assert not (tmp_path / "out.h5").exists()


def test_a_run_whose_parts_all_speak_is_refused_with_nothing():
    assert [broken({}, promise) for promise in REFUSALS] == [[], [], []]


@pytest.mark.parametrize("cls", [Installing, InstallingAtHosts])
def test_a_transform_that_says_nothing_is_refused_where_a_feature_installs_it(cls, feature):
    feature(cls)
    with pytest.raises(
        UserError, match=r"^the transform Silent\w+ is wrong: it does not say that it keeps the privacy"
    ):
        mpifed.run(BASE, progress=None)
    with pytest.raises(UserError, match=r"^--survive cannot be used with the transform Silent\w+: it does not say"):
        start(Job(experiment(BASE | {"algorithm": "gd"}), survive=True), Mortal())
    assert mpifed.run(BASE | {"algorithm": "gd"}, progress=None).cr == 1


def test_a_run_that_asks_for_nothing_takes_what_says_nothing():
    silent = SILENT["data.blur = 2.0"] | {"algorithm": "gd", "problem": f"{__name__}:SilentProblem"}
    assert mpifed.run(BASE | silent, progress=None).cr == 1


def test_an_option_that_speaks_goes_with_a_guarantee():
    assert mpifed.run(BASE | {"data": {"name": f"{__name__}:Told", "clients": 5, "scale": 2.0}}, progress=None).cr == 1


def test_survival_and_devices_are_asked_for_by_the_run():
    with pytest.raises(UserError, match=r'^--survive cannot be used with algorithm = ".*Derived": it does not say'):
        start(Job(experiment(BASE | {"algorithm": f"{__name__}:Derived"}), survive=True), Mortal())
    with pytest.raises(UserError, match=r'^kernels = "torch" is wrong: selection = ".*" does not .*Supports.DEVICES'):
        mpifed.run(BASE | {"selection": f"{__name__}:SilentSelection", "algorithm": "gd"}, kernels="torch")


def test_a_word_that_is_none_is_refused(tmp_path):
    (tmp_path / "own.py").write_text(
        "import mpifed\nclass Own(mpifed.extend.Selection):\n    supports = 'privacy'\n"
        "    def selector(self, seed, m, rounds): ...\n"
    )
    with pytest.raises(
        UserError, match=r"supports = 'privacy' is wrong: it must be of mpifed.extend.Supports, such as"
    ):
        experiment(BASE | {"selection": f"{tmp_path / 'own.py'}:Own"})


MEMBERS = [(kind, name) for kind, family in KINDS.items() for name in family.choices]


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_every_component_of_the_house_says_itself_what_it_keeps_bits_and_resuming_among_it(kind, name):
    cls = KINDS[kind].member(name, "name")
    assert "supports" in vars(cls)
    if not isinstance(cls.supports, property):
        assert Supports.BITS | Supports.RESUME in cls.supports


def test_noise_that_no_seed_repeats_is_all_that_gives_up_bits_and_resuming():
    repeated = Supports.BITS | Supports.RESUME
    left = Supports.SAMPLES | Supports.DOUBLE | Supports.SURVIVAL | Supports.DEVICES
    for cls in (FedEPM, FedEPMGraph):
        assert repeated in declared_promises(cls())
        assert declared_promises(cls(noise="clipped")) == left
        assert repeated in declared_promises(cls(noise="clipped", noise_seed=1))
    assert not declared_promises(FlameDP()) & repeated
    assert repeated in declared_promises(FlameDP(noise_seed=1))


def test_every_feature_says_what_it_keeps():
    for cls in list_features():
        assert Supports.BITS | Supports.RESUME in vars(cls)["supports"], cls


def derived(cls):
    return [cls, *(more for one in cls.__subclasses__() for more in derived(one))]


def test_every_transform_of_the_house_says_what_it_keeps():
    assert {ComputedAhead, WeightedAverages} < {*derived(Transform)}  # all are imported
    for cls in {*derived(Transform)} - {Transform}:
        if cls.__module__.startswith("mpifed."):
            assert Supports.BITS | Supports.RESUME in vars(cls)["supports"], cls
    assert transform_part(Transform()).supports == NOTHING_SUPPORTED


@pytest.mark.parametrize("name", Data.choices)
def test_every_option_of_data_of_the_house_says_what_it_keeps(name):
    cls = Data.member(name, "data")
    options = {key: kept for base in reversed(cls.__mro__) for key, kept in vars(base).get("options", {}).items()}
    for key, field in fields_of(cls).items():
        literals = [part for part in walk_type(field.type) if typing.get_origin(part) is typing.Literal]
        values = [value for part in literals for value in typing.get_args(part)]
        assert key in options or (values and all(f"{key} = {value}" in options for value in values)), key
    assert {key.partition(" = ")[0] for key in options} <= fields_of(cls).keys()  # no option that is not there


def keys(table, path=""):
    for key, field in fields_of(table).items():
        kinds = [kind for kind in walk_type(field.type) if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
        if not kinds:
            yield path + key
        elif not issubclass(kinds[0], Component) and path + key not in SPEAKS:
            yield from keys(kinds[0], f"{path}{key}.")


def test_every_key_of_an_experiment_says_what_it_keeps_or_names_its_feature():
    there = {*keys(mpifed.features.settings.Experiment)}
    assert there - KEYS.keys() - SPEAKS.keys() == set()
    package = Path(listed.__file__).parents[1]
    assert {*SPEAKS.values()} <= {path.stem for room in ("engine", "features") for path in (package / room).iterdir()}


SUM = {"name": "flame-dp", "batch_size": 0, "epochs": 1, "seen": "sum"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"compress": {"up": {"name": "topk", "k": 2}}}, r"^compress.up = .* is wrong: flame-dp guarantees privacy he"),
        ({"objective": {"weights": "samples"}}, r'^objective.weights = "samples" is wrong: the noise of flame-dp is'),
    ],
)
def test_what_sums_do_not_protect_is_refused_with_a_guarantee_for_sums(settings, sentence):
    """A sum of compressed uploads is no function of the sum, in which alone there is noise enough."""
    pytest.importorskip("dp_accounting")
    with pytest.raises(UserError, match=sentence):
        mpifed.run(BASE | {"algorithm": SUM} | settings, progress=None)
    if "compress" in settings:
        uploads = SUM | {"seen": "uploads"}
        assert mpifed.run(BASE | {"algorithm": uploads} | settings, progress=None).cr == 1
        down = {"compress": {"down": settings["compress"]["up"]}}
        assert mpifed.run(BASE | {"algorithm": SUM} | down, progress=None).cr == 1


def test_a_guarantee_for_clients_allows_what_moves_other_samples_of_a_client(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2.0)
    data = {"name": "file", "path": str(tmp_path / "a.npz"), "clients": 5, "standardise": "own"}
    whole = {"name": f"{__name__}:Claimed", "clients": True}
    assert mpifed.run(BASE | {"data": data, "algorithm": whole}, progress=None).cr == 1
    with pytest.raises(UserError, match=r'^data.standardise = "own" is wrong: one sample moves'):
        mpifed.run(BASE | {"data": data}, progress=None)


def test_a_selector_keeps_no_privacy_with_whatever_makes_it_ask():
    plain = Selector(3, lambda round, again: None)
    assert plain.supported_promises(3).supports == Supports.EVERYTHING
    assert plain.supported_promises(4).supports == Supports.EVERYTHING & ~Supports.SUMS
    for more in ({"batch_size": 0}, {"learn": lambda replies: plain}, {"uniform": 1}, {"score": "score_own"}):
        assert not plain._replace(**more).supported_promises(3).supports & Supports.PRIVACY
